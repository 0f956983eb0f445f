"""A trial that goes on from where the same trial of fewer steps ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.records.layout import TrialFolder, read_json
from ablate.records.sealing import write_json
from ablate.records.series import read_series
from ablate.records.usage import trained_seconds
from ablate.registry import Registry
from ablate.training import checkpoints
from ablate.training.trial import train
from tests.trial_maker import make_trial

REGISTRY = Registry.installed()
DROPOUT = {"dropout": 0.1, "mixer": {"kind": "attention", "heads": 2, "dropout": 0.1}}


def trial(path: Path, steps: int, **more: Any) -> TrialFolder:
    """A trial of a constant rate, with dropout."""
    return make_trial(path, steps=steps, model=DROPOUT, training={"schedule": "constant"}, **more)


def losses(folder: TrialFolder) -> list[float]:
    curves = read_series(folder.path / read_json(folder.result)["files"]["curves"]).to_pandas()
    return list(curves.query("metric == 'train/loss'")["value"])


def test_a_chain_of_longer_trials_ends_where_one_from_the_start_does_bit_for_bit(tmp_path: Path) -> None:
    whole = trial(tmp_path / "whole", 40)
    assert train(whole, 1, REGISTRY) == "complete"
    before = None
    for steps in (10, 20, 40):
        folder = trial(tmp_path / f"steps{steps}", steps, continues=before)
        assert train(folder, 1, REGISTRY) == "complete"
        record = read_json(folder.result)
        assert record["steps"] == len(losses(folder)) == steps
        assert record.get("continued_from", {}).get("trial") == before
        before = folder.id
    assert record["continued_from"]["steps"] == 20
    assert record["metrics"] == read_json(whole.result)["metrics"]
    assert record["facts"] == read_json(whole.result)["facts"]
    assert losses(folder) == losses(whole)
    earlier = read_json(tmp_path / "steps20" / "result.json")["seconds"]
    assert record["continued_from"]["seconds"] == earlier < record["seconds"]
    assert trained_seconds(folder) == pytest.approx(record["seconds"] - earlier)  # the budget counts no step twice


def test_the_time_of_the_shorter_trial_is_none_of_the_longer_ones_limit(tmp_path: Path) -> None:
    short = trial(tmp_path / "short", 10)
    train(short, 1, REGISTRY)
    state = checkpoints.newest(short)
    assert state
    slow = {**state, "history": {**state["history"], "seconds": 1000.0}}
    checkpoints.save(short.attempt(1), slow, last=True)
    folder = trial(tmp_path / "long", 20, continues="short")
    config = read_json(folder.config)
    write_json(folder.config, config | {"observe": config["observe"] | {"trial_timeout": 500.0}})
    assert train(folder, 1, REGISTRY) == "complete"
    assert trained_seconds(folder) < 500


def test_what_goes_on_is_told_apart_after_an_interruption_too(tmp_path: Path) -> None:
    train(trial(tmp_path / "short", 10), 1, REGISTRY)
    folder = trial(tmp_path / "long", 30, continues="short")
    asked = iter([False] * 5 + [True])
    assert train(folder, 1, REGISTRY, should_stop=lambda: next(asked)) == "interrupted"
    state = checkpoints.newest(folder)
    assert state
    assert state["done"] == 16
    noted = read_json(folder.attempt(1).checkpoint_step)
    assert noted["seconds"] == pytest.approx(
        state["history"]["seconds"] - read_json(tmp_path / "short" / "result.json")["seconds"]
    )
    assert train(folder, 2, REGISTRY) == "complete"
    begun = read_json(folder.result)["continued_from"]
    assert (begun["trial"], begun["steps"]) == ("short", 10)


@pytest.mark.parametrize("harm", ["torn", "gone"])
def test_without_a_checkpoint_that_can_be_read_it_is_trained_from_the_start(
    tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    short = trial(tmp_path / "short", 6)
    train(short, 1, REGISTRY)
    checkpoint = short.attempt(1).checkpoint
    if harm == "torn":
        checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
    else:
        checkpoint.unlink()
    folder = trial(tmp_path / "long", 12, continues="short")
    assert train(folder, 1, REGISTRY) == "complete"
    assert "continued_from" not in read_json(folder.result)
    assert caplog.messages[-1] == "no checkpoint of trial short can be used, so this trial is trained from the start"


def test_what_is_sealed_keeps_one_checkpoint_and_no_older_one(tmp_path: Path) -> None:
    folder = trial(tmp_path / "trial", 10)
    asked = iter([False] * 3 + [True])
    assert train(folder, 1, REGISTRY, should_stop=lambda: next(asked)) == "interrupted"
    assert train(folder, 2, REGISTRY) == "complete"
    assert sorted(path.name for path in folder.attempt(1).path.iterdir()) == []
    assert read_json(folder.attempt(2).checkpoint_step)["step"] == 10
    state = checkpoints.newest(folder)
    assert state
    assert state["done"] == 10


def test_a_kill_between_the_last_checkpoint_and_the_result_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> bool:
        raise KeyboardInterrupt

    whole, folder = trial(tmp_path / "whole", 10), trial(tmp_path / "trial", 10)
    train(whole, 1, REGISTRY)
    with monkeypatch.context() as patched:
        patched.setattr("ablate.training.trial.seal", killed)
        with pytest.raises(KeyboardInterrupt):
            train(folder, 1, REGISTRY)
    assert not folder.result.exists()
    assert train(folder, 2, REGISTRY) == "complete"
    record = read_json(folder.result)
    assert (record["attempt"], record["metrics"]) == (2, read_json(whole.result)["metrics"])
    assert not folder.attempt(1).checkpoint.exists()
    state = checkpoints.newest(folder)
    assert state
    assert state["done"] == 10


def test_no_checkpoint_is_kept_where_none_is_wanted_or_the_trial_diverged(tmp_path: Path) -> None:
    unwanted = trial(tmp_path / "unwanted", 10, keep_checkpoints=False)
    asked = iter([False] * 3 + [True])
    train(unwanted, 1, REGISTRY, should_stop=lambda: next(asked))
    assert unwanted.attempt(1).checkpoint.exists()
    assert train(unwanted, 2, REGISTRY) == "complete"
    diverged = trial(
        tmp_path / "diverged", 30, checkpoint_seconds=1e-9, diverged={"loss_above_initial": 1e-9, "patience": 1}
    )
    config = read_json(diverged.config)
    config["config"]["training"] |= {"optimizer": {"kind": "adamw", "lr": 1e3}, "clip": None}
    write_json(diverged.config, config)
    assert train(diverged, 1, REGISTRY) == "diverged"
    for folder in (unwanted, diverged):
        assert list(folder.path.rglob("checkpoint*")) == []
