"""``ablate compare``: what it prints, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.ablate.cli.conftest import Command
from tests.study_maker import HOSTILE, Outcome, make_study


def outcome(worse: float) -> Outcome:
    def value(arm: str, levels: Mapping[str, Any], seed: int) -> float:
        return 1.1 + worse + 0.001 * (seed % 2) if arm == "placement=post" else 1.0

    return value


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    given: dict[str, Any] = {"factors": {"placement": ["pre", "post"]}, "seeds": 4, "steps": 20}
    make_study(tmp_path / "a", outcomes=outcome(0), **given)
    make_study(tmp_path / "b", outcomes=outcome(0.05), **given | {"smallest_effect": 0.3})
    return tmp_path


def test_it_prints_differences_then_effects_then_flips(ablate: Command, studies: Path) -> None:
    shown = ablate("compare", "a", "b")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == (
        "A: a, 8 of 8 trials ended\n"
        "B: b, 8 of 8 trials ended\n"
        "\n"
        "what differs in the configuration:\n"
        "path                       A     B    arms\n"
        "objective.smallest_effect  0.02  0.3\n"
        "\n"
        "B minus A, val/loss in nats (less is better), on 4 common seeds; the 95% intervals hold together for 2 arms:\n"
        "arm             pairs     A     B  B - A        95% CI  verdict\n"
        "placement=post    4/4  1.10  1.15  +0.05  +0.05, +0.05  no practical difference\n"
        "baseline          4/4  1.00  1.00  +0.00  +0.00, +0.00  identical\n"
        "\n"
        "flipped: placement=post: worse -> no practical difference, since the smallest effect that matters is 0.3, it "
        "was 0.02\n"
        "note: B's objective judges: goal min, smallest effect that matters 0.3.\n"
        "note: 2 arms of 2 have the same configuration in both: what differs in them comes from the code, the versions "
        "or the machine.\n"
    )


def test_it_fails_on_what_ci_asks_for(ablate: Command, studies: Path) -> None:
    assert ablate("compare", "a", "b", "--fail-on", "worse").returncode == 0
    shown = ablate("compare", "a", "b", "--fail-on", "flip", "--fail-on", "worse")
    assert (shown.returncode, shown.stderr) == (1, "--fail-on flip: placement=post\n")
    back = ablate("compare", "b", "a", "--fail-on", "worse")  # A's objective judges, and nothing is worse there
    assert back.returncode == 0
    make_study(studies / "c", factors={"placement": ["pre", "post"]}, seeds=4, steps=20, outcomes=outcome(0.2))
    shown = ablate("compare", "a", "c", "--fail-on", "worse")
    assert (shown.returncode, shown.stderr) == (1, "--fail-on worse: placement=post\n")
    assert "worse" in shown.stdout
    assert ablate("compare", "a", "c", "--fail-on", "nothing").returncode == 2


def test_json_has_everything_and_no_nan(ablate: Command, studies: Path) -> None:
    make_study(studies / "one", factors={"placement": ["pre", "post"]}, seeds=1, steps=20, failed=[("baseline", 0)])

    def never(text: str) -> None:
        raise AssertionError(text)

    shown = ablate("compare", "a", "one", "--json", "--fail-on", "flip")
    told = json.loads(shown.stdout, parse_constant=never)
    assert shown.returncode == 1
    assert told["a"] == {"folder": "a", "name": "quickstart", "complete": True}
    assert told["seeds"] == [0]
    assert [row["path"] for row in told["differences"]] == ["seeds"]
    by_name = {row["name"]: row for row in told["effects"]}
    assert (by_name["placement=post"]["low"], by_name["placement=post"]["pairs"]) == (None, 1)
    assert (by_name["baseline"]["effect"], by_name["baseline"]["verdict"]) == (None, "undecided")
    (flip,) = told["verdicts"]
    assert (flip["a"], flip["b"], flip["why"]) == ("worse", "undecided", "1 of 1 seeds of baseline failed")
    assert told["flip"] == ["placement=post"]


@pytest.mark.parametrize(("a", "b", "text"), [("a", "a", "are one study"), ("a", "far", "no seed is in both")])
def test_what_cannot_be_paired_exits_3(ablate: Command, studies: Path, a: str, b: str, text: str) -> None:
    make_study(studies / "far", factors={"placement": ["pre", "post"]}, seeds=[8], steps=20)
    shown = ablate("compare", a, b)
    assert (shown.returncode, shown.stdout) == (3, "")
    assert shown.stderr.startswith("refused: ")
    assert text in shown.stderr
    assert "message" in json.loads(ablate("compare", a, b, "--json").stdout)["error"]


def test_a_study_that_is_not_there_is_an_error(ablate: Command, studies: Path) -> None:
    shown = ablate("compare", "a", "nowhere")
    assert shown.returncode == 2
    assert shown.stderr.startswith("error[S401]: ")


def test_hostile_names_are_plain_text(ablate: Command, tmp_path: Path) -> None:
    for name in "ab":
        make_study(tmp_path / name, factors={"placement": ["pre", HOSTILE + "\x1b[31m"]}, seeds=2, steps=20)
    shown = ablate("compare", "a", "b")
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout
    assert "\u202e" not in shown.stdout
    assert "{{ 7*7 }}" in shown.stdout
