"""What is said while a plan takes long."""

from __future__ import annotations

import io
import json
import math
import threading
from pathlib import Path

import pytest

import ablate
from ablate.api import dry_run
from ablate.cli.output import Planning, print_json
from tests.ablate.experiment.maker import write


class Heard(io.StringIO):
    """A stream that tells when something has been written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.once = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        self.once.set()
        return written


def test_a_long_plan_says_how_far_it_is_also_within_one_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    monkeypatch.setattr("sys.stderr", heard)
    with Planning(first=0.0, every=1000.0) as planning:
        planning(1200, 4800)
        assert heard.once.wait(60)
        planning(1201, 4800)
    assert heard.getvalue() == "planning: 1,200 of 4,800 arms\n"


def test_json_has_null_for_what_is_not_finite(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"low": -math.inf, "all": [1.5, math.nan, {"p": (math.inf, True, "x")}]})
    assert json.loads(capsys.readouterr().out) == {"low": None, "all": [1.5, None, {"p": [None, True, "x"]}]}


def test_a_short_plan_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Planning(first=1000.0) as planning:
        planning(0, 2)
        planning(1, 2)
    with Planning():
        pass
    assert capsys.readouterr() == ("", "")


def test_every_arm_of_a_plan_is_told_until_all_are_done(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = write(tmp_path)
    ablate.plan(path, on_arm=lambda done, arms: told.append((done, arms)))
    assert told == [(0, 3), (0, 3), (1, 3), (1, 3), (2, 3), (2, 3), (3, 3)]
    again: list[tuple[int, int]] = []
    dry_run(path, runs=tmp_path, on_arm=lambda done, arms: again.append((done, arms)))
    assert again == told
