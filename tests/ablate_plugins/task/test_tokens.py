"""What a token is, what is counted of one, and which windows of them there are."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import ablate.data.caching
import ablate.data.tokens
from ablate.data.tokenizers import BytePairs
from ablate.errors import InputError
from ablate.model.keys import generator
from ablate.slots import IGNORED, Batch, Data
from ablate_plugins.task.text import Text

BPE = {"kind": "bpe", "vocabulary": 300}
PROSE = "".join(f"The {index}th naïve café costs {index * 7 % 41} €; 漢字 and 😀 too.\n" for index in range(400))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ABLATE_CACHE", str(tmp_path / "cache"))


def task(**options: Any) -> Text:
    return Text.model_validate({"context": 16, "windows": 10_000, **options})


def rows(batches: list[Batch]) -> Iterator[tuple[list[int], list[int]]]:
    for (inputs,), targets in batches:
        yield from zip(inputs.tolist(), targets.tolist(), strict=True)


def everything(data: Data, steps: int = 40) -> list[Batch]:
    return [*(data.batch(32, generator(0, step)) for step in range(steps)), *data.evaluation(64)]


# --- byte pairs ---


@pytest.fixture(scope="module")
def pairs() -> BytePairs:
    return BytePairs.trained([PROSE], 400)


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_byte_pairs_give_every_text_back(pairs: BytePairs, text: str) -> None:
    (ids,) = pairs.encode([text])
    assert pairs.decode(ids) == text
    sizes = pairs.sizes[ids.astype(int)].sum(0)
    assert sizes.tolist() == [len(text.encode()), len(text)]


def test_byte_pairs_are_shorter_than_bytes_and_as_many_as_were_asked_for(pairs: BytePairs) -> None:
    (ids,) = pairs.encode([PROSE])
    assert len(pairs.tokens) == 400
    assert len(ids) < len(PROSE.encode()) / 2
    assert sorted(pairs.tokens[:256]) == [bytes([byte]) for byte in range(256)]


def test_a_text_without_pairs_gives_fewer_tokens() -> None:
    data = task(text="a b c " * 2000, tokenizer=BPE).load(".")
    assert data.interface.vocabulary == 256 + 3  # a blank and a letter, three times


def test_byte_pairs_never_see_the_validation_text() -> None:
    # Blocks of 2,000 characters: the tenth alone has words that repeat, and all of one letter.
    text = "".join("qzqz" * 500 if block % 10 == 9 else f"{block:04d}" * 500 for block in range(20))
    data = task(text=text, tokenizer=BPE).load(".")
    (inputs,), _ = data.evaluation(1)[0]
    assert all(token in (113 - 33, 122 - 33) for token in inputs[0].tolist())  # q and z, each alone


SCRIPT = """
import json, sys
from ablate.model.keys import generator
from ablate_plugins.task.text import Text
data = Text.model_validate(json.loads(sys.argv[1])).load(sys.argv[2])
(inputs,), _ = data.batch(4, generator(7))
print(json.dumps([data.digest, inputs.tolist(), data.facts]))
"""


def test_two_processes_make_the_same_byte_pairs(tmp_path: Path) -> None:
    (tmp_path / "prose.txt").write_text(PROSE, encoding="utf-8")
    options = {"path": "prose.txt", "context": 16, "tokenizer": BPE}
    said: list[Any] = []
    for place in ("one", "two"):
        command = [sys.executable, "-c", SCRIPT, json.dumps(options), str(tmp_path)]
        env = {"ABLATE_CACHE": str(tmp_path / place), "PATH": "", "PYTHONHASHSEED": str(len(said))}
        said.append(json.loads(subprocess.run(command, env=env, check=True, capture_output=True).stdout))
    assert said[0] == said[1]
    data = Text.model_validate(options).load(str(tmp_path))
    assert (data.digest, data.facts) == (said[0][0], said[0][2])
    assert data.batch(4, generator(7)).inputs[0].tolist() == said[0][1]


def test_byte_pairs_without_their_package_are_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(InputError) as caught:
        task(text=PROSE, tokenizer=BPE).load(".")
    assert str(caught.value) == (
        "error[S335]: the task `text` needs the package `tokenizers`, which is not installed\n"
        "  = help: pip install 'ablate-arch[bpe]'"
    )


def test_byte_pairs_that_are_kept_need_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    first = task(text=PROSE, tokenizer=BPE).load(".")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    second = task(text=PROSE, tokenizer=BPE).load(".")
    assert first.digest == second.digest
    assert list(rows(everything(first))) == list(rows(everything(second)))


# --- what is counted ---


class _Even(nn.Module):
    """Every token as likely."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary

    def forward(self, tokens: Tensor) -> Tensor:
        return torch.zeros(*tokens.shape, self.vocabulary)


