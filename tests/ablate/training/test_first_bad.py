"""Where a diverged trial broke first, found by trials that really diverge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.records.layout import read_json
from ablate.records.sealing import write_json
from ablate.registry import Registry
from ablate.training import checkpoints
from ablate.training.trial import train
from tests.trial_maker import make_trial

PLUGIN = '''
"""Parts that break, each in its own way."""

import weakref
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from ablate.slots import FeedForward, Loss, Site


class _Breaks(nn.Module):
    kept: ClassVar[list[int]] = []
    """Of every pass in training, how many inputs of earlier ones were still there."""

    def __init__(self, width: int, how: str) -> None:
        super().__init__()
        self.seen = []
        self.w = nn.Linear(width, width)
        self.how = how

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.how:
            self.kept.append(sum(each() is not None for each in self.seen))
            self.seen.append(weakref.ref(x))
        y: Tensor = self.w(x)
        if self.how == "forward":
            return y / 0 * 0
        if self.how == "backward":
            return y + (y * 0).sqrt()
        if self.how == "large":
            return y * 1e6
        if self.how == "masked":
            return y + torch.full_like(y, -torch.inf).exp()
        return y


class Breaks(FeedForward):
    """A linear map that breaks in one block."""

    kind: Literal["breaks"] = "breaks"
    how: str = ""
    layer: int = 1

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D)."""
        return _Breaks(at.width, self.how if at.block == self.layer else "")


