"""The divergence rule, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ablate.experiment.settings import Diverged
from ablate.slots import Reading
from ablate.training.history import Divergence, DivergenceRule, History

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([4.0, 3.0, 2.0], None),
        ([4.0, NAN, 2.0], Divergence("nonfinite", 1)),
        ([INF], Divergence("nonfinite", 0)),
        ([4.0, 6.1, 6.1, 6.1], Divergence("loss_above_initial", 3)),
        ([4.0, 6.1, 6.1, 5.9, 6.1, 6.1], None),
        ([4.0, 6.0, 6.0, 6.0], None),
    ],
)
def test_the_rule_is_broken_where_the_declaration_says(losses: list[float], expected: Divergence | None) -> None:
    assert DivergenceRule(Diverged(patience=3)).check(losses) == expected


@pytest.mark.parametrize("split", [1, 2, 3])
def test_looking_in_parts_finds_the_same(split: int) -> None:
    losses = [4.0, 6.1, 6.1, 6.1, 6.1]
    rule = DivergenceRule(Diverged(patience=3))
    assert (rule.check(losses[:split]) or rule.check(losses)) == Divergence("loss_above_initial", 3)


def test_rules_can_be_switched_off() -> None:
    off = Diverged(nonfinite=False, loss_above_initial=None)
    assert DivergenceRule(off).check([1.0, NAN, 99.0] * 30) is None


def test_a_loss_that_stays_nan_is_over_any_limit() -> None:
    rule = DivergenceRule(Diverged(nonfinite=False, patience=2))
    assert rule.check([1.0, NAN, NAN]) == Divergence("loss_above_initial", 2)


@pytest.mark.parametrize(
    ("options", "losses", "suspects"),
    [
        ({}, [4.0, 3.0], False),
        ({}, [4.0, 6.1], True),
        ({}, [4.0, 6.1, 5.9], False),
        ({"nonfinite": False}, [4.0, NAN], True),
        ({"nonfinite": False, "loss_above_initial": None}, [4.0, NAN], False),
    ],
)
def test_a_loss_over_the_limit_is_suspected(options: dict[str, Any], losses: list[float], suspects: bool) -> None:
    rule = DivergenceRule(Diverged(**options))
    assert rule.check(losses) is None
    assert rule.suspects is suspects


def history() -> History:
    reading = Reading("grad_norm", 0, "q", "block.0.mixer.q.weight")
    return History(
        losses=[3.0, 2.0, 1.0],
        norms=[1.0, NAN, 1.0],
        rates=[0.1, 0.1, 0.1],
        evaluations=[(1, {"val/loss": 2.5}), (3, {"val/loss": 0.5})],
        readings=[(0, reading, 1.0), (2, reading, 2.0)],
        seconds=1.5,
    )


def test_a_history_comes_back_from_its_state() -> None:
    assert str(History.restore(history().state())) == str(history())


def test_cutting_forgets_what_came_after() -> None:
    cut = history()
    cut.cut(1)
    assert cut.losses == [3.0, 2.0]
    assert [step for step, _ in cut.evaluations] == [1]
    assert [step for step, _, _ in cut.readings] == [0]
