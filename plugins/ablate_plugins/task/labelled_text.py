"""The task of labels: which of some labels a text has, as a table says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from ablate.data.labelling import MOST_LABELS, judge, shares
from ablate.data.sequences import Draws, Sequences, Vocabulary, entropy, held_out, some_of
from ablate.data.sources import one_spelling, read_source
from ablate.data.tables import Table
from ablate.errors import InputError
from ablate.slots import Batch, Data, Interface, Task

PAD, UNKNOWN = 0, 1
"""Tokens: padding, and what stands for all that training has not; bytes are all known, and begin at 1."""
FORMAT = 1
"""Raised when the same options and rows give other data."""


class _Labelled:
    """Texts and labels: some rows are for training, some make up the evaluation set."""

    def __init__(
        self, texts: Sequences, labels: Tensor, training: Tensor, evaluated: Tensor, interface: Interface, buckets: int
    ) -> None:
        self._texts, self._labels, self._evaluated = texts, labels, evaluated
        self._draws = Draws(training, texts.lengths, buckets)
        self.interface = interface
        self.digest = ""
        self.facts: Mapping[str, float] = {
            "vocabulary": float(interface.vocabulary),
            "unigram_entropy": entropy(labels[training]),
            "labels": float(interface.classes),
            "most_frequent_share": float(labels[evaluated].bincount().max()) / len(evaluated),
            "training_texts": float(len(training)),
            "evaluated_texts": float(len(evaluated)),
        }

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Tokens (size, T) and valid (size, T), as long as the longest; targets (size,)."""
        rows = self._draws(size, generator)
        return Batch(self._texts.gather(rows, fill=PAD), self._labels[rows])

    def evaluation(self, size: int) -> Sequence[Batch]:
        """The same texts at every call, all padded to the longest of them."""
        longest = int(self._texts.lengths[self._evaluated].max())
        parts = self._evaluated.split(size)
        return [Batch(self._texts.gather(rows, longest=longest, fill=PAD), self._labels[rows]) for rows in parts]