class Endless(Loss):
    """A loss without an end."""

    kind: Literal["endless"] = "endless"

    def measure(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Always infinite."""
        return logits.sum() * torch.inf
'''
CONSTANT: dict[str, Any] = {"schedule": "constant", "clip": None}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """The installed components and those that break."""
    file = tmp_path_factory.mktemp("plugin") / "breaks.py"
    file.write_text(PLUGIN, encoding="utf-8")
    found = Registry.installed()
    found.add_file(file)
    found.add_file(Path(__file__).with_name("short_of_memory.py"))
    return found


def broken(how: str, layer: int = 1) -> dict[str, Any]:
    """A model whose feed-forward network breaks in one block."""
    return {"feed_forward": {"kind": "breaks", "how": how, "layer": layer}}


def found_in(path: Path, registry: Registry, **trial: Any) -> tuple[Any, Any]:
    """Train until it diverges; its reason and its first bad value."""
    folder = make_trial(path, **{"steps": 30, **trial})
    assert train(folder, 1, registry) == "diverged"
    record = read_json(folder.result)
    return record["reason"], record["first_bad"]


@pytest.mark.parametrize("layer", [0, 1])
def test_the_first_module_whose_output_is_not_finite(tmp_path: Path, registry: Registry, layer: int) -> None:
    reason, bad = found_in(tmp_path / "trial", registry, model=broken("forward", layer))
    assert reason == {"rule": "nonfinite", "step": 0}
    assert bad == {"step": 0, "module": f"block.{layer}.feed_forward", "what": "output"}


@pytest.mark.parametrize("layer", [0, 1])
def test_the_step_before_is_to_blame_where_its_gradients_are_not_finite(
    tmp_path: Path, registry: Registry, layer: int
) -> None:
    # The slope of the root at 0 is infinite; the residual beside it and all that lies before it get NaN from it.
    reason, bad = found_in(tmp_path / "trial", registry, model=broken("backward", layer))
    assert reason == {"rule": "nonfinite", "step": 1}
    assert bad == {"step": 0, "module": f"block.{layer}.feed_forward", "what": "gradient"}


def test_an_update_that_leaves_the_range_of_numbers(tmp_path: Path, registry: Registry) -> None:
    training = CONSTANT | {"optimizer": {"kind": "adamw", "lr": 1e39}}
    reason, bad = found_in(tmp_path / "trial", registry, training=training)
    assert reason == {"rule": "nonfinite", "step": 1}
    assert bad == {"step": 0, "module": "embed", "what": "update"}


def test_a_loss_that_is_not_finite_by_itself(tmp_path: Path, registry: Registry) -> None:
    reason, bad = found_in(tmp_path / "trial", registry, training={"loss": "endless"})
    assert reason == {"rule": "nonfinite", "step": 0}
    assert bad == {"step": 0, "module": None, "what": "loss"}


def test_an_evaluation_alone_that_is_not_finite(tmp_path: Path, registry: Registry) -> None:
    training = CONSTANT | {"optimizer": {"kind": "adamw", "lr": 1e30}}
    reason, bad = found_in(tmp_path / "trial", registry, steps=1, training=training, evaluations=1)
    assert reason == {"rule": "nonfinite", "step": 1}
    assert (bad["step"], bad["what"]) == (1, "output")
    assert bad["module"].startswith("block.0.")


def test_a_loss_over_its_limit_names_what_is_out_of_range(tmp_path: Path, registry: Registry) -> None:
    training = CONSTANT | {"optimizer": {"kind": "adamw", "lr": 3.0}}
    diverged = {"patience": 5}
    reason, bad = found_in(tmp_path / "trial", registry, model=broken("large"), training=training, diverged=diverged)
    assert reason["rule"] == "loss_above_initial"
    assert bad == {"step": reason["step"] - 4, "module": "block.1.feed_forward", "what": "out_of_range"}


def test_what_masks_is_not_to_blame(tmp_path: Path, registry: Registry) -> None:
    training = CONSTANT | {"optimizer": {"kind": "adamw", "lr": 1e39}}
    _, bad = found_in(tmp_path / "trial", registry, model=broken("masked"), training=training)
    assert bad["what"] == "update"


def test_it_is_the_same_from_any_checkpoint_and_after_an_interruption(tmp_path: Path, registry: Registry) -> None:
    trial: dict[str, Any] = {
        "steps": 100,
        "model": {"placement": "none", "norm": "none"},
        "training": CONSTANT | {"optimizer": {"kind": "adamw", "lr": 1.0}},
        "diverged": {"patience": 5},
    }
    calls = 0

    def count() -> bool:
        nonlocal calls
        calls += 1
        return False

    whole = make_trial(tmp_path / "whole", **trial)
    assert train(whole, 1, registry, should_stop=count) == "diverged"
    expected = read_json(whole.result)
    assert expected["first_bad"]["module"]

    often = make_trial(tmp_path / "often", **trial, checkpoint_seconds=1e-9)
    assert train(often, 1, registry, should_stop=often.attempt(1).curves.exists) == "interrupted"  # in the replay
    kept = checkpoints.newest(often)
    assert kept
    assert kept["done"] == expected["reason"]["step"] - 4  # none since the first loss over the limit
    assert train(often, 2, registry) == "diverged"

    left = make_trial(tmp_path / "left", **trial)
    asked = iter([False] * (calls - 1) + [True])
    assert train(left, 1, registry, should_stop=lambda: next(asked)) == "interrupted"
    assert not left.result.exists()
    assert train(left, 2, registry) == "diverged"

    for folder in (often, left):
        record = read_json(folder.result)
        for key in ("reason", "first_bad", "steps", "metrics", "facts"):
            assert record[key] == expected[key], key


def test_what_is_found_when_a_stop_comes_is_kept_and_its_time_is_in_the_record(
    tmp_path: Path, registry: Registry
) -> None:
    folder = make_trial(tmp_path / "trial", steps=30, training=CONSTANT | {"loss": "endless"})
    assert train(folder, 1, registry, should_stop=folder.attempt(1).curves.exists) == "diverged"
    record = read_json(folder.result)
    assert record["first_bad"] == {"step": 0, "module": None, "what": "loss"}
    assert record["replay_seconds"] > 0


@pytest.mark.parametrize("how", ["timed_out", "interrupted"])
def test_a_trial_that_has_diverged_before_it_is_left_is_at_its_end(
    tmp_path: Path, registry: Registry, how: str
) -> None:
    folder = make_trial(tmp_path / "trial", steps=30, training=CONSTANT | {"loss": "endless"})
    config = read_json(folder.config)
    config["observe"]["trial_timeout"] = 1e-9 if how == "timed_out" else None
    write_json(folder.config, config)
    assert train(folder, 1, registry, should_stop=lambda: how == "interrupted") == "diverged"
    assert not folder.attempt(1).end.exists()
    assert checkpoints.newest(folder) is None
    assert read_json(folder.result)["first_bad"]["what"] == ("out_of_time" if how == "timed_out" else "loss")


class Clock:
    """A clock by which 1,000 seconds pass between two looks."""

    now = 0.0

    def perf_counter(self) -> float:
        self.now += 1000
        return self.now


def test_a_replay_ends_with_the_time_of_the_trial(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial: dict[str, Any] = {
        "steps": 100,
        "model": {"placement": "none", "norm": "none"},
        "training": CONSTANT | {"optimizer": {"kind": "adamw", "lr": 1.0}},
        "diverged": {"patience": 5},
    }
    found = []
    for looks in (3, 100):  # the watch looks when it is made, before the replay and after each step
        clock = Clock()
        monkeypatch.setattr("ablate.training.first_bad.time", clock)
        folder = make_trial(tmp_path / f"trial{looks}", **trial)
        config = read_json(folder.config)
        config["observe"]["trial_timeout"] = 1000.0 * looks - 1500
        write_json(folder.config, config)
        assert train(folder, 1, registry) == "diverged"
        record = read_json(folder.result)
        assert record["replay_seconds"] > 0
        found.append((record["first_bad"]["what"], clock.now / 1000))
    assert found == [("out_of_time", 3), ("out_of_range", 3)]


def test_micro_batches_are_watched_one_at_a_time(tmp_path: Path, registry: Registry) -> None:
    norm = {"kind": "short_of_memory", "fits": 2}
    model = broken("backward") | {"placement": "none", "norm": norm}
    part: Any = registry.get("feed_forward", "breaks")
    kept: list[int] = part.build.__globals__["_Breaks"].kept
    kept.clear()
    _, bad = found_in(tmp_path / "trial", registry, model=model)
    assert bad == {"step": 0, "module": "block.1.feed_forward", "what": "gradient"}
    assert not any(kept)


def test_a_tuning_trial_is_not_replayed(tmp_path: Path, registry: Registry) -> None:
    folder = make_trial(tmp_path / "trial", steps=30, model=broken("forward"))
    config = read_json(folder.config)
    write_json(folder.config, config | {"observe": config["observe"] | {"first_bad": False}})
    assert train(folder, 1, registry) == "diverged"
    assert "first_bad" not in read_json(folder.result)


def test_a_replay_that_fails_costs_no_result(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(network: Any) -> Any:
        raise RuntimeError("no replay today")

    monkeypatch.setattr("ablate.training.trial.beginning", fail)
    reason, bad = found_in(tmp_path / "trial", registry, model=broken("forward"))
    assert (reason, bad) == ({"rule": "nonfinite", "step": 0}, None)
    assert "the step that diverged cannot be replayed: no replay today" in caplog.text


def test_a_trial_that_completes_is_not_replayed(tmp_path: Path, registry: Registry) -> None:
    folder = make_trial(tmp_path / "trial", steps=5)
    assert train(folder, 1, registry) == "complete"
    assert "first_bad" not in read_json(folder.result)
