"""The task of pairs: a text is turned into another, as a table has them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from ablate.data.sequences import Sequences, Vocabulary, held_out, some_of
from ablate.data.sources import one_spelling, read_source
from ablate.data.tables import Table
from ablate.data.transduction import SYMBOLS, PairedData, judge, shares
from ablate.errors import InputError
from ablate.slots import Batch, Data, Decoding, Task
from ablate_plugins.decoding import Greedy

UNKNOWN = SYMBOLS
"""The token that stands for all that training has not."""
FORMAT = 1
"""Raised when the same options and rows give other data."""


class Pairs(Task):
    """Turn a text into another, from a table of pairs.

    The table is a TSV, CSV, JSONL, parquet or Arrow file. Without a test file a share of the different sources is held
    out, by their hash: pairs of one source stay together, and all trials are judged on the same ones. Vocabularies are
    those of the training part; what it does not have is the token `<unk>`, in the source an input like any other and in
    the target one that is hard to get right. Source: Sutskever et al. 2014, Sequence to Sequence Learning with Neural
    Networks.
    """

    kind: Literal["pairs"] = "pairs"
    path: str = Field(examples=["python:ablate.data.example:pairs"])
    """The table: a file `.tsv`, `.csv`, `.jsonl`, `.parquet`, `.arrow` or `.feather`, relative to the experiment's
    folder; `hub:OWNER/NAME:SPLIT`, a dataset of Hugging Face; or `python:MODULE:NAME`, an object of your code, which is
    run."""
    source: str = "source"
    """The column of what is read."""
    target: str = "target"
    """The column of what is to be written."""
    tokens: Literal["characters", "words"] = "words"
    """What a token is: a character, or what stands between spaces."""
    test_path: str | None = None
    """A table of the same columns to be judged on; null for holding out a share of the one table."""
    test_share: float = Field(0.1, gt=0, lt=1)
    """Share of the different sources that is held out."""
    longest: int = Field(64, ge=1)
    """Tokens that a text has at most, on either side; a longer one is an error."""
    at_least: int = Field(1, ge=1)
    """How often training must have a token that is not to be `<unk>`."""
    samples: int = Field(256, ge=1)
    """Pairs in the evaluation set, at most; chosen by the hash of their sources."""
    short: int = Field(10, ge=1)
    """Tokens that a short source has at most."""
    middle: int = Field(20, ge=1)
    """Tokens that a source of middle length has at most."""
    buckets: int = Field(1, ge=1)
    """Groups of sources of similar length, from one of which a batch is drawn: less padding, noisier gradients."""
    decoding: Decoding | None = Greedy()
    """How texts are written; null for taking the likeliest token at each place, given the right ones before it."""

    units: ClassVar[Mapping[str, str]] = {
        "val/loss": "nats/token",
        "val/accuracy": "share",
        "val/error_rate": "edits/token",
        "val/exact": "share",
        "val/exact_short": "share",
        "val/exact_middle": "share",
        "val/exact_long": "share",
    }

    @model_validator(mode="after")
    def _two_columns_and_lengths_in_order(self) -> Self:
        if self.source == self.target:
            raise ValueError(f"`source` and `target` are both the column `{self.source}`")
        if self.middle <= self.short:
            raise ValueError(f"`middle` is {self.middle}, and `short` is {self.short}")
        return self

    def effective(self) -> Self:
        """The same data, with paths in one spelling; beside a test file nothing is held out."""
        spelled = {name: one_spelling(path) for name in ("path", "test_path") if (path := getattr(self, name))}
        share = {"test_share": 0.1} if self.test_path is not None else {}
        return self.model_copy(update={**spelled, **share})

    def load(self, folder: str) -> Data:
        """Read, check, split and number the pairs."""
        tables = [self._read(folder, self.path)]
        if self.test_path is None:
            test = _held_out(tables[0], self.source, self.test_share)
        else:
            tables.append(self._read(folder, self.test_path))
            test = torch.arange(sum(map(len, tables))) >= len(tables[0])
        texts = [[text for table in tables for text in table.columns[side]] for side in (self.source, self.target)]
        sides = [
            self._numbered(side, ~test, name) for side, name in zip(texts, (self.source, self.target), strict=True)
        ]
        (source, source_vocabulary), (target, target_vocabulary) = sides
        names = list(map("\t".join, zip(*texts, strict=True)))
        evaluated = some_of(test.nonzero()[:, 0], names, self.samples)
        training = (~test).nonzero()[:, 0]
        trained = {texts[0][row] for row in training.tolist()}
        return PairedData(
            source,
            target,
            training=training,
            evaluated=evaluated,
            longest=self.longest,
            vocabularies=(len(source_vocabulary), len(target_vocabulary)),
            digest=self._digest(tables),
            facts={
                "unknown_in_source": float((source.tokens(evaluated) == UNKNOWN).double().mean()),
                "unknown_in_target": float((target.tokens(evaluated) == UNKNOWN).double().mean()),
                "sources_in_training": sum(texts[0][row] in trained for row in evaluated.tolist()) / len(evaluated),
            },
            buckets=self.buckets,
        )

    def _read(self, folder: str, path: str) -> Table:
        """A table none of whose texts is too long.

        Raises:
            InputError: it cannot be read, or a text has too many tokens.
        """
        table = read_source(path, folder, [self.source, self.target])
        for name, texts in table.columns.items():
            for row, text in enumerate(texts):
                if len(text) > self.longest and len(_cut(text, self.tokens)) > self.longest:
                    raise InputError.one(
                        "S331",
                        f"{table.place(row)} has {len(_cut(text, self.tokens))} tokens in `{name}`, and `longest` is "
                        f"{self.longest}",
                        help="give a larger `longest`, or take the row out",
                    )
        return table

    def _numbered(self, texts: Sequence[str], training: Tensor, column: str) -> tuple[Sequences, Vocabulary]:
        cut = [_cut(text, self.tokens) for text in texts]
        known = [cut[row] for row in training.nonzero()[:, 0].tolist()]
        vocabulary = Vocabulary.known(
            known, first=UNKNOWN + 1, unknown=UNKNOWN, least=self.at_least, column=column, shown=self.path
        )
        return vocabulary.encode(cut), vocabulary

    def _digest(self, tables: Sequence[Table]) -> str:
        cut = (self.tokens, self.at_least, self.samples, self.buckets, self.test_share if len(tables) == 1 else None)
        what = ["pairs", FORMAT, *(table.digest for table in tables), *cut]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()

    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Sums over tokens and over texts.

        Raises:
            InputError: texts are to be written by a model that cannot decode.
        """
        edges = (self.short, self.middle)
        return judge(network, batch, decoding=self.decoding, most=self.longest + 1, edges=edges)

    def metrics(self, totals: Mapping[str, float]) -> Mapping[str, float]:
        """Loss and accuracy by token, given the right ones before it; of the texts that are written, the edits that
        make them right for each token of the right ones, and the share that is right as a whole, also by the length of
        the source, where it is not a number if no source has it."""
        return {f"val/{name}": value for name, value in shares(totals).items()}


def _cut(text: str, unit: str) -> Sequence[str]:
    return text if unit == "characters" else text.split()


def _held_out(table: Table, column: str, share: float) -> Tensor:
    try:
        return held_out(table.columns[column], share)
    except ValueError as error:
        raise InputError.one(
            "S330",
            f"`{table.shown}` has one `{column}` in all its rows, and training and test need one each",
            help="give it more rows, or a `test_path`",
        ) from error
