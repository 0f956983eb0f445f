"""Tables of text: every kind of file gives the same, and every fault is one sentence with its line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, ipc, parquet

from ablate.data.tables import Table, read_table
from ablate.errors import InputError

ROWS = [("sing", "sang"), ("ring", "räng\u2028"), ("go", 'we"nt')]


def read(path: Path, *columns: str) -> Table:
    return read_table(path, columns or ("source", "target"), path.name)


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def arrow() -> pa.Table:
    return pa.table({"number": [1, 2, 3], "target": [row[1] for row in ROWS], "source": [row[0] for row in ROWS]})


def _quoted(cell: str) -> str:
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'


def in_every_format(folder: Path) -> list[Path]:
    lines = [("source", "target"), *ROWS]
    paths = [
        written(folder, "a.tsv", "".join(f"{a}\t{b}\n" for a, b in lines)),
        written(folder, "b.TSV", "\ufeff" + "".join(f"{a}\t{b}\r\n" for a, b in lines) + "\r\n\n"),
        written(folder, "b.csv", "source,target\r" + "".join(f"{a},{_quoted(b)}\r" for a, b in ROWS)),
        written(folder, "b.tsv", "".join(f"{a}\t{b}\r" for a, b in lines)),
        written(folder, "b.jsonl", "\r".join(json.dumps({"source": a, "target": b}) for a, b in ROWS) + "\r"),
        written(folder, "c.jsonl", "\n".join(json.dumps({"source": a, "target": b, "n": [1]}) for a, b in ROWS)),
        folder / "d.csv",
        folder / "e.parquet",
        folder / "f.arrow",
        folder / "g.arrow",
        folder / "h.feather",
    ]
    with paths[-5].open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([*(("x", b, a) for a, b in lines)])
    parquet.write_table(arrow(), paths[-4])
    with ipc.new_file(paths[-3], arrow().schema) as file:
        file.write_table(arrow())
    with ipc.new_stream(paths[-2], arrow().schema) as file:
        file.write_table(arrow())
    feather.write_feather(arrow(), paths[-1])
    return paths


def test_every_kind_of_file_gives_the_same_text(tmp_path: Path) -> None:
    tables = [read(path) for path in in_every_format(tmp_path)]
    for table in tables:
        assert list(zip(table.columns["source"], table.columns["target"], strict=True)) == ROWS
        assert list(table.columns) == ["source", "target"] and len(table) == 3
    assert len({table.digest for table in tables}) == 1


def test_the_digest_is_that_of_the_columns_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "a,b,c\n1,2,3\n")
    first = read(path, "a", "b").digest
    path.write_text("a,b,c\n1,2,4\n")
    assert read(path, "a", "b").digest == first != read(path, "b", "a").digest
    path.write_text("a,b,c\n12,,3\n".replace(",,", ",3,"))
    assert read(path, "a", "b").digest != first


def test_a_place_is_a_line_or_a_row(tmp_path: Path) -> None:
    table = read(written(tmp_path, "a.csv", 'source,target\n"two\nlines","a ""b"", c"\nlast,row\n'))
    assert table.columns == {"source": ["two\nlines", "last"], "target": ['a "b", c', "row"]}
    assert [table.place(0), table.place(1)] == ["line 2 of `a.csv`", "line 4 of `a.csv`"]
    parquet.write_table(arrow(), tmp_path / "b.parquet")
    assert read(tmp_path / "b.parquet").place(2) == "row 3 of `b.parquet`"


def test_numbers_and_truth_are_taken_as_they_are_written(tmp_path: Path) -> None:
    path = written(tmp_path, "a.jsonl", '{"source": 1, "target": true}\n{"source": 2.5, "target": "x"}\n')
    assert read(path).columns == {"source": ["1", "2.5"], "target": ["true", "x"]}
    parquet.write_table(
        pa.table({"source": [1], "target": pa.array(["a"]).dictionary_encode()}), tmp_path / "b.parquet"
    )
    assert read(tmp_path / "b.parquet").columns == {"source": ["1"], "target": ["a"]}


def test_a_long_cell_is_read(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    long = "x" * (before + 10)
    assert read(written(tmp_path, "a.csv", f"source,target\n{long},b\n")).columns["source"] == [long]
    assert csv.field_size_limit() == before


@settings(deadline=None)
@given(
    st.lists(st.tuples(*[st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)] * 2), min_size=1).filter(
        lambda rows: all(cell.strip() for row in rows for cell in row)
    )
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("tables")
    header = [("source", "target")]
    written(folder, "a.tsv", "".join(f"{a}\t{b}\n" for a, b in header + rows))
    written(
        folder, "a.jsonl", "".join(json.dumps({"source": a, "target": b}, ensure_ascii=False) + "\n" for a, b in rows)
    )
    with (folder / "a.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(header + rows)
    for name in ("a.tsv", "a.jsonl", "a.csv"):
        found = read(folder / name).columns
        assert list(zip(found["source"], found["target"], strict=True)) == rows


FAULTS: dict[str, tuple[str, str | bytes, str, str, str]] = {
    "ending": ("a.xlsx", "x", "S320", "`a.xlsx` is no table that can be read: its name ends in `.xlsx`",
        "give a file that ends in `.tsv`, `.csv`, `.jsonl`, `.ndjson`, `.parquet`, `.arrow`, `.feather`"),
    "no ending": ("data", "x", "S320", "`data` is no table that can be read: its name has no ending",
        "give a file that ends in `.tsv`, `.csv`, `.jsonl`, `.ndjson`, `.parquet`, `.arrow`, `.feather`"),
    "empty": ("a.tsv", "", "S322", "`a.tsv` is empty", "give a file with some rows in it"),
    "empty lines": ("a.jsonl", "\n\r\n", "S322", "`a.jsonl` is empty", "give a file with some rows in it"),
    "one line": ("a.csv", "source,target\n", "S322", "`a.csv` has no rows: its one line names the columns",
        "give it some rows"),
    "encoding": ("a.csv", b"source,target\na,b\nc,d\xe9\n", "S323",
        "`a.csv` is not UTF-8 text: line 3 has the byte 0xe9", "convert the file to UTF-8"),
    "column": ("a.tsv", "source\ttargets\na\tb\n", "S324", "`a.tsv` has no column `target`",
        "did you mean `targets`? it has `source`, `targets`"),
    "member": ("a.jsonl", '{"source": "a", "target": "b"}\n{"source": "a", "goal": 1}\n', "S324",
        "line 2 of `a.jsonl` has no `target`", "it has `source`, `goal`"),
    "no member": ("a.jsonl", "{}", "S324", "line 1 of `a.jsonl` has no `source`", "it has nothing"),
    "ragged": ("a.tsv", "source\ttarget\na\tb\na\n", "S325",
        "line 3 of `a.tsv` has 1 cell, and the first line names 2 columns", "give every line one cell for each column"),
    "ragged csv": ("a.csv", 'source,target\n"a\nb",c\na,b,c\n', "S325",
        "line 4 of `a.csv` has 3 cells, and the first line names 2 columns",
        "give every line one cell for each column"),
    "blank": ("a.csv", "source,target\na,b\n\nc,d\n", "S325", "line 3 of `a.csv` is empty", "take the line out"),
    "blank tsv": ("a.tsv", "source\ttarget\n\nc\td\n", "S325", "line 2 of `a.tsv` is empty", "take the line out"),
    "blank jsonl": ("a.jsonl", '{"source": 1, "target": 2}\n \n{}', "S325", "line 2 of `a.jsonl` is empty",
        "take the line out"),
    "cell": ("a.csv", "source,target\na,b\nc, \n", "S326", "line 3 of `a.csv` has nothing in `target`",
        "fill the cell, or take the row out"),
    "null": ("a.jsonl", '{"source": null, "target": "b"}', "S326", "line 1 of `a.jsonl` has nothing in `source`",
        "fill the cell, or take the row out"),
    "json": ("a.jsonl", '{"source": "a", "target": "b"}\n{"source"}', "S327",
        "line 2 of `a.jsonl` is no JSON: Expecting ':' delimiter", "give one JSON object a line"),
    "list": ("a.jsonl", "[1]", "S327", "line 1 of `a.jsonl` is a list, and an object is wanted",
        "give one JSON object a line"),
    "nested": ("a.jsonl", '{"source": ["a"], "target": "b"}', "S327",
        "line 1 of `a.jsonl` has a list in `source`, and text is wanted", "give a text or a number"),
    "quote": ("a.csv", 'source,target\na,b\n"c,d\ne,f\n', "S327",
        "line 3 of `a.csv` is no CSV: a quotation mark is not closed", 'a `"` within quotes is written twice'),
    "twice in a line": ("a.jsonl", '{"source": 1, "target": 2}\n{"source": 1, "target": 2, "source": 3}', "S328",
        "line 2 of `a.jsonl` has `source` twice", "give each value a name of its own"),
    "NaN": ("a.jsonl", '{"source": Infinity, "target": 2}\n{"source": 1, "target": NaN}', "S326",
        "line 2 of `a.jsonl` has nothing in `target`", "fill the cell, or take the row out"),
    "NUL": ("a.tsv", "source\ttarget\n\0\t", "S326", "line 2 of `a.tsv` has nothing in `target`",
        "fill the cell, or take the row out"),
    "old encoding": ("a.csv", b"source,target\ra,b\rc,d\xe9\r", "S323",
        "`a.csv` is not UTF-8 text: line 3 has the byte 0xe9", "convert the file to UTF-8"),
    "old ragged": ("a.tsv", "source\ttarget\ra\r", "S325",
        "line 2 of `a.tsv` has 1 cell, and the first line names 2 columns", "give every line one cell for each column"),
    "old empty": ("a.jsonl", "\r\r", "S322", "`a.jsonl` is empty", "give a file with some rows in it"),
    "twice": ("a.csv", "source,target,source\n1,2,3\n", "S328", "`a.csv` names the column `source` twice",
        "give each column a name of its own"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "code", "message", "remedy"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_sentence_with_its_line(
    tmp_path: Path, name: str, content: str | bytes, code: str, message: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, name, content))
    assert str(caught.value) == f"error[{code}]: {message}\n  = help: {remedy}"


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow"])
def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path / name)
    assert "[S321]" in str(caught.value) and f"cannot read `{name}`: " in str(caught.value)


@pytest.mark.parametrize("name", ["a\0.csv", "a\0.parquet", "a\0.arrow"])
def test_a_name_that_no_file_can_have_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path / name)
    assert str(caught.value) == (
        f"error[S321]: cannot read `{name.replace(chr(0), chr(92) + 'x00')}`: no file has a NUL in its name\n"
        "  = help: a path is relative to the experiment's file"
    )


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow"])
def test_a_folder_is_no_table(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(InputError) as caught:
        read(tmp_path / name)
    said = str(caught.value)
    assert said.startswith(f"error[S321]: cannot read `{name}`: ") and "directory" in said.splitlines()[0]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_column_that_comes_twice_is_one_sentence(tmp_path: Path, name: str) -> None:
    table = pa.table([pa.array(["a"])] * 3, names=["source", "target", "source"])
    if name == "a.parquet":
        parquet.write_table(table, tmp_path / name)
    else:
        feather.write_feather(table, tmp_path / name)
    with pytest.raises(InputError) as caught:
        read(tmp_path / name)
    assert str(caught.value) == (
        f"error[S328]: `{name}` names the column `source` twice\n  = help: give each column a name of its own"
    )


COLUMNS: list[tuple[dict[str, Any], str, str]] = [
    ({"source": [["a"]], "target": ["b"]}, "S327", "`source` of `a.parquet` is of the type list<"),
    ({"source": ["a", None], "target": ["b", "c"]}, "S326", "row 2 of `a.parquet` has nothing in `source`"),
    ({"source": [1.5, float("nan")], "target": ["b", "c"]}, "S326", "row 2 of `a.parquet` has nothing in `source`"),
    ({"source": ["a"], "aim": ["b"]}, "S324", "`a.parquet` has no column `target`"),
    ({"source": pa.array([], pa.string()), "target": pa.array([], pa.string())}, "S322", "`a.parquet` has no rows"),
]


@pytest.mark.parametrize(("columns", "code", "message"), COLUMNS, ids=[each[2] for each in COLUMNS])
def test_faults_of_parquet(tmp_path: Path, columns: dict[str, Any], code: str, message: str) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(InputError) as caught:
        read(tmp_path / "a.parquet")
    assert str(caught.value).startswith(f"error[{code}]: {message}")


@pytest.mark.parametrize(("name", "kind"), [("a.parquet", "parquet"), ("a.arrow", "Arrow")])
def test_what_is_no_parquet_and_no_arrow(tmp_path: Path, name: str, kind: str) -> None:
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, name, b"source,target\na,b\n"))
    assert str(caught.value).startswith(f"error[S327]: `{name}` is no {kind} file: ")
