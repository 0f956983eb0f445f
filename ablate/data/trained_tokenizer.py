"""The tokenizer that a model was trained with, as it goes with the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.data.tokenizers import BYTES, BytePairs
from ablate.errors import InputError
from ablate.records.layout import read_json

FILE = "tokenizer.json"
"""What it is called in the folder of an exported model."""


@dataclass(frozen=True)
class TrainedTokenizer:
    """Turns text into the tokens of the task `text`, and tokens into text."""

    kind: str
    """``char``, ``byte`` or ``bpe``."""
    content: str = ""
    """For ``char`` all characters in the order of their numbers; for ``bpe`` what the package `tokenizers` writes."""

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> TrainedTokenizer:
        """The tokenizer that :meth:`written` came from."""
        return cls(str(written["kind"]), str(written["content"]))

    def written(self) -> dict[str, str]:
        """All of it, as JSON values."""
        return {"kind": self.kind, "content": self.content}

    def encode(self, text: str) -> list[int]:
        """The tokens of a text.

        Raises:
            ValueError: it has a character that the training text had not.
            InputError: the package that knows byte pairs is not installed (S335).
        """
        if self.kind == "byte":
            return list(text.encode())
        if self.kind == "bpe":
            return [token for part in BytePairs(self.content).encode([text]) for token in part.tolist()]
        numbers = {character: number for number, character in enumerate(self.content)}
        for character in text:
            if character not in numbers:
                raise ValueError(f"the model knows no {character!r}: the text that it was trained on has none")
        return [numbers[character] for character in text]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of some tokens; half of a character of several bytes shows as a replacement sign."""
        listed = [int(token) for token in tokens]
        if self.kind == "char":
            return "".join(self.content[token] for token in listed)
        known = [bytes([byte]) for byte in range(BYTES)] if self.kind == "byte" else BytePairs(self.content).tokens
        return b"".join(known[token] for token in listed).decode(errors="replace")


def load_tokenizer(folder: str | Path) -> TrainedTokenizer:
    """The tokenizer of an exported model of the task `text`.

    Raises:
        InputError: there is none in this folder (S411).
    """
    try:
        return TrainedTokenizer.of(read_json(Path(folder) / FILE))
    except (OSError, ValueError, KeyError) as error:
        why = "a model of the task `text` has one, once `ablate export` has written it"
        raise InputError.one("S411", f"there is no tokenizer in `{folder}`", help=why) from error
