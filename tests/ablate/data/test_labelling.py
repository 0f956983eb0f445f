"""What is counted of a classifier, against scikit-learn and by hand."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from ablate.data.labelling import judge, shares

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


@settings(deadline=None)
@given(PAIRS)
def test_macro_f1_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    metrics = import_module("sklearn.metrics")
    wanted, said = zip(*pairs, strict=True)
    totals = judge(10 * one_hot(torch.tensor(said), 5).float(), torch.tensor(wanted))
    found = shares({name: float(total) for name, total in totals.items()})
    assert found["macro_f1"] == pytest.approx(metrics.f1_score(wanted, said, average="macro", zero_division=0))
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(wanted, said))


def test_the_confusion_and_what_comes_of_it_by_hand() -> None:
    """Two of the first label, one taken for the second; one of the second, found; the third is nowhere."""
    logits = torch.tensor([[9.0, 0, 0], [0, 9, 0], [0, 9, 0]])
    totals = {name: float(total) for name, total in judge(logits, torch.tensor([0, 0, 1])).items()}
    counts = {name.removeprefix("confusion."): count for name, count in totals.items() if "." in name and count}
    assert counts == {"0.0": 1, "0.1": 1, "1.1": 1}
    assert sum(name.startswith("confusion.") for name in totals) == 9
    found = shares(totals)
    assert found["accuracy"] == pytest.approx(2 / 3) and found["macro_f1"] == pytest.approx(2 / 3)
    nothing = float(torch.log(torch.tensor(1 + 2 * torch.e**-9)))
    assert found["loss"] == pytest.approx((3 * nothing + 9) / 3, rel=1e-5)
