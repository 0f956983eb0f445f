"""Where memory is too short for a batch it goes through in parts, and the trial stays the same."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from ablate.records.layout import TrialFolder, read_json
from ablate.records.sealing import write_json
from ablate.records.series import read_series
from ablate.registry import Registry
from ablate.training.out_of_memory import OutOfMemoryError, ran_out_of_memory
from ablate.training.trial import train
from ablate_plugins.probe import AttentionShape
from ablate_plugins.task.copying import Copy
from tests.ablate.training.short_of_memory import Tight
from tests.trial_maker import make_trial

NORM = ("fits", "evaluates", "leaks", "counts", "short_at")
REGISTRY = Registry.installed()
REGISTRY.add_file(Path(__file__).with_name("short_of_memory.py"))


@pytest.fixture(autouse=True)
def _nothing_seen() -> Iterator[None]:
    _passes().clear()
    yield
    _passes().clear()


def _passes() -> list[tuple[bool, int]]:
    """What the norm that the registry knows has seen; a plugin's file is a module of its own."""
    norm: Any = REGISTRY.get("norm", "short_of_memory")
    passes: list[tuple[bool, int]] = norm.build.__globals__["Tight"].passes
    assert passes is not Tight.passes
    return passes


def sizes(*, training: bool = True) -> list[int]:
    """How many sequences each pass took, through the first norm of the model alone."""
    return [size for trained, size in _passes() if trained is training]


def short(path: Path, *, batch: int = 4, model: dict[str, Any] | None = None, **options: Any) -> TrialFolder:
    """A trial whose norms say that memory is short; one norm in all, so that passes are easy to count."""
    norm = {name: options.pop(name) for name in NORM if name in options}
    made = {"depth": 1, "placement": "none", "norm": {"kind": "short_of_memory", **norm}} | (model or {})
    return make_trial(path, model=made, training={"batch": batch}, **({"steps": 6, "evaluations": 1} | options))


def numbers(folder: TrialFolder) -> tuple[dict[str, float], pd.DataFrame, pd.DataFrame]:
    record = read_json(folder.result)
    curves, probes = (read_series(folder.path / record["files"][name]).to_pandas() for name in ("curves", "probes"))
    return record["metrics"], curves, probes


def assert_alike(one: TrialFolder, other: TrialFolder) -> None:
    """The same results up to rounding, every loss, gradient norm and reading among them."""
    (metrics, curves, probes), (theirs, other_curves, other_probes) = numbers(one), numbers(other)
    assert metrics == pytest.approx(theirs, rel=2e-6)
    for mine, its in ((curves, other_curves), (probes, other_probes)):
        columns = [column for column in mine.columns if column != "value"]
        pd.testing.assert_frame_equal(mine[columns], its[columns])
        of_all = ~mine["metric"].isin(AttentionShape.units)  # those are of the first micro-batch alone
        np.testing.assert_allclose(mine["value"][of_all], its["value"][of_all], rtol=1e-4, atol=1e-3)
    losses = curves["metric"] == "train/loss"
    np.testing.assert_allclose(curves["value"][losses], other_curves["value"][losses], rtol=2e-6)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_batch_in_parts_trains_as_the_whole_one(tmp_path: Path, dropout: float) -> None:
    whole, parts = (
        short(tmp_path / name, fits=fits, model={"dropout": dropout}) for name, fits in (("a", 4), ("b", 2))
    )
    assert train(whole, 1, REGISTRY) == "complete"
    assert sizes() == [4] * 6
    _passes().clear()
    assert train(parts, 1, REGISTRY) == "complete"
    assert sizes() == [4, *[2] * 12]  # once too many, and then two parts a step
    assert_alike(parts, whole)
    assert read_json(whole.result)["micro_batch"] is None
    assert read_json(parts.result)["micro_batch"] == 2
    assert read_json(parts.result)["tokens"] == read_json(whole.result)["tokens"]


def test_targets_that_are_ignored_count_nowhere(tmp_path: Path) -> None:
    whole, parts = (
        short(tmp_path / name, fits=fits, model={"kind": "encoder_decoder"}) for name, fits in (("a", 4), ("b", 1))
    )
    task = Copy(symbols=4, length=8, shortest=2, samples=16)
    for folder in (whole, parts):
        config = read_json(folder.config)
        config["config"]["task"] = task.model_dump(mode="json")
        write_json(folder.config, config | {"data": {"hash": task.load(".").digest}})
        assert train(folder, 1, REGISTRY) == "complete"
    assert read_json(parts.result)["micro_batch"] == 1
    assert_alike(parts, whole)


def test_a_batch_that_does_not_halve_evenly(tmp_path: Path) -> None:
    whole, parts = (short(tmp_path / name, batch=5, fits=fits) for name, fits in (("a", 5), ("b", 2)))
    for folder in (whole, parts):
        _passes().clear()
        assert train(folder, 1, REGISTRY) == "complete"
    assert sizes() == [5, *[2, 2, 1] * 6]
    assert_alike(parts, whole)