class LabelledText(Task):
    """Say which label a text has, from a table of texts and labels.

    The table is a TSV, CSV, JSONL, parquet or Arrow file. Without a test file a share of the different texts is held
    out, by their hash: rows of one text stay together, and all trials are judged on the same ones. Labels and, but for
    bytes, the vocabulary are those of the training part; a token that it does not have is `<unk>`, a label that it does
    not have an error. Source: Zhang et al. 2015, Character-level Convolutional Networks for Text Classification.
    """

    kind: Literal["labelled_text"] = "labelled_text"
    path: str = Field(examples=["python:ablate.data.example:labelled"])
    """The table: a file `.tsv`, `.csv`, `.jsonl`, `.parquet`, `.arrow` or `.feather`, relative to the experiment's
    folder; `hub:OWNER/NAME:SPLIT`, a dataset of Hugging Face; or `python:MODULE:NAME`, an object of your code, which is
    run."""
    text: str = "text"
    """The column of the texts."""
    label: str = "label"
    """The column of the labels."""
    tokens: Literal["characters", "bytes", "words"] = "words"
    """What a token is: a character, a byte of UTF-8, or what stands between spaces."""
    test_path: str | None = None
    """A table of the same columns to be judged on; null for holding out a share of the one table."""
    test_share: float = Field(0.1, gt=0, lt=1)
    """Share of the different texts that is held out."""
    longest: int = Field(256, ge=1)
    """Tokens that a text has at most."""
    longer: Literal["error", "truncate"] = "error"
    """What becomes of a text with more tokens: it is an error, or it is cut to its first ones."""
    at_least: int = Field(1, ge=1)
    """How often training must have a token that is not to be `<unk>`."""
    samples: int = Field(1000, ge=1)
    """Texts in the evaluation set, at most; chosen by their hash."""
    buckets: int = Field(1, ge=1)
    """Groups of texts of similar length, from one of which a batch is drawn: less padding, noisier gradients."""

    units: ClassVar[Mapping[str, str]] = {"val/loss": "nats", "val/accuracy": "share", "val/macro_f1": "share"}

    @model_validator(mode="after")
    def _two_columns(self) -> Self:
        if self.text == self.label:
            raise ValueError(f"`text` and `label` are both the column `{self.text}`")
        return self

    def effective(self) -> Self:
        """The same data, in one spelling; beside a test file nothing is held out, and all bytes are known."""
        spelled = {name: one_spelling(path) for name in ("path", "test_path") if (path := getattr(self, name))}
        share = {"test_share": 0.1} if self.test_path is not None else {}
        least = {"at_least": 1} if self.tokens == "bytes" else {}
        return self.model_copy(update={**spelled, **share, **least})

    def load(self, folder: str) -> Data:
        """Read, check, split and number texts and labels."""
        tables = [self._read(folder, self.path)]
        if self.test_path is None:
            test = self._held_out(tables[0])
        else:
            tables.append(self._read(folder, self.test_path))
            test = torch.arange(sum(map(len, tables))) >= len(tables[0])
        training = (~test).nonzero()[:, 0]
        places = [table.place(row) for table in tables for row in range(len(table))]
        names = [label for table in tables for label in table.columns[self.label]]
        labels = _labels(names, test.tolist(), places, self.path)
        texts = [text for table in tables for text in table.columns[self.text]]
        numbered, size = self._numbered(texts, training)
        evaluated = some_of(test.nonzero()[:, 0], texts, self.samples)
        interface = Interface(
            form="classification",
            context=numbered.longest,
            vocabulary=size,
            classes=int(labels.max()) + 1,
        )
        data = _Labelled(numbered, labels, training, evaluated, interface, self.buckets)
        data.digest = self._digest(tables)
        unknown = (numbered.tokens(evaluated) == UNKNOWN).double().mean() if self.tokens != "bytes" else 0.0
        data.facts = {**data.facts, "unknown_in_text": float(unknown)}
        return data

    def _read(self, folder: str, path: str) -> Table:
        table = read_source(path, folder, [self.text, self.label])
        if self.longer == "error":
            for row, text in enumerate(table.columns[self.text]):
                if (length := len(self._cut(text))) > self.longest:
                    raise InputError.one(
                        "S331",
                        f"{table.place(row)} has {length} tokens in `{self.text}`, and `longest` is {self.longest}",
                        help="give a larger `longest`, or set `longer: truncate`",
                    )
        return table

    def _held_out(self, table: Table) -> Tensor:
        try:
            return held_out(table.columns[self.text], self.test_share)
        except ValueError as error:
            raise InputError.one(
                "S330",
                f"`{table.shown}` has one `{self.text}` in all its rows, and training and test need one each",
                help="give it more rows, or a `test_path`",
            ) from error

    def _cut(self, text: str) -> Sequence[str] | bytes:
        if self.tokens == "bytes":
            return text.encode("utf-8", "replace")
        return text if self.tokens == "characters" else text.split()

    def _numbered(self, texts: Sequence[str], training: Tensor) -> tuple[Sequences, int]:
        """The texts as numbers, and how many numbers there are."""
        cut = [self._cut(text)[: self.longest] for text in texts]
        if self.tokens == "bytes":
            return Sequences.of([[byte + 1 for byte in text] for text in cut if isinstance(text, bytes)]), 257
        strings = [text for text in cut if not isinstance(text, bytes)]
        known = [strings[row] for row in training.tolist()]
        vocabulary = Vocabulary.known(
            known, first=UNKNOWN + 1, unknown=UNKNOWN, least=self.at_least, column=self.text, shown=self.path
        )
        return vocabulary.encode(strings), len(vocabulary)

    def _digest(self, tables: Sequence[Table]) -> str:
        cut = (self.tokens, self.longest, self.at_least, self.samples, self.buckets)
        share = self.test_share if len(tables) == 1 else None
        what = ["labelled_text", FORMAT, *(table.digest for table in tables), *cut, share]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()

    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Sums over texts, and the confusion."""
        return judge(network(*batch.inputs), batch.targets)

    def metrics(self, totals: Mapping[str, float]) -> Mapping[str, float]:
        """Mean cross-entropy, the share of texts with the right label, and F1 as its mean over labels."""
        return {f"val/{name}": value for name, value in shares(totals).items()}


def _labels(names: Sequence[str], test: Sequence[bool], places: Sequence[str], shown: str) -> Tensor:
    """The number of every row's label, in the order of the labels' code points.

    Raises:
        InputError: training has one label or too many, or a row of the test has one that training has not.
    """
    known = sorted({name for name, held in zip(names, test, strict=True) if not held})
    if len(known) == 1:
        raise InputError.one(
            "S333",
            f"all of training in `{shown}` has the label `{known[0]}`, and there is nothing to tell apart",
            help="give rows of two labels at least",
        )
    if len(known) > MOST_LABELS:
        raise InputError.one(
            "S334",
            f"`{shown}` has {len(known):,} labels, and at most {MOST_LABELS} can be told apart",
            help="name the column of the labels by `label`",
        )
    numbers = {name: number for number, name in enumerate(known)}
    for name, place in zip(names, places, strict=True):
        if name not in numbers:
            raise InputError.one(
                "S332",
                f"{place} has the label `{name}`, which no row of training has",
                help="give training some rows of it, or take the row out",
            )
    return torch.tensor([numbers[name] for name in names])
