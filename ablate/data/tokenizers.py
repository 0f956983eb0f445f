"""What a token is: a character, a byte, or a piece of a word that was often seen."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ablate.data.extras import needed

Integers = npt.NDArray[Any]
BYTES = 256


def smallest(vocabulary: int) -> type[np.uint8 | np.uint16 | np.int32]:
    """The smallest type of number that holds every token."""
    return np.uint8 if vocabulary <= 1 << 8 else np.uint16 if vocabulary <= 1 << 16 else np.int32


def sizes_of_bytes() -> Integers:
    """(256, 2): of each byte, one byte; and one character where it begins one, as in UTF-8 all but 10xxxxxx do."""
    return np.stack([np.ones(BYTES, np.int64), (np.arange(BYTES) & 0xC0) != 0x80], 1).astype(np.int64)


class Characters:
    """Characters as tokens, numbered in the order of their code points."""

    def __init__(self, codes: Integers) -> None:
        self.codes = codes

    @cached_property
    def sizes(self) -> Integers:
        """(V, 2): the bytes of each token in UTF-8, and its characters."""
        length = 1 + sum((self.codes >= first).astype(np.int64) for first in (0x80, 0x800, 0x10000))
        return np.stack([length, np.ones(len(self.codes), np.int64)], 1)

    def encode(self, texts: Iterable[str]) -> Iterator[Integers]:
        """The tokens of each text."""
        kind = smallest(len(self.codes))
        ids = np.zeros(int(self.codes[-1]) + 1, kind)
        ids[self.codes] = np.arange(len(self.codes), dtype=kind)
        for text in texts:
            yield ids[points(text)]


def points(text: str) -> npt.NDArray[np.uint32]:
    """The code points of a text."""
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


class BytePairs:
    """Byte pair encoding of the bytes of UTF-8: any text can be encoded, and decoding gives it back exactly.

    Source: Sennrich et al. 2016, Neural Machine Translation of Rare Words with Subword Units; Radford et al. 2019,
    Language Models are Unsupervised Multitask Learners, §2.2, for bytes in place of characters.
    """

    def __init__(self, written: str) -> None:
        self.written = written
        """All of it, as the package `tokenizers` writes it."""

    @classmethod
    def trained(cls, texts: Iterable[str], vocabulary: int) -> BytePairs:
        """Merge the most frequent pairs until there are so many tokens, or no pairs are left.

        Raises:
            InputError: the package is not installed (S335).
        """
        package = _package()
        tokenizer = package.Tokenizer(package.models.BPE())
        tokenizer.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = package.pre_tokenizers.ByteLevel.alphabet()
        trainer = package.trainers.BpeTrainer(
            vocab_size=vocabulary, initial_alphabet=sorted(alphabet), show_progress=False
        )
        with _one_thread():
            tokenizer.train_from_iterator(iter(texts), trainer)
        return cls(tokenizer.to_str())

    @cached_property
    def tokens(self) -> list[bytes]:
        """The bytes that each token stands for."""
        ids: dict[str, int] = json.loads(self.written)["model"]["vocab"]
        return [bytes(_BYTE_OF[sign] for sign in token) for token in sorted(ids, key=ids.__getitem__)]

    @cached_property
    def sizes(self) -> Integers:
        """(V, 2): the bytes of each token, and the characters that begin in it."""
        of_bytes = sizes_of_bytes()
        return np.stack([of_bytes[np.frombuffer(token, np.uint8)].sum(0) for token in self.tokens])

    def encode(self, texts: Iterable[str]) -> Iterator[Integers]:
        """The tokens of each text.

        Raises:
            InputError: the package is not installed (S335).
        """
        tokenizer, kind = _package().Tokenizer.from_str(self.written), smallest(len(self.tokens))
        with _one_thread():
            for text in texts:
                yield np.array(tokenizer.encode(text).ids, kind)

    def decode(self, ids: Integers) -> str:
        """The text that was encoded."""
        return b"".join(self.tokens[token] for token in ids.tolist()).decode()


def _shown_bytes() -> dict[str, int]:
    """The byte that each sign of the package stands for: itself where it prints, else signs from U+0100 on in order."""
    printing = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(BYTES) if byte not in printing]
    return {chr(byte): byte for byte in printing} | {chr(BYTES + place): byte for place, byte in enumerate(others)}


_BYTE_OF = _shown_bytes()


def _package() -> Any:
    return needed("tokenizers", package="tokenizers", extra="bpe", task="text")


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep the package from making threads: processes that have them cannot be forked into workers."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before
