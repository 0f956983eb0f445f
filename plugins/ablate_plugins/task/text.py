"""Language modelling: predict each token of a text from those before it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, PrivateAttr, model_validator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ablate.data.cutting import Windows
from ablate.data.reading import Piece, files, resource
from ablate.data.tokens import Cut, Tokens, name_of, tokenized
from ablate.errors import InputError
from ablate.slots import IGNORED, Batch, Data, Interface, Options, Task

PLACES = 8
"""Parts of a window whose losses are reported apart."""


class Bpe(Options):
    """Pieces of words: byte pairs that are merged by how often they stand in the training text."""

    kind: Literal["bpe"]
    vocabulary: int = Field(512, ge=256, le=1_000_000)
    """Number of tokens, the 256 bytes among them; a short text may give fewer."""


class _TextData:
    """Windows of tokens, of which no one spans two runs."""

    def __init__(self, tokens: Tokens, options: Text, name: str) -> None:
        train, judge = options.context, options.evaluate_context or options.context
        self.tokens = tokens
        self.interface = Interface(max(train, judge), len(tokens.sizes), trained=train)
        self.digest = tokens.digest
        self.tokenizer = tokens.tokenizer
        self._padded = options.documents is not None
        runs, held_out = tokens.runs, tokens.runs.held_out
        self._train = Windows(runs, ~held_out, train, step=train if self._padded else 1, partial=self._padded)
        self._judge = Windows(runs, held_out, judge, step=judge, partial=self._padded)
        if not self._train.number or not self._judge.number:
            raise InputError.one(
                "S302",
                f"{name} gives {len(tokens.values):,} tokens, which leave no window of a context of "
                f"{self.interface.context} in both parts",
                help="give a longer text or a shorter `context`",
            )
        if (tokens.counts > 0).sum() < 2:
            raise InputError.one(
                "S314",
                f"{name} is one token again and again where it is for training, and there is nothing to learn",
                help="give another text",
            )
        shares = torch.from_numpy(tokens.counts).double()
        shares = shares[shares > 0] / shares.sum()
        self.facts: Mapping[str, float] = {
            "characters": float(tokens.characters),
            "text_bytes": float(tokens.bytes),
            "text_tokens": float(len(tokens.values)),
            "vocabulary": float(len(tokens.sizes)),
            "unigram_entropy": float(-(shares * shares.log()).sum()),
        }
        self._chosen = self._judge.spread(options.windows)

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Windows of the training text, each as likely: inputs and the tokens that follow, (size, T) each."""
        return self._cut(self._train, torch.randint(self._train.number, (size,), generator=generator).numpy())

    def evaluation(self, size: int) -> Sequence[Batch]:
        """Evenly spaced windows of the validation text that do not overlap."""
        return [
            self._cut(self._judge, self._chosen[start : start + size]) for start in range(0, len(self._chosen), size)
        ]

    def _cut(self, windows: Windows, numbers: Any) -> Batch:
        if self.tokens.mapped is not None:
            self.tokens.mapped.check()
        places, ends = windows.places(numbers)
        if self._padded:
            inside = places < ends
            values = self.tokens.values[np.minimum(places, ends - 1)].astype(np.int64)
            inputs, targets = np.where(inside, values, 0)[:, :-1], np.where(inside, values, IGNORED)[:, 1:]
        else:
            values = self.tokens.values[places].astype(np.int64)
            inputs, targets = values[:, :-1], values[:, 1:]
        return Batch((torch.from_numpy(inputs),), torch.from_numpy(targets))


