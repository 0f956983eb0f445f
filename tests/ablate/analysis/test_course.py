from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ablate.analysis import course as courses
from ablate.analysis.course import COURSES, course, spike_score
from ablate.records import frames
from tests.study_maker import make_study


def flat(steps: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return 2.0 + np.random.default_rng(seed).normal(0, 0.05, steps)


def brute(losses: list[float], window: int, least: int, sds: float, two_sided: bool) -> list[int]:
    """The definition, step by step."""
    found = []
    for step in range(least, len(losses)):
        before = np.array(losses[max(0, step - window) : step])
        away = losses[step] - before.mean()
        if (abs(away) if two_sided else away) > sds * before.std(ddof=1):
            found.append(step)
    return found


def test_a_spike_by_hand() -> None:
    losses = [2.0, 2.2] * 50  # mean 2.1, sd just over 0.1: the limit is about 2.7
    losses[80], losses[90] = 2.71, 2.69
    spikes = spike_score(losses)[0]
    assert spikes.steps == (80,)
    assert spikes.score == 1 / 100
    assert spikes.rule == "over mean + 6 sd of the last 128 steps"


def test_both_rules_follow_their_definitions() -> None:
    losses = flat(1500)
    losses[[70, 300, 1200]] += 1.0
    losses[[400, 1300]] -= 1.0
    short, long = spike_score(losses)
    assert short.steps == tuple(brute(list(losses), 128, 63, 6, False)) == (70, 300, 1200)
    assert long.steps == tuple(brute(list(losses), 1000, 999, 7, True)) == (1200, 1300)
    assert (short.score, long.score) == (3 / 1500, 2 / 1500)
    assert long.rule == "7 sd from the mean of the last 1,000 steps"


def test_the_long_rule_needs_a_thousand_steps() -> None:
    assert len(spike_score(flat(999))) == 1
    assert len(spike_score(flat(1000))) == 2


def test_a_run_too_short_to_judge_has_no_score() -> None:
    assert math.isnan(spike_score(flat(63))[0].score)
    assert spike_score(flat(64))[0].score == 0
    assert math.isnan(spike_score([])[0].score)


def test_equal_losses_never_spike() -> None:
    assert spike_score([3.24] * 400)[0].steps == ()


def test_what_follows_a_value_that_is_not_finite_is_not_judged() -> None:
    losses = flat(200)
    losses[100], losses[150] = math.nan, 9.0
    assert spike_score(losses)[0].steps == ()


@pytest.mark.parametrize(("rule", "word"), [("nonfinite", "nonfinite"), ("loss_above_initial", "over_limit")])
def test_a_diverged_run_is_called_by_its_rule(rule: str, word: str) -> None:
    assert course(flat(200), rule=rule, final=3.24, unigram_entropy=3.24) == word


@pytest.mark.parametrize(
    ("final", "word"), [(3.24, "stuck"), (3.289, "stuck"), (3.191, "stuck"), (3.30, "ok"), (3.18, "ok")]
)
def test_a_run_within_005_nats_of_the_unigram_entropy_is_stuck(final: float, word: str) -> None:
    assert course(flat(200), final=final, unigram_entropy=3.24) == word


def test_without_an_evaluation_the_last_training_losses_count() -> None:
    assert course(np.full(200, 3.25), unigram_entropy=3.24) == "stuck"
    assert course(np.full(200, 3.35), unigram_entropy=3.24) == "ok"


def test_without_the_entropy_no_run_is_stuck() -> None:
    assert course(np.full(200, 3.24), final=3.24) == "ok"


def test_a_spike_recovers_or_does_not() -> None:
    losses = flat(300)
    losses[150:155] += 3.0
    assert course(losses) == "spike_and_recover"
    losses[150:] += 3.0
    assert course(losses) == "spike"
    early = flat(300)
    early[-1] += 3.0
    assert course(early) == "spike"  # nothing after it shows that it came back


def test_the_courses_of_a_study(tmp_path: Path) -> None:
    study = make_study(
        tmp_path / "study",
        seeds=2,
        steps=400,
        diverged={("placement=post", 0): "nonfinite", ("placement=post", 1): "loss_above_initial"},
        spiking=[("scale=off", 1)],
        waiting=[("ratio=2", 1)],
    )
    trials = frames.trials(study)
    frame = courses.courses(trials, frames.curves(study, frame=trials))
    found = {(row["name"], row["seed"]): row for row in frame.to_dict("records")}
    words = {cell: row["course"] for cell, row in found.items()}
    assert words == {
        ("baseline", 0): "ok", ("baseline", 1): "ok", ("placement=post", 0): "nonfinite",
        ("placement=post", 1): "over_limit", ("scale=off", 0): "ok", ("scale=off", 1): "spike_and_recover",
        ("residual=none", 0): "stuck", ("residual=none", 1): "stuck", ("ratio=1", 0): "ok", ("ratio=1", 1): "ok",
        ("ratio=2", 0): "ok",
    }  # fmt: skip
    assert found["scale=off", 1]["spike_steps"] == (300, 301)
    assert found["scale=off", 1]["spike_score"] == 2 / 400
    assert math.isnan(found["scale=off", 1]["spike_score_long"])
    assert set(words.values()) <= set(COURSES)


def test_a_first_bad_value_in_words(tmp_path: Path) -> None:
    lost = {("placement=post", 0): "nonfinite", ("placement=post", 1): "loss_above_initial"}
    study = make_study(tmp_path / "study", seeds=2, factors={"placement": ["pre", "post"]}, diverged=lost)
    fine, bad, _, over = frames.trials(study).to_dict("records")
    assert courses.first_bad(bad) == ("block.2.feed_forward", "output not finite")
    assert courses.first_bad(over) == courses.first_bad(fine) == ("", "")
    assert courses.first_bad(bad | {"first_bad_module": ""}) == ("the batch", "output not finite")
    other = {"first_bad": "loss", "first_bad_module": ""}
    assert courses.first_bad(other) == ("the loss", "not finite by itself")
    assert courses.first_bad(other | {"first_bad": "of a later version"}) == ("the loss", "of a later version")
    assert courses.first_bad(other | {"first_bad": "out_of_time"})[0] == ""
