from __future__ import annotations

import math
from pathlib import Path

from ablate.analysis.results import Results
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