class Text(Task):
    """Predict the next token of a text: a character, a byte, or a piece of a word.

    The text is cut into blocks, and every tenth block is for validation: the end of a text is often easier or harder
    than the rest. With `documents`, every tenth document is, and no window holds tokens of two.

    Metrics are of the evaluation windows. A loss by token cannot be compared between tokenizers, a loss by byte can,
    where `windows` is large enough for all of the validation text. `val/loss_eighth_1` is the loss in the first eighth
    of a window and `val/loss_eighth_8` in the last: with an `evaluate_context` of four times `context`, a model has
    seen places like those of the first two eighths in training, and none like those of the others. Source: Karpathy
    2015, The Unreasonable Effectiveness of Recurrent Neural Networks, for characters; Press et al. 2022, Train Short,
    Test Long, for evaluating on longer windows.
    """

    kind: Literal["text"] = "text"
    source: Literal["python-docs"] | None = Field(None, examples=["python-docs"])
    """A text that is there already: `python-docs` is the language documentation that ships with CPython."""
    path: str | list[str] | None = None
    """In place of `source`: a UTF-8 file, a pattern as `chapters/*.txt`, or a list of them, relative to the
    experiment's folder. Several files follow each other in the order of their paths, each once."""
    resource: str | None = Field(None, pattern=r"^[^:]+:[^:]+$")
    """In place of `source`: a UTF-8 file of an installed package, as `package:folder/file.txt`."""
    text: str | None = None
    """In place of `source`: the text itself."""
    tokenizer: Literal["char", "byte"] | Bpe = "char"
    """What a token is: `char`, one character of those that the text has; `byte`, one of 256; or
    `{kind: bpe, vocabulary: 512}`, a byte pair, merged as is best for the training text."""
    context: int = Field(128, ge=2)
    """Tokens that the model sees at once."""
    evaluate_context: int | None = Field(None, ge=2)
    """Tokens that the model sees at once where it is judged; null for `context`. A longer one shows how a model goes
    on where it was never trained."""
    windows: int = Field(256, ge=1)
    """Windows in the evaluation set."""
    documents: str | None = Field(None, min_length=1)
    """What ends each document, and belongs to it, as `<|endoftext|>`, so that no window spans two documents; shorter
    windows are padded, and padding counts for nothing. A file's end ends a document too. Null for one running text."""

    units: ClassVar[Mapping[str, str]] = {
        "val/loss": "nats/token",
        "val/bits_per_char": "bits/char",
        "val/bits_per_byte": "bits/byte",
        "val/perplexity": "tokens",
        **{f"val/loss_eighth_{place}": "nats/token" for place in range(1, PLACES + 1)},
    }
    # What judging needs to know of the data: (V, 2), the bytes and the characters of each token.
    _sizes: Tensor | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _one_text(self) -> Self:
        given = [each for each in (self.source, self.path, self.resource, self.text) if each is not None]
        if len(given) != 1 or given == [[]]:
            raise ValueError(
                "give either `source: python-docs`, `path: FILE`, `resource: PACKAGE:FILE` or `text: TEXT`, and one "
                "of them alone"
            )
        return self

    def effective(self) -> Self:
        """The same text, with its paths in one spelling and order, and one spelling of one context."""
        changes: dict[str, Any] = {}
        if self.path is not None:
            paths = [self.path] if isinstance(self.path, str) else self.path
            paths = sorted({os.path.normpath(path) for path in paths})
            changes["path"] = paths[0] if len(paths) == 1 else paths
        if self.evaluate_context == self.context:
            changes["evaluate_context"] = None
        return self.model_copy(update=changes) if changes else self

    def load(self, folder: str) -> Data:
        """Read, check and cut the text."""
        pieces = self._pieces(folder)
        kind, vocabulary = (
            ("bpe", self.tokenizer.vocabulary) if isinstance(self.tokenizer, Bpe) else (self.tokenizer, 0)
        )
        longest = max(self.context, self.evaluate_context or 0)
        tokens = tokenized(pieces, kind, vocabulary, Cut(longest, self.documents))
        data = _TextData(tokens, self, name_of(pieces))
        self._sizes = torch.from_numpy(tokens.sizes)
        return data

    def _pieces(self, folder: str) -> list[Piece]:
        if self.path is not None:
            return files([self.path] if isinstance(self.path, str) else self.path, folder)
        if self.resource is not None:
            return [resource(self.resource)]
        if self.text is not None:
            return [Piece("text", content=self.text.encode())]
        from pydoc_data.topics import topics  # noqa: PLC0415  # half a million characters, read only where wanted

        return [Piece(str(self.source), content="\n\n".join(topics[name] for name in sorted(topics)).encode())]

    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Cross-entropy over all places and over each eighth of them, and how much text it is the sum over."""
        logits, targets = network(*batch.inputs), batch.targets
        flat = cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), ignore_index=IGNORED, reduction="none")
        nats = (flat if flat.device.type == "mps" else flat.double()).view_as(targets)  # MPS has no float64
        counted = targets != IGNORED
        if self._sizes is None:
            self.load(".")
        assert self._sizes is not None
        sizes = self._sizes.to(targets.device)[targets.where(counted, 0)] * counted[..., None]
        bytes_, characters = sizes.sum((0, 1)).unbind()
        sums = {"nats": nats.sum(), "count": counted.sum(), "bytes": bytes_, "characters": characters}
        length = targets.shape[1]
        for place in range(PLACES):  # where a window is shorter than eight, neighbours share a place
            first = place * length // PLACES
            part = slice(first, max((place + 1) * length // PLACES, first + 1))
            sums |= {f"nats_{place + 1}": nats[:, part].sum(), f"count_{place + 1}": counted[:, part].sum()}
        return sums

    def metrics(self, totals: Mapping[str, float]) -> Mapping[str, float]:
        """Mean cross-entropy by token, by character, by byte and by place; NaN for a place that no window reaches."""
        nats = totals["nats"]
        loss = nats / totals["count"]
        by_place = {
            f"val/loss_eighth_{place}": totals[f"nats_{place}"] / number
            if (number := totals[f"count_{place}"])
            else math.nan
            for place in range(1, PLACES + 1)
        }
        return {
            "val/loss": loss,
            "val/bits_per_char": nats / (totals["characters"] or math.nan) / math.log(2),
            "val/bits_per_byte": nats / totals["bytes"] / math.log(2),
            "val/perplexity": math.exp(loss) if loss < 700 else math.inf,
            **by_place,
        }
