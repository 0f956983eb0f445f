from __future__ import annotations

import math
from pathlib import Path

from ablate.analysis.results import Results
from ablate.reporting import fairness
from ablate.reporting.study import Study
from tests.ablate.analysis.task_studies import RANGED, task_study
from tests.study_maker import QUICKSTART, make_study

PLACEMENT = {"placement": ["pre", "post", "none"]}
CONFIGURATION = (
    "The sentences speak of this configuration (decoder, depth 3, width 64, 100 steps, peak learning rate 0.01), never "
    "of a component as such: another size, budget or learning rate may turn them round."
)


def test_a_sound_study_has_the_general_caveats_alone(tmp_path: Path) -> None:
    caveats = Results(make_study(tmp_path / "study", factors=PLACEMENT)).caveats()
    assert caveats[:2] == [
        CONFIGURATION,
        "The intervals that carry the verdicts hold together at 95% for the 2 arms planned (Bonferroni).",
    ]
    assert len(caveats) == 3
    assert caveats[2].startswith("Within a seed an arm correlates with the baseline by ")
    assert caveats[2].endswith("here pairing narrows the typical interval.")


def test_a_full_design_states_its_families(tmp_path: Path) -> None:
    caveats = Results(make_study(tmp_path / "study", design="full")).caveats()
    assert caveats[1] == (
        "Verdicts are on the main effects, and on simple effects where an interaction is large: its interval "
        "excludes zero and its size exceeds 0.02. The intervals of each family hold together at 95% (Bonferroni): "
        "4 main effects, 6 interactions, 24 simple effects."
    )
    assert "ratio=1 is not matched to ratio=4: -45% parameters and -50% training FLOPs." in caveats


def test_fewer_than_six_seeds(tmp_path: Path) -> None:
    caveats = Results(make_study(tmp_path / "study", factors=PLACEMENT, seeds=4)).caveats()
    assert (
        "With 4 seeds the exact sign-flip test cannot give a p below 0.125, whatever the data; "
        "6 seeds are the fewest that can reach 0.05."
    ) in caveats
    assert caveats[-1].endswith("unpaired one: 4 seeds are too few to tell whether pairing narrows the intervals.")
    one = Results(make_study(tmp_path / "one", factors=PLACEMENT, seeds=1)).caveats()
    assert any(caveat.startswith("With 1 seed the exact sign-flip test cannot give a p below 1,") for caveat in one)
    assert not any("nan" in caveat for caveat in one)


def test_a_baseline_at_the_ceiling(tmp_path: Path) -> None:
    def said(folder: str, *values: float) -> list[str]:
        made = make_study(
            tmp_path / folder, factors=PLACEMENT, seeds=3, metric="val/accuracy", goal="max",
            outcomes=lambda name, levels, seed: values[seed],
        )  # fmt: skip
        return [each for each in Results(made).caveats() if "best val/accuracy" in each]

    assert said("most", 1.0, 0.99, 0.7) == [
        "The baseline ends within 0.02 of the best val/accuracy that there is, 1, in 2 of 3 seeds: no arm can be "
        "better by what matters, and arms that get there too are not told apart; a harder task or fewer steps would."
    ]
    assert said("few", 1.0, 0.97, 0.7) == []


def test_a_ceiling_and_a_floor_are_each_tasks_own(tmp_path: Path) -> None:
    """Of the arms on copy both are at chance in most trials; on sort the baseline is at the ceiling."""
    values = {"copy": {"on": (0.19, 0.22, 0.7), "off": (0.21, 0.1, 0.21)}, "sort": {"on": (1, 1, 1), "off": (0.2,) * 3}}
    results = task_study(
        tmp_path / "study", {"copy": RANGED, "sort": RANGED},
        accuracy=lambda levels, seed: values[levels["task"]][levels["scale"]][seed],
    )  # fmt: skip
    said = [each for each in results.caveats() if each.startswith("On ")]
    assert said == [
        "On sort the baseline ends within 0.02 of the best val/accuracy that there is, 1, in 3 of 3 seeds: no arm can "
        "be better by what matters, and arms that get there too are not told apart; a harder task or fewer steps "
        "would.",
        "On copy all 2 arms end within 0.02 of chance, 0.2 val/accuracy, in most trials: that task says nothing of "
        "these arms; an easier one or more steps would.",
    ]


def test_the_only_task_that_nobody_learned(tmp_path: Path) -> None:
    def said(folder: str, learned: int) -> list[str]:
        """Of ten arms, so many do better than chance."""
        levels = [f"l{index}" for index in range(10)]
        data = {"hash": "1", **RANGED}
        names = ["baseline", *(f"size={level}" for level in levels[1:])]
        made = make_study(
            tmp_path / folder, factors={"size": levels}, seeds=1, metric="val/accuracy", goal="max",
            own={name: {"data": data} for name in names},
            outcomes=lambda name, of, seed: 0.9 if of["size"] in levels[:learned] else 0.2,
        )  # fmt: skip
        return [each for each in Results(made).caveats() if "chance" in each]

    told = "within 0.02 of chance, 0.2 val/accuracy, in most trials: that task says nothing of these arms; an easier "
    assert said("all", 0) == [f"All 10 arms end {told}one or more steps would."]
    assert said("most", 1) == [f"9 of 10 arms end {told}one or more steps would."]
    assert said("some", 2) == []


