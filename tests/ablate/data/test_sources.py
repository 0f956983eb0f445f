"""Where tables come from: datasets of local folders and of the hub, and objects of Python code."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

import ablate
from ablate.data.sources import one_spelling, read_source
from ablate.data.tables import Table
from ablate.errors import InputError
from ablate_plugins.task.labelled_text import LabelledText
from tests.ablate.experiment.maker import write

ROWS = [{"text": "it rains", "label": "wet"}, {"text": "it shines", "label": "dry"}, {"text": "it snows", "label": "1"}]
COLUMNS = ("text", "label")
CELLS = {name: [row[name] for row in ROWS] for name in COLUMNS}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ABLATE_CACHE", str(tmp_path / "cache"))


def read(folder: Path, source: str, columns: Sequence[str] = COLUMNS) -> Table:
    return read_source(source, str(folder), columns)


def error_of(folder: Path, source: str) -> str:
    with pytest.raises(InputError) as caught:
        read(folder, source)
    return str(caught.value)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package, with a cache of its own; nothing of it asks the network."""
    datasets = import_module("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    return datasets


def write_jsonl(path: Path, rows: Sequence[dict[str, Any]] = ROWS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


# --- files ---


def test_a_file_is_read_as_before(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "rows.jsonl")
    assert read(tmp_path, "rows.jsonl").columns == CELLS
    assert error_of(tmp_path, "huub:rows").startswith("error[S320]: `huub:rows` is no table that can be read:")
    assert one_spelling("./a/../rows.jsonl") == "rows.jsonl"
    assert one_spelling("hub:./rows") == "hub:./rows"


# --- datasets ---


def test_every_local_form_of_a_dataset_gives_the_same_table(tmp_path: Path, hub: Any) -> None:
    write_jsonl(tmp_path / "lines/train.jsonl")
    write_jsonl(tmp_path / "lines/test.jsonl", ROWS[:1])
    (tmp_path / "parquet").mkdir()
    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "parquet/data.parquet")
    made = hub.Dataset.from_list(ROWS)
    made.save_to_disk(str(tmp_path / "saved"))
    hub.DatasetDict({"train": made, "few": made.select([2, 0])}).save_to_disk(str(tmp_path / "splits"))
    sources = ["lines", "lines:train", "lines/train.jsonl", "parquet", "saved", "splits", "splits:train"]
    tables = [read(tmp_path, f"hub:./{source}") for source in sources] + [read(tmp_path, f"hub:{tmp_path}/lines")]
    assert [table.columns for table in tables] == [CELLS] * len(tables)
    assert len({table.digest for table in tables}) == 1
    assert read(tmp_path, "hub:./lines:test").columns == {name: CELLS[name][:1] for name in COLUMNS}
    assert read(tmp_path, "hub:./lines:train[1:]").columns == {name: CELLS[name][1:] for name in COLUMNS}
    few = read(tmp_path, "hub:./splits:few")
    assert few.columns["label"] == ["1", "wet"] and few.place(1) == "row 2 of `hub:./splits:few`"


def test_changed_data_have_another_digest(tmp_path: Path, hub: Any) -> None:
    write_jsonl(tmp_path / "lines/train.jsonl")
    before = read(tmp_path, "hub:./lines").digest
    write_jsonl(tmp_path / "lines/train.jsonl", [*ROWS[:2], {"text": "it pours", "label": "wet"}])
    assert read(tmp_path, "hub:./lines").digest != before


BAD_DATASETS = {
    "hub:./a\0b": "error[S357]: cannot load `hub:./a\\x00b`: there is no such file or folder\n"
        "  = help: a path is relative to the experiment's file",
    "hub:./none": "error[S357]: cannot load `hub:./none`: there is no such file or folder\n"
        "  = help: a path is relative to the experiment's file",
    "hub:./lines:test": 'error[S357]: cannot load `hub:./lines:test`: Unknown split "test". Should be one of '
        "['train'].\n  = help: a path is relative to the experiment's file",
    "hub:./splits:test": "error[S357]: cannot load `hub:./splits:test`: it has no split `test`\n"
        "  = help: it has `train`",
    "hub:./lines": "error[S324]: `hub:./lines` has no column `text`\n"
        "  = help: did you mean `txt`? it has `txt`, `label`",
    "hub:./splits": "error[S326]: row 2 of `hub:./splits` has nothing in `text`\n"
        "  = help: fill the cell, or take the row out",
    "hub:./lists": "error[S327]: `text` of `hub:./lists` is of the type list<item: string>, and text is wanted\n"
        "  = help: name another column",
    "hub:./broken": "error[S357]: cannot load `hub:./broken`: JSON parse error: Invalid value. in row 0\n"
        "  = help: a path is relative to the experiment's file",
    "hub:": "error[S350]: `hub:` names no dataset\n"
        "  = help: write `hub:OWNER/NAME`, `hub:OWNER/NAME:SPLIT` or `hub:OWNER/NAME/CONFIG:SPLIT`, or `hub:./FOLDER`",
}  # fmt: skip


@pytest.mark.parametrize("source", BAD_DATASETS)
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the reader leaves the file open that it fails to read
def test_a_bad_dataset_is_one_sentence(tmp_path: Path, hub: Any, source: str) -> None:
    write_jsonl(tmp_path / "lines/train.jsonl", [{"txt": "a", "label": "b"}])
    write_jsonl(tmp_path / "lists/train.jsonl", [{"text": ["a"], "label": "b"}])
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/train.jsonl").write_text('{"text": \n')
    made = hub.Dataset.from_list([{"text": "a", "label": 1}, {"text": " ", "label": 2}])
    hub.DatasetDict({"train": made}).save_to_disk(str(tmp_path / "splits"))
    assert error_of(tmp_path, source) == BAD_DATASETS[source]


UNREACHED = (
    "error[S356]: cannot load `hub:stanfordnlp/imdb:train`: the hub cannot be reached, and there is no copy of it on "
    "this machine\n  = help: load it once with a network, or give files of it as `hub:./FOLDER`"
)


@pytest.mark.parametrize("fault", [OSError("no route"), TimeoutError(), RuntimeError("of a library for the network")])
def test_a_hub_that_does_not_answer_is_one_error_and_is_asked_once(
    tmp_path: Path, hub: Any, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    monkeypatch.setattr(hub.config, "HF_HUB_OFFLINE", False)
    asked: list[tuple[str, float]] = []

    def info(api: Any, name: str, *, timeout: float) -> None:
        asked.append((name, timeout))
        raise fault

    def no_request(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a request that is tried again and again")

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", info)
    monkeypatch.setattr("huggingface_hub.HfApi.hf_hub_download", no_request)
    assert error_of(tmp_path, "hub:stanfordnlp/imdb:train") == UNREACHED
    assert asked == [("stanfordnlp/imdb", 5.0)]
    assert hub.config.HF_HUB_OFFLINE is False


def test_a_name_of_the_hub_is_taken_apart(tmp_path: Path, hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None, str]] = []

    def load(name: str, config: str | None, *, split: str) -> Any:
        asked.append((name, config, split))
        if config == "none":
            raise ValueError("BuilderConfig 'none' not found.\nMore lines " * 99)
        return hub.Dataset.from_list(ROWS)

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda api, name, timeout: None)
    monkeypatch.setattr(hub, "load_dataset", load)
    for source in ("imdb", "nyu-mll/glue/sst2:train[:10%]", "a/b:test"):
        assert read(tmp_path, f"hub:{source}").columns == CELLS
    assert asked == [("imdb", None, "train"), ("nyu-mll/glue", "sst2", "train[:10%]"), ("a/b", None, "test")]
    assert error_of(tmp_path, "hub:a/b/none") == (
        "error[S357]: cannot load `hub:a/b/none`: BuilderConfig 'none' not found.\n"
        "  = help: https://huggingface.co/datasets/a/b"
    )


def test_without_the_package_it_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert error_of(tmp_path, "hub:imdb") == (
        "error[S335]: `hub:imdb` needs the package `datasets`, which is not installed\n"
        "  = help: pip install 'ablate-arch[datasets]'"
    )


# --- objects of Python ---

GOOD = """\
import random
import numpy as np
import torch
import beside

print("on stderr")

rows = [
    {"text": "it rains", "label": "wet", "more": [1]},
    {"text": np.str_("it shines"), "label": "dry"},
    {"text": "it snows", "label": torch.tensor(1)},
]


class Rows:
    def __len__(self):
        return beside.NUMBER

    def __getitem__(self, row):
        return {**rows[row], "label": np.array(row)}


def made():
    return Rows()


def drawn():
    return [{"text": f"{random.random()} {np.random.rand()} {torch.rand(1).item()}", "label": n} for n in range(3)]
"""


def test_objects_and_what_gives_them_are_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my_good_data.py").write_text(GOOD)
    (tmp_path / "beside.py").write_text("NUMBER = 3\n")
    path = list(sys.path)
    table = read(tmp_path, "python:my_good_data:rows")
    assert table.columns == CELLS and table.place(2) == "row 3 of `python:my_good_data:rows`"
    for name in ("Rows", "made"):
        assert read(tmp_path, f"python:my_good_data:{name}").columns["label"] == ["0", "1", "2"]
    assert sys.path == path and "my_good_data" not in sys.modules
    assert capsys.readouterr() == ("", "on stderr\n" * 5)  # what is new is read twice, and two of these are the same
    assert len(read(tmp_path, "python:ablate.data.example:labelled")) == 120


def test_what_draws_by_global_generators_gives_the_same_and_leaves_them(tmp_path: Path) -> None:
    (tmp_path / "my_good_data.py").write_text(GOOD)
    (tmp_path / "beside.py").write_text("NUMBER = 3\n")

    def state() -> tuple[object, ...]:
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]

    before = state()
    tables = [read(tmp_path, "python:my_good_data:drawn") for _ in range(2)]
    assert tables[0].digest == tables[1].digest and len(set(tables[0].columns["text"])) == 3
    assert state() == before


