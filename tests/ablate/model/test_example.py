"""Batches that stand for any of an interface: they have its shapes, with values and without."""

from __future__ import annotations

import pytest
import torch

from ablate.model.example import example
from ablate.model.keys import generator
from ablate.slots import Interface

LABELS = Interface(context=6, vocabulary=9, form="classification", classes=4)
VALUES = Interface(context=6, vocabulary=0, form="classification", classes=4, features=3)
PAIRS = Interface(context=5, vocabulary=9, form="sequence_to_sequence", source_context=6, source_vocabulary=7)


@pytest.mark.parametrize("interface", [Interface(context=6, vocabulary=9), LABELS, VALUES, PAIRS], ids=str)
def test_without_values_it_has_the_same_shapes_and_types(interface: Interface) -> None:
    real, shape = example(interface, 3, generator(0)), example(interface, 3, None)
    for one, other in zip((*real.inputs, real.targets), (*shape.inputs, shape.targets), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype) and other.is_meta and not one.is_meta


def test_tokens_that_are_values_are_drawn_by_the_generator() -> None:
    values, valid = example(VALUES, 3, generator(0)).inputs
    assert values.shape == (3, 6, 3) and values.dtype == torch.float32 and valid.sum(1).tolist() == [6, 4, 6]
    assert torch.equal(values, example(VALUES, 3, generator(0)).inputs[0])
    assert not torch.equal(values, example(VALUES, 3, generator(1)).inputs[0])
    assert values.unique().numel() == values.numel()
