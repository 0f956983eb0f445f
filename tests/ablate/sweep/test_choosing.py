from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ablate.errors import InputError
from ablate.records.layout import StudyFolder
from ablate.sweep.choosing import Only, Seeds, choose
from ablate.sweep.events import Counts, TrialStarted
from ablate.sweep.preview import Tally, preview
from tests.ablate.sweep.stub_study import Run, make_plan

LEVELS: list[dict[str, Any]] = [
    {"placement": "pre", "scale": "on", "norm": "layer", "ratio": 4, "lr": 1e-3, "size": "2"},
    {"placement": "post", "scale": "on", "norm": "layer", "ratio": 4, "lr": 1e-3, "size": "2"},
    {"placement": "post", "scale": "off", "norm": None, "ratio": 2, "lr": 1e-3, "size": "2"},
    {"placement": "pre", "norm": "null", "ratio": 2.5, "lr": 1.0, "size": "4"},  # no `scale`: its condition fails
]
NAMES = ["baseline", "placement=post", "everything", "norm"]


def plan(seeds: int = 1) -> dict[str, Any]:
    made = make_plan([{}] * len(LEVELS), seeds=seeds)
    for arm, levels, name in zip(made["arms"], LEVELS, NAMES, strict=True):
        arm |= {"levels": levels, "name": name}
    return made


def chosen(only: Only = (), seeds: Seeds | None = None, count: int = 1) -> list[int]:
    """The numbers of the trials that are chosen, in order."""
    return [int(id[1:]) for id in _ids(plan(count), only, seeds)]


def _ids(made: dict[str, Any], only: Only = (), seeds: Seeds | None = None) -> list[str]:
    chosen = choose(made, only, seeds)
    return [trial["id"] for trial in made["trials"] if chosen(trial)]


def complaint(only: Only = (), seeds: Seeds | None = None) -> str:
    with pytest.raises(InputError) as raised:
        choose(plan(6), only, seeds)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "S115"
    return f"{diagnostic.message}; {diagnostic.help}"


@pytest.mark.parametrize(
    ("only", "arms"),
    [
        ((), [0, 1, 2, 3]),
        ("baseline", [0]),
        (["placement=post"], [1, 2]),
        (["placement=post", "scale=off"], [2]),
        ("scale=off", [2]),
        ("scale=false", [2]),
        ("scale = on", [0, 1]),
        ("norm=null", [2]),
        ("norm=~", [2]),
        ('norm="null"', [3]),
        ("norm='null'", [3]),
        ("ratio=2", [2]),
        ("ratio=2.0", [2]),
        ("ratio=2.5", [3]),
        ("lr=1e-3", [0, 1, 2]),
        ("lr=1", [3]),
        ('size="2"', [0, 1, 2]),
        ("everything", [2]),
        (["norm", "size='4'"], [3]),
        (["baseline", "placement=pre"], [0, 3]),
        (["baseline", "everything"], [0, 2]),
        (["baseline", "scale=off"], [0, 2]),
        (["ratio=2", "ratio=2.5"], [2, 3]),
        (["placement=pre", "placement=post", "scale=on"], [0, 1]),
        ({"placement": "post", "norm": None}, [2]),
        ({"scale": True}, [0, 1]),
        ({}, [0, 1, 2, 3]),
    ],
)
def test_arms_by_their_levels(only: Only, arms: list[int]) -> None:
    assert chosen(only) == arms