def test_what_the_study_varies_is_a_span(tmp_path: Path) -> None:
    own = {"placement=post": {"model": {"depth": 5, "kind": "encoder"}, "steps": 120}}
    caveats = Results(make_study(tmp_path / "study", factors=PLACEMENT, own=own)).caveats()
    assert caveats[0].startswith(
        "The sentences speak of this configuration (decoder or encoder, depth 3 to 5, width 64, 100 to 120 steps, peak "
        "learning rate 0.01), never"
    )


def test_sizes_are_compared_within_a_task(tmp_path: Path) -> None:
    """The arms of another task are all larger, which is no difference between arms that are compared."""
    larger = {name: {"parameters": {"total": 200_000, "non_embedding": 150_000}, "task": {"kind": "sort"}}
              for name in ("task=sort", "other")}  # fmt: skip
    study = make_study(
        tmp_path / "study", design="list", factors={"task": ["copy", "sort"], "scale": ["on", "off"]}, own=larger,
        listed={"task=sort": {"task": "sort"}, "other": {"task": "sort", "scale": "off"}, "off": {"scale": "off"}},
    )  # fmt: skip
    results = Results(study)
    assert not [caveat for caveat in results.caveats() if "not matched" in caveat]
    told = list(fairness.sentences(Study(results)))
    assert "Every arm has the baseline's parameters and training FLOPs within 1%." in told
    assert not any(row["unequal"] for row in fairness.table(Study(results)).records)


def test_unmatched_arms(tmp_path: Path) -> None:
    caveats = Results(make_study(tmp_path / "study")).caveats()
    assert "ratio=1 is not matched to the baseline: -45% parameters and -50% training FLOPs." in caveats
    assert not any(caveat.startswith("placement=post is not matched") for caveat in caveats)


def test_wider_arms_have_a_plus_sign(tmp_path: Path) -> None:
    caveats = Results(make_study(tmp_path / "study", factors={"ratio": [4, 6]})).caveats()
    assert "ratio=6 is not matched to the baseline: +30% parameters and +33% training FLOPs." in caveats


def test_missing_pairs_and_divergence(tmp_path: Path) -> None:
    study = make_study(
        tmp_path / "study", factors=PLACEMENT, failed=[("baseline", 2), ("placement=none", 0), ("placement=none", 1)],
        diverged=[("placement=post", 3), ("placement=post", 4)], waiting=[("placement=none", 5)],
    )  # fmt: skip
    caveats = Results(study).caveats()
    assert "This is interim: 1 of 18 planned trials have not ended yet." in caveats
    assert "baseline: seed 2 failed, so every arm lacks that pair." in caveats
    assert "placement=none: seeds 0, 1 failed, so it lacks those pairs." in caveats
    assert (
        "placement=post diverged in 2 of 6 seeds (seeds 3, 4: nonfinite); 95% Wilson CI of the share 10% to 70%."
    ) in caveats


def test_what_components_declare_is_said_of_the_arms_that_have_them(tmp_path: Path) -> None:
    batch = "norm `batch`: in training a sequence sees the others of its batch"
    later = "mixer `mine`: a token sees later ones of its sequence"
    notes = {"baseline": [batch], "placement=none": [later, batch], "placement=post": []}
    own = {name: {"notes": said} for name, said in notes.items()}
    caveats = Results(make_study(tmp_path / "study", factors=PLACEMENT, own=own)).caveats()
    assert [caveat for caveat in caveats if "sees" in caveat] == [
        f"baseline and placement=none have {batch}.",
        f"placement=none has {later}.",
    ]


def test_a_baseline_that_is_stuck(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", factors={"residual": ["none", "add"]}, seeds=2)
    assert (
        "The baseline itself is stuck at the unigram entropy in 2 of 2 seeds: effects against it say little."
    ) in Results(study).caveats()


def test_arms_with_identical_curves(tmp_path: Path) -> None:
    twins = {"ratio=2": "ratio=1", "scale=off": "baseline"}
    study = make_study(tmp_path / "study", factors=QUICKSTART, seeds=3, twins=twins, waiting=[("ratio=2", 2)])
    same = [caveat for caveat in Results(study).caveats() if "identical training curves" in caveat]
    assert same == [
        "baseline and scale=off have identical training curves in every seed: they may compute the same thing.",
        "ratio=1 and ratio=2 have identical training curves in every seed: they may compute the same thing.",
    ]


def test_arms_that_only_share_a_seed_are_not_the_same(tmp_path: Path) -> None:
    def outcome(name: str, levels: object, seed: int) -> float:
        return 1.5 if seed == 0 else math.nan

    study = make_study(tmp_path / "study", factors=PLACEMENT, seeds=2, outcomes=outcome)
    assert not any("identical training curves" in caveat for caveat in Results(study).caveats())


def test_a_study_without_pairs_claims_nothing_of_pairing(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", factors=PLACEMENT, outcomes=lambda *_: math.nan)
    assert not any("correlates" in caveat for caveat in Results(study).caveats())
