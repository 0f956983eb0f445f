"""Dropout is keyed by place and step."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ablate.model.dropout import KeyedDropout, dropout, dropouts, set_dropout
from ablate.slots import ImpossibleError, Site

AT = Site(path="block.0.mixer.dropout", slot="dropout", width=8, depth=1, context=8)
ONES = torch.ones(64, 64)


def mask(seed: int, step: int, path: str = AT.path) -> Tensor:
    module = KeyedDropout(0.25, path).train()
    set_dropout(dropouts(module), (seed,), step)
    dropped: Tensor = module(ONES)
    return dropped


def test_the_mask_depends_on_seed_step_and_path_alone() -> None:
    assert torch.equal(mask(0, 5), mask(0, 5))
    others = [mask(1, 5), mask(0, 6), mask(0, 5, "elsewhere")]
    assert not any(torch.equal(mask(0, 5), other) for other in others)


def test_a_share_is_dropped_and_the_rest_scaled_so_that_the_mean_stays() -> None:
    found = mask(0, 0)
    assert found.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float((found == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(found.mean()) == pytest.approx(1.0, abs=0.03)


def test_evaluation_drops_nothing() -> None:
    assert torch.equal(KeyedDropout(0.5, "x").eval()(ONES), ONES)


def test_no_dropout_is_no_module_of_ours() -> None:
    assert isinstance(dropout(0.0, AT), nn.Identity)


def test_dropping_everything_is_impossible() -> None:
    with pytest.raises(ImpossibleError):
        dropout(1.0, AT)