@pytest.mark.parametrize(
    ("only", "text"),
    [
        (
            "placment=post",
            "no factor is called `placment`; "
            "did you mean `placement`? there are: placement, scale, norm, ratio, lr, size",
        ),
        ("depth=3", "no factor is called `depth`; there are: placement, scale, norm, ratio, lr, size"),
        ("placement=pots", "`placement` has no level `pots`; did you mean `post`? its levels are pre, post"),
        ("ratio=3", "`ratio` has no level `3`; its levels are 4, 2, 2.5"),
        ("size=2", '`size` has no level `2`; did you mean `"2"`? its levels are "2", "4"'),
        ('ratio="2"', '`ratio` has no level `"2"`; did you mean `2`? its levels are 4, 2, 2.5'),
        ("post", "`post` names no arm: give FACTOR=LEVEL; did you mean `placement=post`?"),
        ("", "`` names no arm: give FACTOR=LEVEL; as `placement=post`, or `baseline`"),
        (
            ["placement=pre", "scale=off"],
            "no arm is placement=pre and scale=off; there are: baseline; placement=post; everything; norm",
        ),
        (
            ["placement=pre", "ratio=2", "scale=off", "scale=on"],
            "no arm is placement=pre and ratio=2 and scale=off or scale=on; "
            "there are: baseline; placement=post; everything; norm",
        ),
        ({"scale": 1}, "`scale` has no level `1`; its levels are on, off"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(only: Only, text: str) -> None:
    assert complaint(only) == text


def test_a_level_that_every_cell_with_it_excludes_has_no_arm() -> None:
    made = plan() | {"factors": [{"name": "placement", "levels": ["pre", "post", "sandwich"], "baseline": "pre"}]}
    with pytest.raises(InputError, match="no arm is placement=sandwich"):
        choose(made, "placement=sandwich")


def test_a_combination_that_fell_together_with_an_arm_means_that_arm() -> None:
    made = plan() | {"factors": [{"name": "scale", "levels": ["on", "off", "half"], "baseline": "on"}]}
    made["arms"][3]["also"] = [{"norm": None, "scale": "half"}]
    assert _ids(made, "scale=half") == ["t003"]


@pytest.mark.parametrize(
    ("seeds", "trials"),
    [("0-2", [0, 1, 2]), ("0,3,5", [0, 3, 5]), (" 4 , 0-1", [0, 1, 4]), ([2], [2]), (range(4, 6), [4, 5])],
)
def test_seeds(seeds: str | Iterable[int], trials: list[int]) -> None:
    assert [number // 4 for number in chosen("baseline", seeds, 6)] == trials


@pytest.mark.parametrize(
    ("seeds", "text"),
    [
        ("7", "seed 7 is not in the plan; it has 0-5"),
        ("4-7", "seeds 6, 7 are not in the plan; it has 0-5"),
        ("0-99999999999", "seed 99999999999 is not in the plan; it has 0-5"),
        ([0, -1], "seed -1 is not in the plan; it has 0-5"),
        ("two", "`two` names no seeds; as `0-2`, which is 0, 1 and 2, or as `0,3,5`"),
        ("1,", "`1,` names no seeds; as `0-2`, which is 0, 1 and 2, or as `0,3,5`"),
        ("5-2", "`5-2` is a range that ends before it begins; `2-5`?"),
        ([], "no seed is named; the plan has 0-5"),
        (3, "the seeds 3 are one number; give a list: `seeds=[3]`"),
    ],
)
def test_seeds_that_are_not_there(seeds: Any, text: str) -> None:
    assert complaint(seeds=seeds) == text


def test_a_sweep_starts_what_is_chosen_and_the_rest_waits(study: StudyFolder) -> None:
    made = plan(seeds=3)
    run = Run(study, made, only=["placement=post"], seeds="1-2")
    assert [event.trial for event in run.of(TrialStarted)] == ["t005", "t006", "t009", "t010"]
    assert run.outcome.counts == Counts(planned=12, complete=4, diverged=0, failed=0, running=0, waiting=8)
    assert len(Run(study, made).of(TrialStarted)) == 8


def test_a_failed_trial_that_is_not_chosen_stays_failed(study: StudyFolder) -> None:
    made = make_plan([{"raises": "no", "attempts": [1]}] * 2)
    Run(study, made)
    run = Run(study, made, retry="failed", only="x=1")
    assert [event.trial for event in run.of(TrialStarted)] == ["t001"]
    assert run.outcome.counts == Counts(planned=2, complete=1, diverged=0, failed=1, running=0, waiting=0)


def test_a_failed_trial_that_the_limit_leaves_out_stays_failed(study: StudyFolder) -> None:
    made = make_plan([{"raises": "no", "attempts": [1]}] * 3)
    Run(study, made)
    assert preview(study, made, retry="failed", limit=1).total == Tally(anew=1, failed=2)
    run = Run(study, made, retry="failed", limit=1)
    assert run.outcome.counts == Counts(planned=3, complete=1, diverged=0, failed=2, running=0, waiting=0)
    assert run.outcome.exit_code == 1


def test_a_choice_that_is_wrong_writes_nothing(study: StudyFolder) -> None:
    with pytest.raises(InputError):
        Run(study, plan(), only="nonsense=1")
    assert not study.path.exists()
