"""The task of labels: what is read, split and numbered, and every fault before any trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ablate.errors import InputError
from ablate.experiment.identity import digest
from ablate.model.keys import generator
from ablate.slots import Data, Interface
from ablate_plugins.task.labelled_text import LabelledText

ROWS = [(f"{'very ' * (n % 5)}{'good' if n % 3 else 'bad'} n{n}", "yes" if n % 3 else "no") for n in range(50)]


def table(folder: Path, rows: list[tuple[str, str]], name: str = "a.tsv") -> None:
    text = "text\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in rows)
    (folder / name).write_text(text, encoding="utf-8")


def loaded(folder: Path, **options: Any) -> Data:
    return LabelledText.model_validate({"path": "a.tsv", **options}).load(str(folder))


class _Says(nn.Module):
    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, tokens: Tensor, valid: Tensor) -> Tensor:
        return self.logits


def test_texts_and_labels_are_those_of_the_table(tmp_path: Path) -> None:
    table(tmp_path, ROWS)
    data = loaded(tmp_path, tokens="bytes", test_share=0.2)
    labels = {text: ["no", "yes"].index(label) for text, label in ROWS}
    seen: list[set[str]] = []
    for batches in ([data.batch(4000, generator(0))], data.evaluation(3)):
        seen.append(set())
        for batch in batches:
            tokens, valid = batch.inputs
            for row, real, label in zip(tokens.tolist(), valid.tolist(), batch.targets.tolist(), strict=True):
                text = bytes(token - 1 for token in row if token).decode()
                assert labels[text] == label and sum(real) == len(text.encode())
                seen[-1].add(text)
    assert not seen[0] & seen[1] and seen[0] | seen[1] == labels.keys() and len(seen[1]) == 10
    longest = max(len(text) for text in labels)
    assert data.interface == Interface(form="classification", context=longest, vocabulary=257, classes=2)
    assert data.facts["evaluated_texts"] == 10 and data.facts["training_texts"] == 40 and data.facts["labels"] == 2


def test_words_and_characters_are_those_of_training(tmp_path: Path) -> None:
    table(tmp_path, [("ab é", "x"), ("ba", "y")])
    table(tmp_path, [("ba é", "y"), ("c", "x")], "b.tsv")
    (batch,) = loaded(tmp_path, tokens="characters", test_path="b.tsv").evaluation(9)
    assert batch.inputs[0].tolist() == [[4, 3, 2, 5], [1, 0, 0, 0]] and batch.targets.tolist() == [1, 0]
    (batch,) = loaded(tmp_path, test_path="b.tsv").evaluation(9)
    assert batch.inputs[0].tolist() == [[3, 4], [1, 0]] and batch.inputs[1].tolist() == [[True, True], [True, False]]


def test_longer_texts_are_cut_where_that_is_wanted(tmp_path: Path) -> None:
    table(tmp_path, [("a b c", "x"), ("c b a", "y")])
    data = loaded(tmp_path, longest=2, longer="truncate", test_path="a.tsv")
    (batch,) = data.evaluation(9)
    assert batch.inputs[0].tolist() == [[2, 3], [4, 3]] and data.interface.context == 2


def test_digests_differ_by_what_the_data_are(tmp_path: Path) -> None:
    table(tmp_path, ROWS)
    changes: list[dict[str, Any]] = [
        {},
        {"tokens": "bytes"},
        {"at_least": 2},
        {"samples": 3},
        {"test_share": 0.2},
        {"buckets": 4},
        {"longest": 99},
        {"test_path": "a.tsv"},
    ]
    assert len({loaded(tmp_path, **change).digest for change in changes}) == len(changes)
    same = LabelledText(path="./a.tsv", tokens="bytes", at_least=3), LabelledText(path="a.tsv", tokens="bytes")
    assert digest(same[0]) == digest(same[1]) != digest(LabelledText(path="a.tsv"))


def test_what_is_right_is_counted(tmp_path: Path) -> None:
    table(tmp_path, ROWS)
    task = LabelledText(path="a.tsv", test_share=0.5)
    (batch,) = task.load(str(tmp_path)).evaluation(99)
    said = batch.targets.clone()
    said[0] = 1 - said[0]
    totals = {name: float(total) for name, total in task.tally(_Says(50.0 * one_hot(said, 2)), batch).items()}
    values = task.metrics(totals)
    assert values.keys() == task.units.keys()
    assert values["val/accuracy"] == pytest.approx(24 / 25) and values["val/loss"] == pytest.approx(2)
    assert 0.9 < values["val/macro_f1"] < 1


def test_padding_changes_no_batch(tmp_path: Path) -> None:
    table(tmp_path, ROWS)
    data = loaded(tmp_path, test_share=0.5)
    whole, parts = data.evaluation(99), data.evaluation(4)
    for place in (0, 1):
        assert torch.equal(torch.cat([part.inputs[place] for part in parts]), whole[0].inputs[place])
    one, other = (loaded(tmp_path, buckets=5).batch(8, generator(3)) for _ in range(2))
    assert torch.equal(one.inputs[0], other.inputs[0])
    lengths = one.inputs[1].sum(1)
    assert int(lengths.max() - lengths.min()) <= 2


MANY = [(f"t{n}", f"l{n}") for n in range(250)]
FAULTS: dict[str, tuple[list[tuple[str, str]], dict[str, Any], str]] = {
    "one text": ([("a", "x"), ("a", "y")], {},
        "error[S330]: `a.tsv` has one `text` in all its rows, and training and test need one each\n"
        "  = help: give it more rows, or a `test_path`"),
    "long": ([("a b", "x"), ("a b c", "y")], {"longest": 2},
        "error[S331]: line 3 of `a.tsv` has 3 tokens in `text`, and `longest` is 2\n"
        "  = help: give a larger `longest`, or set `longer: truncate`"),
    "unseen": ([("a", "x"), ("b", "y")], {"test_path": "b.tsv"},
        "error[S332]: line 3 of `b.tsv` has the label `z`, which no row of training has\n"
        "  = help: give training some rows of it, or take the row out"),
    "one label": ([("a", "x"), ("b", "x"), ("c", "x")], {},
        "error[S333]: all of training in `a.tsv` has the label `x`, and there is nothing to tell apart\n"
        "  = help: give rows of two labels at least"),
    "rare": ([(f"a {n}", f"{n % 2}") for n in range(8)], {"at_least": 9},
        "error[S336]: no token of `text` stands 9 times in the training part of `a.tsv`, and all would be unknown\n"
        "  = help: give a smaller `at_least`"),
    "many labels": (MANY, {},
        "error[S334]: `a.tsv` has 225 labels, and at most 200 can be told apart\n"
        "  = help: name the column of the labels by `label`"),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "options", "text"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_sentence(
    tmp_path: Path, rows: list[tuple[str, str]], options: dict[str, Any], text: str
) -> None:
    table(tmp_path, rows)
    table(tmp_path, [("a", "y"), ("b", "z")], "b.tsv")
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, **options)
    assert str(caught.value) == text


def test_the_text_and_its_label_are_two_columns() -> None:
    with pytest.raises(ValidationError, match="`text` and `label` are both the column `text`"):
        LabelledText(path="a.tsv", label="text")
