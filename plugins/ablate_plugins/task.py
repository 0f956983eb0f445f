"""Tasks: what a model is trained and judged on."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor
from torch.nn.functional import cross_entropy

from ablate.errors import InputError
from ablate.slots import Batch, Data, Task

LONGEST_BLOCK = 4096
VALIDATION_EVERY = 10


class _TextData:
    """Tokens cut into blocks, every tenth of which is for validation; no window spans two stretches."""

    def __init__(self, text: str, context: int, windows: int, name: str) -> None:
        shortest = VALIDATION_EVERY * (context + 1)
        if not text:
            raise InputError.one("S301", f"{name} is empty", help="give a text file with some text in it")
        if len(text) < shortest:
            raise InputError.one(
                "S302",
                f"{name} has {len(text):,} characters, and a context of {context} needs at least {shortest:,}",
                help="give a longer text or a shorter `context`",
            )
        codes, ids = np.unique(np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32), return_inverse=True)
        self.tokens = torch.from_numpy(ids.astype(np.int64))
        self.vocabulary = len(codes)
        self.context = context
        self.digest = hashlib.sha256(text.encode()).hexdigest()
        block = min(LONGEST_BLOCK, max(context + 1, len(text) // (2 * VALIDATION_EVERY)))
        edges = torch.arange(0, len(text), block)
        held_out = torch.arange(len(edges)) % VALIDATION_EVERY == VALIDATION_EVERY - 1
        self._train_starts, self._train_counts = self._stretches(edges, ~held_out, block)
        starts = [
            torch.arange(start, max(start, min(start + block, len(text)) - context), context)
            for start in edges[held_out].tolist()
        ]
        every = torch.cat(starts)
        self._windows = every[torch.linspace(0, len(every) - 1, min(windows, len(every))).round().long()]
        in_train = (~held_out).repeat_interleave(block)[: len(text)]
        shares = torch.bincount(self.tokens[in_train], minlength=self.vocabulary).double()
        shares = shares[shares > 0] / shares.sum()
        self.facts: Mapping[str, float] = {
            "characters": float(len(text)),
            "vocabulary": float(self.vocabulary),
            "unigram_entropy": float(-(shares * shares.log()).sum()),
        }

    def _stretches(self, edges: Tensor, wanted: Tensor, block: int) -> tuple[Tensor, Tensor]:
        """First token of each run of wanted blocks, and the cumulated number of windows that fit into the runs."""
        bounds = torch.cat([edges, torch.tensor([len(self.tokens)])])
        padded = torch.cat([torch.tensor([False]), wanted, torch.tensor([False])]).int()
        change = padded.diff()
        first, last = bounds[:-1][change[:-1] == 1], bounds[change == -1]
        counts = (last - first - self.context).clamp(min=0)
        return first, counts.cumsum(0)

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Windows at random places of the training text: inputs and the tokens that follow, (size, T) each."""
        drawn = torch.randint(int(self._train_counts[-1]), (size,), generator=generator)
        run = torch.searchsorted(self._train_counts, drawn, right=True)
        before = torch.where(run > 0, self._train_counts[run - 1], 0)
        return self._cut(self._train_starts[run] + drawn - before)

    def evaluation(self, size: int) -> Sequence[Batch]:
        """Evenly spaced windows of the validation text that do not overlap."""
        return [self._cut(starts) for starts in self._windows.split(size)]

    def _cut(self, starts: Tensor) -> Batch:
        windows = self.tokens[starts[:, None] + torch.arange(self.context + 1)]
        return windows[:, :-1], windows[:, 1:]


class Text(Task):
    """Predict the next character of a text.

    The text is cut into blocks, and every tenth block is for validation: the end of a text is often easier or harder
    than the rest. Source: Karpathy 2015, The Unreasonable Effectiveness of Recurrent Neural Networks, for the task.
    """

    kind: Literal["text"] = "text"
    source: Literal["python-docs"] | None = None
    """A text that is there already: `python-docs` is the language documentation that ships with CPython."""
    path: str | None = None
    """A UTF-8 text file, relative to the experiment's folder; in place of `source`."""
    tokenizer: Literal["char"] = "char"
    """What a token is: `char`, one character."""
    context: int = Field(128, ge=2)
    """Tokens that the model sees at once."""
    windows: int = Field(256, ge=1)
    """Windows of `context` tokens in the evaluation set."""

    units: ClassVar[Mapping[str, str]] = {"val/loss": "nats/char", "val/bits_per_char": "bits/char"}

    @model_validator(mode="after")
    def _one_text(self) -> Self:
        if (self.source is None) == (self.path is None):
            raise ValueError("give either `source: python-docs` or `path: FILE`")
        return self

    def effective(self) -> Self:
        """The same text, with its path in one spelling."""
        return self if self.path is None else self.model_copy(update={"path": os.path.normpath(self.path)})

    def load(self, folder: str) -> Data:
        """Read, check and cut the text."""
        name = f"`{self.path}`" if self.path else f"`{self.source}`"
        return _TextData(self._read(folder), self.context, self.windows, name)

    def _read(self, folder: str) -> str:
        if self.path is None:
            from pydoc_data.topics import topics  # noqa: PLC0415  # half a million characters, read only where wanted

            return "\n\n".join(topics[name] for name in sorted(topics))
        try:
            content = (Path(folder) / self.path).read_bytes()
        except OSError as error:
            raise InputError.one(
                "S303",
                f"cannot read `{self.path}`: {error.strerror}",
                help="`path` is relative to the experiment's file",
            ) from error
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise InputError.one(
                "S304",
                f"`{self.path}` is not UTF-8 text: line {line} has the byte 0x{content[error.start]:02x}",
                help="convert the file to UTF-8",
            ) from error

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy: logits (B, T, V), targets (B, T) -> a scalar, nats a character."""
        return cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    def metrics(self, loss: float) -> Mapping[str, float]:
        """The same loss in nats and in bits a character."""
        return {"val/loss": loss, "val/bits_per_char": loss / math.log(2)}
