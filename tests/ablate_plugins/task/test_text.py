"""The text task: real text, cut without leaking, and clear words for what cannot be used."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from ablate.errors import InputError
from ablate.model.keys import generator
from ablate.slots import Batch, Interface
from ablate_plugins.task.text import Text

ALPHABET = "".join(chr(ord("a") + index % 26) for index in range(5000))


def tokens(batch: Batch) -> Tensor:
    """Every token that is in the batch, as an input or a target."""
    return torch.cat([*batch.inputs, batch.targets], 1)


def test_python_docs_are_half_a_million_characters_of_prose_and_code() -> None:
    data = Text(source="python-docs", context=64).load(".")
    assert data.facts["characters"] > 400_000
    assert 3.0 < data.facts["unigram_entropy"] < 3.5
    assert data.interface == Interface(64, int(data.facts["vocabulary"]))


def test_the_digest_of_characters_is_that_of_the_text_and_never_changes() -> None:
    digest = "de6e4191ff15d0483f8e393f013d7716ec326b9fa70749f8ece35d0f7dbed46a"
    assert Text(text=ALPHABET, context=16).load(".").digest == digest


def test_targets_follow_inputs_by_one() -> None:
    data = Text(source="python-docs", context=32).load(".")
    for (inputs,), targets in [data.batch(8, generator(0)), *data.evaluation(16)]:
        assert torch.equal(inputs[:, 1:], targets[:, :-1])
        assert inputs.shape[1] == 32


def test_training_windows_never_touch_the_validation_blocks() -> None:
    # Each token is its own position, so that a window says where it is from.
    text = "".join(chr(0x4E00 + index) for index in range(10_000))
    data = Text(text=text, context=16, windows=10_000).load(".")
    trained = torch.cat([tokens(data.batch(512, generator(0, step))) for step in range(200)]).unique()
    held_out = torch.cat([tokens(batch) for batch in data.evaluation(64)]).unique()
    assert not set(trained.tolist()) & set(held_out.tolist())
    assert len(trained) > 8_900
    assert 900 <= len(held_out) <= 1_000


def test_windows_are_stretches_of_the_text() -> None:
    text = "".join(chr(0x4E00 + index) for index in range(10_000))
    data = Text(text=text, context=16, windows=50).load(".")
    for (inputs,), _ in [data.batch(256, generator(0)), *data.evaluation(50)]:
        assert torch.equal(inputs.diff(dim=1), torch.ones_like(inputs)[:, 1:])


def test_evaluation_is_spread_over_the_validation_text_and_has_the_wanted_size() -> None:
    data = Text(source="python-docs", context=64, windows=100).load(".")
    assert sum(len(inputs) for (inputs,), _ in data.evaluation(7)) == 100


def test_unigram_entropy_is_that_of_the_training_text() -> None:
    data = Text(text="ab" * 500, context=4, windows=4).load(".")
    assert data.facts["unigram_entropy"] == pytest.approx(math.log(2), abs=1e-3)


def test_loss_is_in_nats_and_in_bits() -> None:
    task, zeros = Text(source="python-docs"), torch.zeros(2, 3, dtype=torch.long)
    even = nn.Embedding.from_pretrained(torch.zeros(8, 8))
    totals = {name: float(value) for name, value in task.tally(even, Batch((zeros,), zeros)).items()}
    assert totals["nats"] == pytest.approx(6 * math.log(8))
    assert [totals[name] for name in ("count", "characters", "bytes")] == [6, 6, 6]
    metrics = task.metrics(totals)
    assert metrics["val/loss"] == pytest.approx(math.log(8))
    assert metrics["val/bits_per_char"] == pytest.approx(3.0)
    assert metrics["val/perplexity"] == pytest.approx(8.0)
    assert metrics.keys() == task.units.keys()


def test_a_users_file_is_read_relative_to_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text(ALPHABET)
    data = Text(path="mine.txt", context=16).load(str(tmp_path))
    assert data.interface == Interface(16, 26)
    (tmp_path / "mine.txt").write_text(ALPHABET + "!")
    assert Text(path="mine.txt", context=16).load(str(tmp_path)).digest != data.digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "`mine.txt` is empty"),
        (b"x" * 20, "`mine.txt` has 20 characters, and a context of 16 needs at least 170"),
        (b"one\ntwo\xff", "`mine.txt` is not UTF-8 text: line 2 has the byte 0xff"),
        (None, "cannot read `mine.txt`: No such file or directory"),
    ],
)
def test_what_cannot_be_used_is_one_clear_error(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "mine.txt").write_bytes(content)
    with pytest.raises(InputError) as caught:
        Text(path="mine.txt", context=16).load(str(tmp_path))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == message
    assert diagnostic.help


@pytest.mark.parametrize("length", [170, 171, 200, 333, 1000])
def test_short_texts_still_give_both_parts(length: int) -> None:
    data = Text(text=ALPHABET[:length], context=16, windows=100).load(".")
    assert data.batch(3, generator(0)).inputs[0].shape == (3, 16)
    assert sum(len(inputs) for (inputs,), _ in data.evaluation(8)) >= 1


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"path": []},
        {"source": "python-docs", "path": "x"},
        {"resource": "a:b", "text": "x"},
        {"source": "python-docs", "path": "x", "resource": "a:b", "text": "x"},
    ],
    ids=str,
)
def test_there_is_one_text_alone(options: dict[str, Any]) -> None:
    words = "give either `source: python-docs`, `path: FILE`, `resource: PACKAGE:FILE` or `text: TEXT`, and one of them"
    with pytest.raises(ValidationError, match=re.escape(f"{words} alone")):
        Text.model_validate(options)