def test_evaluation_takes_fewer_sequences_at_once_too(tmp_path: Path) -> None:
    twice: dict[str, Any] = {"steps": 2, "evaluations": 2}
    whole, parts = (short(tmp_path / name, evaluates=rows, **twice) for name, rows in (("a", 1000), ("b", 3)))
    for folder in (whole, parts):
        _passes().clear()
        assert train(folder, 1, REGISTRY) == "complete"
    assert read_json(parts.result)["metrics"] == pytest.approx(read_json(whole.result)["metrics"], rel=1e-6)
    assert read_json(parts.result)["micro_batch"] is None
    assert sizes(training=False) == [8, 4, *[2] * 4, *[2] * 4]


def test_it_is_told_at_once_and_kept_in_the_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = short(tmp_path / "trial", fits=2)
    news: list[tuple[Any, ...]] = []
    asked = iter(range(100))
    found = train(
        folder, 1, REGISTRY, on_progress=lambda *told: news.append(told), should_stop=lambda: next(asked) == 3
    )
    assert found == "interrupted"
    assert [(step, steps, micro_batch) for step, steps, *_, micro_batch in news] == [(1, 6, 2)]
    assert caplog.messages == [
        "out of memory at step 0 with 4 sequences at a time: the trial goes on with a micro-batch of 2; the batch of "
        "4 stays the same"
    ]
    assert sizes() == [4, *[2] * 8]
    assert train(folder, 2, REGISTRY) == "complete"
    assert sizes() == [4, *[2] * 12]  # the large one is not tried again

    undisturbed = short(tmp_path / "undisturbed", fits=2)
    assert train(undisturbed, 1, REGISTRY) == "complete"
    (metrics, curves, probes), (theirs, other_curves, other_probes) = numbers(folder), numbers(undisturbed)
    assert metrics == theirs
    pd.testing.assert_frame_equal(curves, other_curves)
    pd.testing.assert_frame_equal(probes, other_probes)


@pytest.mark.parametrize(("checkpoint_seconds", "again"), [(0.0, 2), (3600.0, 6)])
def test_where_the_state_before_the_step_is_lost_it_goes_on_from_the_newest_checkpoint(
    tmp_path: Path, checkpoint_seconds: float, again: int
) -> None:
    whole = short(tmp_path / "whole")
    assert train(whole, 1, REGISTRY) == "complete"
    _passes().clear()
    parts = short(tmp_path / "parts", counts=True, short_at=5, checkpoint_seconds=checkpoint_seconds)
    assert train(parts, 1, REGISTRY) == "complete"
    assert sizes() == [4] * 5 + [2] * 2 * again
    assert_alike(parts, whole)
    assert read_json(parts.result)["attempt"] == 1


def test_memory_that_is_too_short_for_one_sequence_is_an_error(tmp_path: Path) -> None:
    folder = short(tmp_path / "trial", fits=0)
    with pytest.raises(OutOfMemoryError) as raised:
        train(folder, 1, REGISTRY)
    assert str(raised.value) == "even with a micro-batch of 1: 1 sequences do not fit"
    assert ran_out_of_memory(raised.value)
    assert sizes() == [4, 2, 1]
    assert not folder.result.exists()


def test_a_single_sequence_that_cannot_be_evaluated_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutOfMemoryError) as raised:
        train(short(tmp_path / "trial", evaluates=0), 1, REGISTRY)
    assert str(raised.value) == "in the evaluation of one sequence: 1 sequences do not fit"
    assert sizes(training=False) == [8, 4, 2, 1]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"leaks": True}, "norm `short_of_memory` sees the whole batch in training"),
        (
            {"model": {"feed_forward": "mixture_of_experts"}},
            "`block.0.feed_forward.balance` adds to the loss what it sees in the whole batch",
        ),
    ],
)
def test_a_batch_that_means_something_as_a_whole_is_not_split(
    tmp_path: Path, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(OutOfMemoryError) as raised:
        train(short(tmp_path / "trial", fits=2, **options), 1, REGISTRY)
    assert str(raised.value) == f"the batch of 4 is not split, since {why}: 4 sequences do not fit"
    assert sizes() == [4]


def chained(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def of_the_cpu() -> Exception:
    try:
        torch.empty(1 << 46)
    except RuntimeError as error:
        return error
    raise AssertionError


def of_numpy() -> Exception:
    try:
        np.empty(1 << 50)
    except MemoryError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    ("error", "so"),
    [
        (of_the_cpu(), True),
        (of_numpy(), True),
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (chained(ValueError("a batch"), MemoryError()), True),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (ValueError("out of memory"), False),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (chained(ValueError(), KeyError()), False),
    ],
)
def test_what_says_that_memory_is_short(error: Exception, so: bool) -> None:
    assert ran_out_of_memory(error) is so
