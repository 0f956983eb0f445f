"""The task of pairs: what is read, split and numbered, and every fault before any trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from ablate.errors import InputError
from ablate.experiment.identity import digest
from ablate.model.keys import generator
from ablate.model.parameters import build, root_site
from ablate.slots import Data
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.model.rnn_seq2seq import RnnSeq2Seq
from ablate_plugins.task.pairs import Pairs

ROWS = [(f"w{n} is {'long ' * (n % 4)}here", f"{'on ' * (n % 3)}r{n % 7}") for n in range(60)]


def table(folder: Path, rows: list[tuple[str, str]], name: str = "a.tsv") -> Path:
    path = folder / name
    path.write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    return path


def loaded(folder: Path, **options: Any) -> Data:
    return Pairs.model_validate({"path": "a.tsv", **options}).load(str(folder))


def test_training_and_test_have_the_pairs_of_the_table_and_none_in_common(tmp_path: Path) -> None:
    table(tmp_path, ROWS)
    data = loaded(tmp_path, test_share=0.25)
    words = sorted({word for row in ROWS for word in row[0].split()})
    for batch in data.evaluation(7):
        assert batch.inputs[0].shape == batch.inputs[1].shape and batch.inputs[2].shape == batch.targets.shape
    assert sum(len(batch.targets) for batch in data.evaluation(7)) == 15
    assert data.facts["training_pairs"] == 45 and data.facts["evaluated_pairs"] == 15
    # Three of the four words of a source are in training, and the number that begins it is not.
    assert 0 < data.facts["unknown_in_source"] < 0.5 and data.facts["unknown_in_target"] == 0
    assert data.facts["sources_in_training"] == 0
    interface = data.interface
    assert (interface.form, interface.context, interface.source_context) == ("sequence_to_sequence", 65, 64)
    assert interface.source_vocabulary == 4 + len(words) - 15 and interface.vocabulary == 4 + 8
    source, valid, _ = data.batch(200, generator(0)).inputs
    assert source[valid].min() >= 4 and source[~valid].max() == 0


def test_characters_are_numbered_in_their_order(tmp_path: Path) -> None:
    table(tmp_path, [("ab a", "xß")] * 5)
    table(tmp_path, [("ba c", "ßx")], "b.tsv")
    (batch,) = loaded(tmp_path, tokens="characters", test_path="b.tsv").evaluation(99)
    assert batch.inputs[0].tolist() == [[6, 5, 4, 3]]  # a space is a character, and c is unknown
    assert batch.inputs[2].tolist() == [[1, 5, 4]] and batch.targets.tolist() == [[5, 4, 2]]


def test_pairs_of_one_source_stay_together(tmp_path: Path) -> None:
    table(tmp_path, [(f"s{n % 20}", f"t{n}") for n in range(100)])
    data = loaded(tmp_path, test_share=0.3)
    assert data.facts["evaluated_pairs"] == 30 and data.facts["unknown_in_source"] == 1


def test_a_test_file_is_judged_on_as_a_whole(tmp_path: Path) -> None:
    table(tmp_path, ROWS)
    table(tmp_path, [*ROWS[:2], ("new is here", "r1")], "b.tsv")
    data = loaded(tmp_path, test_path="b.tsv")
    assert data.facts["training_pairs"] == 60 and data.facts["evaluated_pairs"] == 3
    assert data.facts["sources_in_training"] == pytest.approx(2 / 3)
    assert loaded(tmp_path, test_path="b.tsv", test_share=0.4).digest == data.digest
    assert digest(Pairs(path="./a.tsv", test_path="b.tsv", test_share=0.4)) == digest(
        Pairs(path="a.tsv", test_path="x/../b.tsv")
    )


def test_samples_are_some_of_the_test_and_rare_words_are_unknown(tmp_path: Path) -> None:
    table(tmp_path, ROWS)
    assert loaded(tmp_path, test_share=0.5, samples=4).facts["evaluated_pairs"] == 4
    data = loaded(tmp_path, at_least=2)
    assert data.interface.source_vocabulary == 4 + 3  # is, long and here


def test_digests_differ_by_what_the_data_are(tmp_path: Path) -> None:
    path = table(tmp_path, ROWS)
    changes: list[dict[str, Any]] = [
        {},
        {"tokens": "characters"},
        {"at_least": 2},
        {"samples": 3},
        {"test_share": 0.2},
        {"buckets": 4},
        {"test_path": "a.tsv"},
    ]
    digests = [loaded(tmp_path, **change).digest for change in changes]
    assert len(set(digests)) == len(changes)
    assert loaded(tmp_path, decoding=None, short=3).digest == digests[0] == loaded(tmp_path).digest
    path.write_text(path.read_text().replace("w3 ", "w03 "))
    assert loaded(tmp_path).digest != digests[0]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in ROWS))
    assert loaded(tmp_path, path="c.jsonl").digest == digests[0]


def test_a_model_is_judged_by_what_it_writes_and_by_the_right_tokens(tmp_path: Path) -> None:
    table(tmp_path, ROWS)
    task = Pairs(path="a.tsv", short=2, middle=3)
    data = task.load(str(tmp_path))
    network = build(RnnSeq2Seq(width=8), root_site(data.interface), stream=(0,), initializer=LecunNormal()).eval()
    with torch.no_grad():
        found = [task.tally(network, batch) for batch in data.evaluation(3)]
    values = task.metrics({name: sum(float(each[name]) for each in found) for name in found[0]})
    assert values.keys() == task.units.keys()
    assert values["val/loss"] > 1 and 0 <= values["val/accuracy"] <= 1 and values["val/error_rate"] > 0


def test_the_lengths_are_in_order() -> None:
    with pytest.raises(ValidationError, match="`middle` is 4, and `short` is 4"):
        Pairs(path="a.tsv", short=4, middle=4)


def test_what_is_read_and_what_is_written_are_two_columns() -> None:
    with pytest.raises(ValidationError, match="`source` and `target` are both the column `target`"):
        Pairs(path="a.tsv", source="target")


FAULTS = {
    "one source": (
        [("a", "b"), ("a", "c")],
        {},
        "error[S330]: `a.tsv` has one `source` in all its rows, and training and test need one each\n"
        "  = help: give it more rows, or a `test_path`",
    ),
    "long": (
        [("a", "b"), ("c", "d e f g")],
        {"longest": 3},
        "error[S331]: line 3 of `a.tsv` has 4 tokens in `target`, and `longest` is 3\n"
        "  = help: give a larger `longest`, or take the row out",
    ),
    "rare in the source": (
        ROWS,
        {"at_least": 1_000_000},
        "error[S336]: no token of `source` stands 1,000,000 times in the training part of `a.tsv`, and all would be "
        "unknown\n  = help: give a smaller `at_least`",
    ),
    "rare in the target": (
        [(f"a a {n}", f"{n}") for n in range(9)],
        {"at_least": 3},
        "error[S336]: no token of `target` stands 3 times in the training part of `a.tsv`, and all would be unknown\n"
        "  = help: give a smaller `at_least`",
    ),
    "column": (
        [("a", "b")],
        {"source": "sources"},
        "error[S324]: `a.tsv` has no column `sources`\n"
        "  = help: did you mean `source`? it has `source`, `target`",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "options", "text"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_sentence(
    tmp_path: Path, rows: list[tuple[str, str]], options: dict[str, Any], text: str
) -> None:
    table(tmp_path, rows)
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, **options)
    assert str(caught.value) == text
