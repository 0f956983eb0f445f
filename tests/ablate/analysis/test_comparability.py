"""Arms that differ from the baseline in more than their levels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from ablate.analysis.results import Results
from ablate.reporting.answers import sentences
from ablate.reporting.study import Study
from tests.study_maker import make_study

LISTED: dict[str, dict[str, Any]] = {"one": {"placement": "post"}, "two": {"scale": "off"}, "three": {"ratio": 2}}


def listed(folder: Path, own: dict[str, dict[str, Any]], **options: Any) -> Results:
    return Results(make_study(folder / "study", design="list", listed=LISTED, own=own, steps=40, **options))


def row(results: Results, name: str) -> dict[str, Any]:
    frame = results.effects()
    return {str(key): value for key, value in frame[frame["name"] == name].iloc[0].items()}


def test_another_task_is_not_comparable(tmp_path: Path) -> None:
    results = listed(tmp_path, {"two": {"task": {"kind": "copy"}}})
    verdict = next(verdict for verdict in results.verdicts() if verdict.name == "two")
    assert verdict.word == "not comparable"
    assert verdict.sentence == "two is not comparable to baseline: the tasks differ, `text` and `copy`."
    assert (verdict.effect, verdict.low, verdict.pairs) == (None, None, 0)
    assert "two is judged on the task `copy`, not on the baseline's `text`." in results.caveats()
    own = row(results, "two")
    assert math.isnan(own["effect"])
    trials = results.trials()
    assert own["mean"] == pytest.approx(trials.loc[trials["name"] == "two", "val/loss"].mean())
    assert row(results, "one")["verdict"] != "not comparable"


def test_another_unit_of_the_objective_is_not_comparable(tmp_path: Path) -> None:
    results = listed(tmp_path, {"two": {"units": {"val/loss": "nats/token", "val/bits_per_char": "bits/char"}}})
    sentences = {verdict.name: verdict.sentence for verdict in results.verdicts()}
    assert sentences["two"] == "two is not comparable to baseline: val/loss is in nats and in nats/token."
    assert "two is judged by val/loss in nats/token, and the baseline in nats." in results.caveats()
    # The secondary metric has one unit in both.
    secondary = results.effects("val/bits_per_char").set_index("name")
    assert secondary.loc["two", "pairs"] == 6


def test_other_data_of_the_same_task_are_said(tmp_path: Path) -> None:
    own: dict[str, dict[str, Any]] = {
        "one": {"task": {"context": 32}},
        "two": {"data": {"hash": "another", "facts": {}}},
    }
    results = listed(tmp_path, own)
    assert (
        "one is judged on other evaluation data than the baseline (context 32, not 64): a difference may be one of the "
        "data."
    ) in results.caveats()
    assert (
        "two is judged on other evaluation data than the baseline (another hash): a difference may be one of the data."
    ) in results.caveats()
    assert row(results, "one")["pairs"] == 6


def test_own_steps_and_matched_values_are_said(tmp_path: Path) -> None:
    path = "model.feed_forward.ratio"
    own: dict[str, dict[str, Any]] = {
        "one": {"steps": 20, "matched": {path: 3.25}}, "two": {"matched": {path: 3.25}}, "three": {"matched": {path: 6}}
    }  # fmt: skip
    results = listed(tmp_path, own)
    assert "one trains for 20 steps, the baseline for 40 (-50% training tokens)." in results.caveats()
    assert f"Matching chose `{path}`: 3.25 for one and two, 6 for three." in results.caveats()
    # Half of the steps are half of the training.
    assert row(results, "one")["flops_delta"] == row(results, "one")["tokens_delta"] == pytest.approx(-50)
    assert "one is not matched to the baseline: -50% training FLOPs." in results.caveats()


def test_other_tokens_at_equal_steps_are_said_and_those_of_another_kind_are_not(tmp_path: Path) -> None:
    own: dict[str, dict[str, Any]] = {
        "one": {"tokens": 2048}, "two": {"tokens": 2048, "task": {"tokenizer": "byte"}}, "three": {"tokens": 1030}
    }  # fmt: skip
    results = listed(tmp_path, own)
    (said,) = (text for text in results.caveats() if "training tokens" in text)
    assert said == "one trains for as many steps as the baseline, with +100% training tokens."
    assert [row(results, name)["tokens_delta"] for name in LISTED] == pytest.approx(
        [100, math.nan, 0.6], nan_ok=True, abs=0.05
    )


def test_a_sentence_says_of_an_arm_that_it_trains_for_longer(tmp_path: Path) -> None:
    said = sentences(Study(listed(tmp_path, {"one": {"steps": 60}, "two": {"steps": 20, "flops": 1}})), "arm")
    badges = {sentence.name: sentence.badge for sentence in said}
    assert badges == {
        "one": "+50% training FLOPs, +50% training tokens",
        "two": "-100% training FLOPs, -50% training tokens",
        "three": "-30% parameters",
    }


def test_the_configuration_has_the_steps_of_all_arms(tmp_path: Path) -> None:
    (said,) = (text for text in listed(tmp_path, {"baseline": {"steps": 30}}).caveats() if "this configuration" in text)
    assert ", 30 to 40 steps, " in said


def test_arms_that_are_alike_share_a_sentence(tmp_path: Path) -> None:
    own = {name: {"task": {"context": 32}} for name in LISTED}
    said = listed(tmp_path, own).caveats()
    assert sum("evaluation data" in text for text in said) == 1
    assert any(text.startswith("one, two and three are judged on other evaluation data") for text in said)


def test_arms_with_commas_in_their_names_are_kept_apart(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"placement": ["pre", "post"], "ratio": [4, 1]}
    said = Results(make_study(tmp_path / "study", design="pairs", factors=factors, steps=20)).caveats()
    assert (
        "ratio=1; and placement=post, ratio=1 are not matched to the baseline: -45% parameters and -50% training FLOPs."
    ) in said


MATCHED = {"to": "baseline", "adjust": "model.feed_forward.ratio", "within": 0.01}


def test_an_arm_that_is_matched_in_one_size_is_not_called_unmatched(tmp_path: Path) -> None:
    own: dict[str, dict[str, Any]] = {"one": {"flops": 1.02 * 6 * 147456 * 1024}, "two": {"steps": 30}}
    params = listed(tmp_path / "params", own, match={"params": MATCHED, "train_flops": None}).caveats()
    assert [text for text in params if "matched" in text] == [
        "one is matched in parameters alone: +2% training FLOPs.",
        "two is matched in parameters alone: -25% training FLOPs.",
        "three is not matched to the baseline: -30% parameters and -33% training FLOPs.",
    ]
    flops = listed(tmp_path / "flops", own, match={"params": None, "train_flops": MATCHED}).caveats()
    assert "two is not matched to the baseline: -25% training FLOPs." in flops


def test_the_part_that_differs_is_named_where_parameters_are_not_matched(tmp_path: Path) -> None:
    parts = {"feed_forward": 100, "mixer": 200}
    sizes: list[dict[str, Any]] = [
        {"total": 500, "non_embedding": 300, "parts": parts | {"feed_forward": size}} for size in (100, 150)
    ]
    own: dict[str, dict[str, Any]] = {
        "baseline": {"parameters": sizes[0]},
        "one": {"parameters": sizes[1] | {"total": 550}},
    }
    own |= {name: {"parameters": sizes[0]} for name in ("two", "three")}
    said = listed(tmp_path / "flops", own, match={"params": None, "train_flops": MATCHED}).caveats()
    assert "one is matched in training FLOPs alone: +10% parameters (+50% in feed_forward)." in said
    own["one"] = {"parameters": sizes[1], "steps": 30}
    said = listed(tmp_path / "params", own, match={"params": MATCHED, "train_flops": None}).caveats()
    assert "one is matched in parameters alone: -25% training FLOPs." in said


def test_no_part_is_named_between_models_of_two_kinds(tmp_path: Path) -> None:
    size = {"total": 500, "non_embedding": 300, "parts": {"decoder": 300}}
    own: dict[str, dict[str, Any]] = {name: {"parameters": size} for name in ("baseline", "two", "three")}
    sizes = {"total": 1000, "non_embedding": 800, "parts": {"block": 800}}
    own["one"] = {"parameters": sizes, "model": {"kind": "conv_seq2seq"}}
    (said,) = [each for each in listed(tmp_path, own).caveats() if each.startswith("one is not matched")]
    assert said.startswith("one is not matched to the baseline: +100% parameters")
    assert "(" not in said


def test_levels_of_a_full_design_are_matched_in_one_size(tmp_path: Path) -> None:
    factors: dict[str, list[Any]] = {"placement": ["pre", "post"], "scale": ["on", "off"]}
    own = {f"placement=post, scale={scale}": {"steps": 30} for scale in ("on", "off")}
    study = make_study(
        tmp_path / "study", design="full", factors=factors, own=own, steps=40, match={"params": MATCHED}
    )  # fmt: skip
    said = Results(study).caveats()
    assert "placement=post is matched to placement=pre in parameters alone: -25% training FLOPs." in said