def judged(asked: Text, data: Data, network: nn.Module) -> dict[str, float]:
    totals: dict[str, float] = {}
    for batch in data.evaluation(50):
        for name, value in asked.tally(network, batch).items():
            assert value.dim() == 0
            totals[name] = totals.get(name, 0.0) + float(value)
    return dict(asked.metrics(totals))


@pytest.mark.parametrize("tokenizer", ["char", "byte", BPE], ids=str)
def test_a_model_that_knows_nothing_has_the_losses_of_its_closed_form(tokenizer: Any) -> None:
    asked = task(text=PROSE, tokenizer=tokenizer)
    data = asked.load(".")
    values = judged(asked, data, _Even(data.interface.vocabulary))
    bits = math.log2(data.interface.vocabulary)
    targets = torch.cat([batch.targets for batch in data.evaluation(64)]).flatten()
    if tokenizer == "char":
        alphabet = sorted(set(PROSE))
        written = "".join(alphabet[token] for token in targets.tolist())
        size, characters = len(written.encode()), len(written)
    elif tokenizer == "byte":
        size, characters = len(targets), sum(byte >> 6 != 0b10 for byte in targets.tolist())
    else:
        size, characters = (int(total) for total in asked._sizes[targets].sum(0))  # type: ignore[index]
        assert size > 1.5 * len(targets)
    assert values["val/loss"] == pytest.approx(bits * math.log(2))
    assert values["val/perplexity"] == pytest.approx(data.interface.vocabulary)
    assert values["val/bits_per_byte"] == pytest.approx(bits * len(targets) / size)
    assert values["val/bits_per_char"] == pytest.approx(bits * len(targets) / characters)
    assert [values[f"val/loss_eighth_{place}"] for place in range(1, 9)] == [pytest.approx(bits * math.log(2))] * 8


def test_who_knows_the_text_as_well_by_bytes_has_the_same_bits_by_byte() -> None:
    """A model that spends two bits on each byte of a token spends them by every tokenizer."""

    class Spends(nn.Module):
        def __init__(self, sizes: Tensor, targets: Tensor) -> None:
            super().__init__()
            self.sizes, self.targets = sizes, targets

        def forward(self, tokens: Tensor) -> Tensor:
            share = torch.pow(0.25, self.sizes[self.targets][..., None].double())
            rest = (1 - share) / (len(self.sizes) - 1)
            right = nn.functional.one_hot(self.targets, len(self.sizes)).bool()
            return torch.where(right, share, rest).log()

    for tokenizer in ("char", "byte", BPE):
        asked = task(text=PROSE, tokenizer=tokenizer, windows=30)
        (batch,) = asked.load(".").evaluation(30)
        assert asked._sizes is not None
        totals = asked.tally(Spends(asked._sizes[:, 0], batch.targets), batch)
        values = asked.metrics({name: float(value) for name, value in totals.items()})
        assert values["val/bits_per_byte"] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("length", [2, 3, 8, 13, 64])
