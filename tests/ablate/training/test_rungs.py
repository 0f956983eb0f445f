"""A tuning trial that pauses at rungs ends as one that never paused, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ablate.records.layout import TrialFolder, read_json
from ablate.records.sealing import write_json
from ablate.registry import Registry
from ablate.training.trial import train
from tests.trial_maker import make_trial

REGISTRY = Registry.installed()
DROPOUT = {"dropout": 0.1}


def pausing_at(folder: TrialFolder, step: int | None, rungs: list[int]) -> TrialFolder:
    """The trial's configuration as the driver writes it for its next part."""
    config = read_json(folder.config)
    kept = {key: value for key, value in config["observe"].items() if key != "pause_at"}
    observe = kept | {"rungs": rungs, "objective": "val/loss"}
    write_json(folder.config, config | {"observe": observe | ({} if step is None else {"pause_at": step})})
    return folder


def metrics(folder: TrialFolder) -> Any:
    return read_json(folder.result)["metrics"]


def test_parts_make_the_whole(tmp_path: Path) -> None:
    whole = make_trial(tmp_path / "whole", steps=40, model=DROPOUT)
    assert train(whole, 1, REGISTRY) == "complete"
    parted = make_trial(tmp_path / "parted", steps=40, model=DROPOUT)
    for attempt, step in enumerate((7, 20), 1):
        assert train(pausing_at(parted, step, [7, 20]), attempt, REGISTRY) == "paused"
        told = read_json(parted.attempt(attempt).rung)
        assert (told["step"], told["metrics"].keys()) == (step, metrics(whole).keys())
    assert train(pausing_at(parted, None, [7, 20]), 3, REGISTRY) == "complete"
    assert metrics(parted) == metrics(whole)
    assert [step for step, _ in read_json(parted.result)["rungs"]] == [7, 20]


def test_a_trial_that_was_stopped_at_its_rung_only_tells_what_it_came_to(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial", steps=40)
    train(pausing_at(folder, 7, [7]), 1, REGISTRY)
    told = read_json(folder.attempt(1).rung)
    folder.attempt(1).rung.unlink()  # as if it had been killed before it could tell
    steps: list[int] = []
    assert train(folder, 2, REGISTRY, on_progress=lambda *news: steps.append(news[0])) == "paused"
    assert read_json(folder.attempt(2).rung) == told
    assert steps == []


def test_a_trial_that_was_past_the_rung_before_it_was_one_begins_anew(tmp_path: Path) -> None:
    fresh = make_trial(tmp_path / "fresh", steps=40)
    train(pausing_at(fresh, 7, [7]), 1, REGISTRY)
    folder = make_trial(tmp_path / "trial", steps=40)
    asked = iter([False] * 9 + [True] * 99)
    assert train(folder, 1, REGISTRY, should_stop=lambda: next(asked)) == "interrupted"
    assert train(pausing_at(folder, 7, [7]), 2, REGISTRY) == "paused"
    assert read_json(folder.attempt(2).rung) == read_json(fresh.attempt(1).rung)
