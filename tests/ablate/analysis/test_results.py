from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from pathlib import Path

import pandas as pd
import pytest

from ablate.analysis.results import Results
from ablate.errors import InputError
from tests.study_maker import HOSTILE, hold_lock, make_study


def test_the_quickstart(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study"))
    verdicts = results.verdicts()
    assert [(verdict.name, verdict.word) for verdict in verdicts] == [
        ("residual=none", "worse"),
        ("scale=off", "worse"),
        ("placement=post", "worse"),
        ("ratio=1", "worse"),
        ("ratio=2", "worse, size uncertain"),
    ]
    first = verdicts[0]
    assert first.stuck
    assert first.sentence == (
        "residual=none is worse than baseline by +1.565 nats val/loss [95% simultaneous CI +1.516, +1.614]; "
        "6 of 6 seeds agree; it is stuck: 6 of 6 seeds end within 0.05 nats of the unigram entropy, 3.24 nats; "
        "smallest effect that matters 0.020."
    )
    assert first.arm == results.effects().set_index("name").loc["residual=none", "arm"]
    assert (first.kind, first.pairs, first.planned, first.agree, first.diverged) == ("arm", 6, 6, 6, 0)
    assert results.complete


def test_verdicts_and_effects_say_the_same(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", diverged=[("placement=post", 0)], failed=[("ratio=2", 1)]))
    words = {verdict.arm: verdict.word for verdict in results.verdicts()}
    assert results.effects().set_index("arm")["verdict"].to_dict() == words


def test_where_every_trial_diverged_every_arm_is_diverged(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", outcomes=lambda *_: math.nan))
    assert {verdict.word for verdict in results.verdicts()} == {"diverged"}
    assert results.counts()["diverged"] == 36
    assert all("CI" not in v.sentence or "Wilson" in v.sentence for v in results.verdicts())
    assert all(verdict.low is None and verdict.effect is None for verdict in results.verdicts())
    assert results.caveats()
    assert "diverged" in results._repr_html_()


def test_an_infinite_loss_is_a_divergence_and_enters_no_mean(tmp_path: Path) -> None:
    def outcome(name: str, levels: object, seed: int) -> float:
        return math.inf if (name, seed) == ("scale=off", 2) else 2.0 if name == "scale=off" else 1.7 + 0.01 * seed

    results = Results(make_study(tmp_path / "study", outcomes=outcome))
    row = results.effects().set_index("name").loc["scale=off"]
    assert (row["pairs"], row["diverged"], row["mean"]) == (5, 1, 2.0)
    assert results.counts()["diverged"] == 1


def test_a_baseline_that_diverged_makes_nothing_comparable(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", diverged=[("baseline", 5)]))
    assert {verdict.word for verdict in results.verdicts()} == {"not comparable"}


def test_one_seed(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", seeds=1))
    assert {verdict.word for verdict in results.verdicts()} == {"one seed, no interval"}
    assert all("[" not in verdict.sentence and verdict.low is None for verdict in results.verdicts())
    assert results.effects()["low"].isna().all()


def test_a_null_level_is_an_arm_like_any_other(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", factors={"position": ["learned", None, "null"]}))
    assert sorted(verdict.name for verdict in results.verdicts()) == ['position="null"', "position=null"]
    assert list(results.effects()["pairs"]) == [6, 6]
    assert sum(level is None for level in results.trials()["factor.position"]) == 6


def test_a_twin_of_the_baseline_is_identical(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", twins={"scale=off": "baseline"}))
    verdict = next(v for v in results.verdicts() if v.name == "scale=off")
    assert verdict.word == "identical"


def test_results_are_those_of_the_moment(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", seeds=2, running=[("scale=off", 1)])
    with hold_lock(study):
        results = Results(study)
    assert results.counts()["running"] == 1
    assert not results.complete
    assert Results(study).counts()["waiting"] == 1


def test_frames_are_the_callers_own(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", seeds=2))
    for read in (results.trials, results.curves, results.probes, results.effects, results.courses):
        frame = read()
        frame["seed" if "seed" in frame else "pairs"] = -1
        assert (read()["seed" if "seed" in read() else "pairs"] >= 0).all()


def test_results_are_frozen_and_equal_by_their_folder(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", seeds=1)
    results = Results(study)
    assert results == Results(study)
    with pytest.raises(FrozenInstanceError):
        results.folder = tmp_path  # type: ignore[misc]


@pytest.mark.parametrize("failed", [False, True])
def test_a_study_that_has_no_result_yet_is_an_error(tmp_path: Path, failed: bool) -> None:
    cells = [("baseline", 0), ("placement=post", 0)]
    study = make_study(
        tmp_path / "study", factors={"placement": ["pre", "post"]}, seeds=1, waiting=cells[failed:],
        failed=cells[:failed],
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        Results(study)
    text = str(caught.value)
    if failed:
        assert text.startswith("error[S404]: no trial of `quickstart` has ended yet; 1 failed\n")
        assert "see what failed with `ablate status`" in text
    else:
        assert text.startswith("error[S404]: no trial of `quickstart` has ended yet\n")
        assert "run `ablate run experiments/quickstart.yaml` first" in text


def test_there_must_be_a_study(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"error.S401.: there is no study at"):
        Results(tmp_path / "nothing")


def test_an_unknown_metric_is_an_error_that_names_what_exists(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", seeds=1))
    with pytest.raises(InputError, match="`val/los` is no metric") as caught:
        results.effects("val/los")
    assert "there are `val/bits_per_char`, `val/loss`" in str(caught.value)


def test_the_notebooks_view_is_escaped(tmp_path: Path) -> None:
    study = make_study(
        tmp_path / "study", factors={"placement": ["pre", HOSTILE]}, seeds=2, name="<b>", question=HOSTILE
    )
    html = Results(study)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "&lt;b&gt;" in html


def test_every_frame_is_a_frame(tmp_path: Path) -> None:
    results = Results(make_study(tmp_path / "study", design="full", seeds=2))
    for frame in (results.main_effects(), results.interactions(), results.simple_effects(), results.effects()):
        assert isinstance(frame, pd.DataFrame)
        assert len(frame)


def test_results_say_what_they_are_of(tmp_path: Path) -> None:
    assert repr(Results(make_study(tmp_path / "whole"))) == "Results('quickstart': 6 arms, 36 of 36 trials ended)"
    study = make_study(
        tmp_path / "study", name="it's", seeds=2, waiting=[("ratio=1", 0)], failed=[("ratio=1", 1)],
        diverged=[("ratio=2", 0)], excluded=[{"levels": {"ratio": 3}, "why": "odd"}],
    )  # fmt: skip
    assert repr(Results(study)) == 'Results("it\'s": 6 arms, 11 of 12 trials ended)'