def test_losses_by_place_are_means_over_the_places(length: int) -> None:
    asked = task(text=PROSE, context=length)
    data = asked.load(".")
    table = torch.randn(data.interface.vocabulary, data.interface.vocabulary, generator=generator(3))
    values = judged(asked, data, nn.Embedding.from_pretrained(table))
    (((inputs,), targets),) = data.evaluation(100_000)
    losses = nn.functional.cross_entropy(table[inputs].transpose(1, 2), targets, reduction="none").mean(0).double()
    for place in range(8):
        first = place * length // 8
        expected = losses[first : max((place + 1) * length // 8, first + 1)].mean()
        assert values[f"val/loss_eighth_{place + 1}"] == pytest.approx(float(expected), rel=1e-5)
    if length % 8 == 0:
        parts = [values[f"val/loss_eighth_{place}"] for place in range(1, 9)]
        assert values["val/loss"] == pytest.approx(sum(parts) / 8)


@pytest.mark.parametrize("at_once", [1 << 22, 13])
@pytest.mark.parametrize("tokenizer", ["char", "byte"])
def test_unigram_entropy_leaves_the_validation_text_out(
    tokenizer: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablate.data.caching, "_BLOCK", at_once)
    text = "".join(("c" if block % 10 == 9 else "aab") * 200 for block in range(20))
    assert len(text) == 18 * 600 + 2 * 200  # so blocks of 560 do not fall together with the letters
    blocks = [text[start : start + 560] for start in range(0, len(text), 560)]
    trained = "".join(block for number, block in enumerate(blocks) if number % 10 != 9)
    shares = [trained.count(letter) / len(trained) for letter in sorted(set(trained))]
    found = task(text=text, tokenizer=tokenizer).load(".").facts["unigram_entropy"]
    assert found == pytest.approx(-sum(share * math.log(share) for share in shares), rel=1e-12)


def test_a_perplexity_beyond_all_numbers_is_infinite() -> None:
    asked = task(text=PROSE)
    asked.load(".")
    zeros = torch.zeros(1, 8, dtype=torch.long)
    sure = torch.full((2, 2), -1e4)
    sure[:, 1] = 1e4
    totals = asked.tally(nn.Embedding.from_pretrained(sure), Batch((zeros,), zeros))
    assert asked.metrics({name: float(value) for name, value in totals.items()})["val/perplexity"] == math.inf


# --- windows ---


@pytest.mark.parametrize("longer", [16, 50, 7])
def test_evaluation_windows_may_be_longer_than_those_of_training(longer: int) -> None:
    data = task(text=PROSE, evaluate_context=longer).load(".")
    assert data.interface.context == max(16, longer)
    assert data.batch(3, generator(0)).inputs[0].shape == (3, 16)
    (inputs,), targets = data.evaluation(5)[0]
    assert inputs.shape == targets.shape == (5, longer)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])


def test_one_context_has_one_spelling() -> None:
    assert task(text=PROSE, evaluate_context=16).effective() == task(text=PROSE)
    assert task(path=["b", "./a", "b"]).effective() == task(path=["a", "b"])
    assert task(path=["./a"]).effective() == task(path="a")


def test_a_context_longer_than_a_block_still_has_windows() -> None:
    data = task(text=PROSE * 5, context=5000).load(".")
    assert sum(len(targets) for _, targets in data.evaluation(8)) >= 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("ab€😀|", max_size=12), min_size=10, max_size=40),
    st.sampled_from(["|", "||", "€|"]),
    st.sampled_from(["char", "byte"]),
    st.integers(2, 9),
)
def test_windows_never_cross_the_end_of_a_document(parts: list[str], separator: str, tokenizer: str, size: int) -> None:
    text = separator.join([*parts, "abcabc"])
    alphabet = sorted(set(text))
    units: Any = text if tokenizer == "char" else text.encode()
    mark: Any = separator if tokenizer == "char" else separator.encode()
    documents = [piece + mark for piece in units.split(mark)]
    documents[-1] = documents[-1][: -len(mark)]
    documents = [piece for piece in documents if piece]
    ids = [[alphabet.index(unit) if tokenizer == "char" else unit for unit in piece] for piece in documents]

    def windows(wanted: bool) -> list[tuple[list[int], list[int]]]:
        found = []
        for number, each in enumerate(ids):
            for start in range(0, len(each) - 1, size):
                if (number % 10 == 9) == wanted:
                    inputs, targets = each[start : start + size], each[start + 1 : start + size + 1]
                    found.append((inputs + [0] * (size - len(inputs)), targets + [IGNORED] * (size - len(targets))))
        return found

    asked = task(text=text, tokenizer=tokenizer, context=size, documents=separator)
    if not windows(True) or not windows(False):
        with pytest.raises(InputError):
            asked.load(".")
        return
    data = asked.load(".")
    assert list(rows(list(data.evaluation(7)))) == windows(True)
    allowed = [_without_unread(*each) for each in windows(False)]
    drawn = [_without_unread(*each) for each in rows([data.batch(2000, generator(0))])]
    assert all(each in allowed for each in drawn)
    if len(allowed) < 100:
        assert all(each in drawn for each in allowed)


def _without_unread(inputs: list[int], targets: list[int]) -> tuple[list[int], list[int]]:
    """A window without what stands where nothing is to be predicted."""
    read = sum(target != IGNORED for target in targets)
    return inputs[:read], targets