def test_a_changed_module_is_read_anew(tmp_path: Path) -> None:
    digests = []
    for text in ("a", "b"):
        (tmp_path / "my_data.py").write_text(f"rows = [{{'text': {text!r}, 'label': 1}}]\n")
        digests.append(read(tmp_path, "python:my_data:rows").digest)
    assert digests[0] != digests[1]


BAD = """\
import collections

no_rows = []
columns = {"text": ["a"], "label": ["b"]}
number = 3
class frame(list):
    iloc = None
tuples = [{"text": "a", "label": "b"}, ("a", "b")]
lacking = [{"text": "a", "lable": "b"}]
nothing = [{}]
listed = [{"text": "a", "label": ["b"]}]
odd = [{"text": "a", "label": b"b"}]
empty = [{"text": "a", "label": "b"}, {"text": " ", "label": "b"}]
missing = [{"text": "a", "label": float("nan")}]
def fails():
    raise ValueError("no luck\\nin two lines")
def leaves():
    raise SystemExit
class Short:
    def __len__(self):
        return 2
    def __getitem__(self, row):
        return [{"text": "a", "label": "b"}][row]
class Silent(BaseException):
    def __str__(self):
        raise SystemExit
class Rows:
    def __len__(self):
        return 2
class Tongue(Rows):
    def __getitem__(self, row):
        raise Silent
class Length(Rows):
    def __len__(self):
        raise GeneratorExit("out")
    def __getitem__(self, row):
        return {}
class Hidden:
    def __getattribute__(self, name):
        raise KeyError(name)
class Cell:
    @property
    def shape(self):
        raise SystemExit(3)
class Cells(Rows):
    def __getitem__(self, row):
        return {"text": Cell(), "label": "b"}
class Word(str):
    def __len__(self):
        raise ValueError("no length")
class Words(Rows):
    def __getitem__(self, row):
        return {Cell(): 1, "text": Word("a"), "label": Word(" ")}
class Loud(Rows):
    def __getitem__(self, row):
        raise ValueError("\\n\\n" + "\\x1b[31m" + "x" * 500)
class NoLength(Short):
    def __len__(self):
        raise OSError("gone")
"""
BAD_OBJECTS = {
    "": "error[S350]: `python:` names no object\n"
        "  = help: write `python:MODULE:NAME`, as in `python:my_data:rows`",
    "bad_data": "error[S350]: `python:bad_data` names no object\n"
        "  = help: write `python:MODULE:NAME`, as in `python:my_data:rows`",
    "no_data:rows": "error[S351]: cannot import `no_data`: ModuleNotFoundError: No module named 'no_data'\n"
        "  = help: put the file beside the experiment, or install the package",
    "raising:rows": "error[S351]: cannot import `raising`: ZeroDivisionError: division by zero\n"
        "  = help: mend it; nothing was run",
    "other:rows": "error[S360]: `other:rows` is made with `lightning`, and Ablate runs on `pytorch_lightning`: these "
        "are two packages, and neither knows the other's classes\n"
        "  = help: write `import pytorch_lightning as pl` in place of `import lightning.pytorch as pl`",
    "bad_data:fail": "error[S352]: the module `bad_data` has no `fail`\n  = help: did you mean `fails`?",
    "bad_data:xyzzy": "error[S352]: the module `bad_data` has no `xyzzy`\n  = help: define `xyzzy` in it",
    **{f"bad_data:{name}": f"error[S353]: `python:bad_data:{name}` is a {kind}, which is no table\n"
        "  = help: give an object with `__len__` whose `__getitem__` gives the row of a number as a dict; of a "
        'DataFrame, give `frame.to_dict("records")`'
       for name, kind in (("number", "int"), ("columns", "dict"), ("frame", "frame"))},
    "bad_data:fails": "error[S354]: `python:bad_data:fails()` raises ValueError: no luck\n"
        "  = help: mend the code; nothing was run",
    "bad_data:leaves": "error[S354]: `python:bad_data:leaves()` raises SystemExit\n"
        "  = help: mend the code; nothing was run",
    "bad_data:Short": "error[S354]: `[1]` of `python:bad_data:Short`, its row 2, raises IndexError: list index out of "
        "range\n  = help: mend the code; nothing was run",
    "bad_data:NoLength": "error[S354]: `len` of `python:bad_data:NoLength` raises OSError: gone\n"
        "  = help: mend the code; nothing was run",
    "bad_data:Tongue": "error[S354]: `[0]` of `python:bad_data:Tongue`, its row 1, raises Silent, whose text cannot be "
        "read: its `__str__` raises SystemExit\n  = help: mend the code; nothing was run",
    "bad_data:Length": "error[S354]: `len` of `python:bad_data:Length` raises GeneratorExit: out\n"
        "  = help: mend the code; nothing was run",
    "bad_data:Hidden": "error[S354]: looking at `python:bad_data:Hidden` raises KeyError: '__len__'\n"
        "  = help: mend the code; nothing was run",
    "bad_data:Cells": "error[S354]: `[0]` of `python:bad_data:Cells`, its row 1, raises SystemExit: 3\n"
        "  = help: mend the code; nothing was run",
    "bad_data:Words": "error[S326]: row 1 of `python:bad_data:Words` has nothing in `label`\n"
        "  = help: fill the cell, or take the row out",
    "bad_data:Loud": "error[S354]: `[0]` of `python:bad_data:Loud`, its row 1, raises ValueError: \\x1b[31m"
        f"{'x' * 195}…\n  = help: mend the code; nothing was run",
    "quiet:rows": "error[S351]: cannot import `quiet`: Quiet: no\n  = help: mend it; nothing was run",
    "bad_data:tuples": "error[S355]: row 2 of `python:bad_data:tuples` is a tuple, and a dict is wanted\n"
        '  = help: give dicts, as {"text": "it rains", "label": "weather"}',
    "bad_data:no_rows": "error[S322]: `python:bad_data:no_rows` has no rows\n  = help: give it some rows",
    "bad_data:lacking": "error[S324]: row 1 of `python:bad_data:lacking` has no `label`\n"
        "  = help: did you mean `lable`? it has `text`, `lable`",
    "bad_data:nothing": "error[S324]: row 1 of `python:bad_data:nothing` has no `text`\n  = help: it has nothing",
    "bad_data:listed": "error[S327]: row 1 of `python:bad_data:listed` has a list in `label`, and text is wanted\n"
        "  = help: give a text or a number",
    "bad_data:odd": "error[S327]: row 1 of `python:bad_data:odd` has a bytes in `label`, and text is wanted\n"
        "  = help: give a text or a number",
    "bad_data:empty": "error[S326]: row 2 of `python:bad_data:empty` has nothing in `text`\n"
        "  = help: fill the cell, or take the row out",
    "bad_data:missing": "error[S326]: row 1 of `python:bad_data:missing` has nothing in `label`\n"
        "  = help: fill the cell, or take the row out",
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_OBJECTS)
def test_a_bad_object_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad_data.py").write_text(BAD)
    (tmp_path / "raising.py").write_text("1 / 0\n")
    (tmp_path / "quiet.py").write_text("class Quiet(BaseException): pass\nraise Quiet('no')\n")
    (tmp_path / "other.py").write_text("import lightning.pytorch as pl\n")
    path = list(sys.path)
    assert error_of(tmp_path, f"python:{name}") == BAD_OBJECTS[name]
    assert sys.path == path