def test_documents_of_byte_pairs_are_whole() -> None:
    documents = [f"{index} " + "word " * (index % 9) + "end." for index in range(60)]
    asked = task(text="\n\n".join(documents), tokenizer=BPE, documents="\n\n", context=4)
    data = asked.load(".")
    held_out = {f"{documents[index]}\n\n" for index in range(9, 59, 10)} | {documents[59]}
    pairs = BytePairs(_written())
    for inputs, targets in rows(list(data.evaluation(3))):
        said = pairs.decode(np.array(inputs[:1] + [target for target in targets if target != IGNORED]))
        assert any(said in document for document in held_out)


def _written() -> str:
    """The byte pairs of those documents that are for training."""
    text = [f"{index} " + "word " * (index % 9) + "end.\n\n" for index in range(59) if index % 10 != 9]
    return BytePairs.trained(text, 300).written


def test_a_place_that_no_window_reaches_has_no_loss() -> None:
    asked = task(text="ab.cd.ef.gh.ij.kl.mn.op.qr.st.", documents=".", context=8)
    data = asked.load(".")
    values = judged(asked, data, _Even(data.interface.vocabulary))
    assert math.isfinite(values["val/loss"])
    assert [math.isnan(values[f"val/loss_eighth_{place}"]) for place in range(1, 9)] == [False] * 2 + [True] * 6


def test_too_few_documents_are_one_clear_error() -> None:
    for number, words in ((1, "1 document"), (9, "9 documents")):
        with pytest.raises(InputError) as caught:
            task(text="some words. " * number, documents=". ").load(".")
        assert str(caught.value) == (
            f"error[S313]: `text` has {words}, and every tenth is for validation\n"
            "  = help: look whether `documents` is what ends each document, or leave it out"
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "x" * 169}, "`text` has 169 characters, and a context of 16 needs at least 170"),
        ({"text": "é" * 84, "tokenizer": "byte"}, "`text` has 168 bytes, and a context of 16 needs at least 170"),
        (
            {"text": "é" * 99, "evaluate_context": 20},
            "`text` has 99 characters, and a context of 20 needs at least 210",
        ),
        ({"text": "x" * 999, "tokenizer": BPE}, "`text` has 999 characters, and a context of 16 needs at least 1,360"),
        (
            {"text": "ab" * 9000, "tokenizer": BPE, "context": 200},
            "`text` gives 6 tokens, which leave no window of a context of 200 in both parts",
        ),
        (
            {"text": "a" * 10, "documents": "a"},
            "`text` gives 10 tokens, which leave no window of a context of 16 in both parts",
        ),
    ],
)
def test_a_text_that_is_too_short_is_one_clear_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        task(**options).load(".")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("S302", message)
    assert found.help == "give a longer text or a shorter `context`"


@pytest.mark.parametrize("tokenizer", ["char", "byte", {"kind": "bpe", "vocabulary": 256}], ids=str)
def test_a_text_of_one_token_is_one_clear_error(tokenizer: Any) -> None:
    with pytest.raises(InputError) as caught:
        task(text="a" * 500, tokenizer=tokenizer, context=2).load(".")
    assert str(caught.value) == (
        "error[S314]: `text` is one token again and again where it is for training, and there is nothing to learn\n"
        "  = help: give another text"
    )


# --- long texts ---


@pytest.mark.parametrize("documents", [None, "\n"])
@pytest.mark.parametrize("tokenizer", ["char", "byte", BPE], ids=str)
@pytest.mark.parametrize("source", ["file", "files", "text"])
def test_a_long_text_gives_the_batches_of_a_short_one(
    source: str, tokenizer: Any, documents: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text(PROSE, encoding="utf-8")
    (tmp_path / "b.txt").write_text("More. " * 300, encoding="utf-8")
    where = {"file": {"path": "a.txt"}, "files": {"path": "*.txt"}, "text": {"text": PROSE}}[source]
    asked = task(**where, tokenizer=tokenizer, documents=documents)
    short = asked.load(str(tmp_path))
    monkeypatch.setattr(ablate.data.tokens, "LARGE", 0)
    for _ in range(2):  # made, and found again
        long = asked.load(str(tmp_path))
        assert (long.digest, long.interface, long.facts) == (short.digest, short.interface, short.facts)
        assert isinstance(long.tokens.values.base, np.memmap)  # type: ignore[attr-defined]
        assert list(rows(everything(long))) == list(rows(everything(short)))