@pytest.mark.parametrize("how", ["uuid.uuid4()", "next(count)", "random.SystemRandom().random()"])
def test_rows_that_differ_from_reading_to_reading_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    (tmp_path / "counting.py").write_text("import itertools\ncount = itertools.count()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    code = "import random, uuid\nfrom counting import count\nrows = [{'text': str(%s), 'label': n} for n in range(3)]\n"
    (tmp_path / "my_data.py").write_text(code % how)
    assert error_of(tmp_path, "python:my_data:rows") == (
        "error[S358]: `python:my_data:rows` gives something else each time it is read, and all trials need the same\n"
        "  = help: draw by the global generators, which are at 0 here, or by one of your own with a fixed seed"
    )
    (tmp_path / "my_data.py").write_text(code % "random.random()")  # once mended, they are read
    assert len(read(tmp_path, "python:my_data:rows")) == 3
    sys.modules.pop("counting", None)


# --- tasks ---

TASK = """\
kind: labelled_text
  path: python:my_data:Rows
"""
DATA = """\
class Rows:
    def __len__(self):
        return 40

    def __getitem__(self, row):
        return {"text": f"{'good' if row % 2 else 'bad'} n{row}", "label": "yes" if row % 2 else "no"}
"""


def experiment(folder: Path) -> Path:
    return write(
        folder,
        ("{kind: text, source: python-docs, context: 16}", f"\n  {TASK}"),
        ("kind: decoder", "kind: encoder"),
        ("steps: 20", "steps: 3"),
        ("seeds: 6", "seeds: 1"),
    )


def test_an_experiment_runs_on_an_object_beside_it(tmp_path: Path) -> None:
    (tmp_path / "my_data.py").write_text(DATA)
    results = ablate.run(experiment(tmp_path), runs=tmp_path / "runs", parallel=1)
    assert results.counts()["complete"] == 3 and results.trials()["val/accuracy"].between(0, 1).all()


def test_a_plan_tells_the_row_and_where_the_task_stands(tmp_path: Path) -> None:
    (tmp_path / "my_data.py").write_text(DATA.replace("n{row}", "n{1 // (row - 7)}"))
    with pytest.raises(InputError) as caught:
        ablate.plan(ablate.load(experiment(tmp_path)))
    first, place, *_, last = str(caught.value).splitlines()
    words = "integer division or modulo by zero"
    assert first == f"error[S354]: `[7]` of `python:my_data:Rows`, its row 8, raises ZeroDivisionError: {words}"
    assert place.endswith("small.yaml:5:3") and last.endswith("= help: mend the code; nothing was run")


def test_changed_rows_change_the_task_and_one_spelling_does_not(tmp_path: Path) -> None:
    (tmp_path / "my_data.py").write_text(DATA)
    before = LabelledText(path="python:my_data:Rows").load(str(tmp_path)).digest
    (tmp_path / "my_data.py").write_text(DATA.replace("good", "fine"))
    assert LabelledText(path="python:my_data:Rows").load(str(tmp_path)).digest != before
