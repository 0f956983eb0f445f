"""Documents, and the files that they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.errors import InputError, Span
from ablate.experiment.reading import MAX_BYTES, parse, read
from tests.ablate.experiment.yaml.outcomes import data, errors


def test_an_experiment_reads_as_plain_values() -> None:
    text = """\
# yaml-language-server: $schema=./schema.json
schema: 1
name: norm-placement
model: {width: 128, mixer: {kind: attention, heads: 4, scale: inverse_sqrt}}
factors:
  placement:
    levels:
      pre:  {model.placement: pre}
      off:
  norm: {path: model.norm, levels: [layer, rms, null, on]}
seeds:
- 0
- 1
question: >-
  Where should
  the norm sit?
tune: {lr: [1e-4, 3e-2]}
"""
    assert data(text) == {
        "schema": 1,
        "name": "norm-placement",
        "model": {"width": 128, "mixer": {"kind": "attention", "heads": 4, "scale": "inverse_sqrt"}},
        "factors": {
            "placement": {"levels": {"pre": {"model.placement": "pre"}, "off": None}},
            "norm": {"path": "model.norm", "levels": ["layer", "rms", None, "on"]},
        },
        "seeds": [0, 1],
        "question": "Where should the norm sit?",
        "tune": {"lr": [1e-4, 3e-2]},
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_a_byte_order_mark_make_no_difference(end: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + end.join(["a: 1", "b: |", "  x", "  y", "c: 010"]).encode())
    document = read(path)
    assert document.data == {"a": 1, "b": "x\ny\n", "c": 10}
    assert document.keys["a",] == Span(1, 1, 2) and document.keys["c",] == Span(5, 1, 2)
    assert document.warnings[0].source == "c: 010"


def test_a_path_that_is_absent_has_the_place_of_what_is_around_it() -> None:
    document = parse("name: x\nobjective: {metric: val/loss}\nlevels: [a, b]\n", "x.yaml")
    assert document.at(("objective", "metric")) == Span(2, 21, 29)
    assert document.at(("objective", "metric"), key=True) == Span(2, 13, 19)
    assert document.at(("objective", "goal")) == Span(2, 12, 30)
    assert document.at(("objective", "goal", 0, "x"), key=True) == Span(2, 1, 10)
    assert document.at(("levels", 1), key=True) == document.at(("levels", 1)) == Span(3, 13, 14)
    assert document.at(("levels", 7)) == Span(3, 9, 15)
    assert document.at(()) == document.at(("nothing",)) == document.at((), key=True) == Span(1, 1, 8)


def test_a_diagnostic_about_a_path_shows_its_line() -> None:
    document = parse("name: x\nobjective: {metric: val/loss, gaol: min}\n", "norm.yaml")
    path = ("objective", "gaol")
    shown = document.diagnose("S101", "unknown key `gaol` in `objective`", path, key=True, help="did you mean `goal`?")
    assert str(shown) == (
        "error[S101]: unknown key `gaol` in `objective`\n"
        " --> norm.yaml:2:31\n"
        "2 | objective: {metric: val/loss, gaol: min}\n"
        "  |                               ^^^^\n"
        "  = help: did you mean `goal`?"
    )
    assert document.diagnose("S102", "m", path).span == Span(2, 37, 40)


def test_a_file_is_shown_by_the_name_that_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text("name: é\n", encoding="utf-8")
    document = read(Path("a.yaml"))
    assert (document.file, document.text, document.data) == ("a.yaml", "name: é\n", {"name": "é"})


def test_a_missing_file_names_the_one_that_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as alone:
        read(Path("quickstart.yaml"))
    assert str(alone.value) == "error[Y001]: there is no such file\n --> quickstart.yaml"
    for name in ("placement.yaml", "quickstart.yml", "b.yaml", "a.yaml", "notes.txt"):
        Path(name).touch()
    with pytest.raises(InputError) as close:
        read(Path("quickstart.yaml"))
    assert str(close.value) == (
        "error[Y001]: there is no such file\n --> quickstart.yaml\n  = help: did you mean `quickstart.yml`?"
    )
    with pytest.raises(InputError) as far:
        read(tmp_path / "zzz")
    assert far.value.diagnostics[0].help == "in that folder: a.yaml, b.yaml, placement.yaml and 1 more"


def test_a_folder_is_not_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grids").mkdir()
    Path("grids/a.yaml").touch()
    with pytest.raises(InputError) as caught:
        read(Path("grids"))
    assert str(caught.value) == (
        "error[Y001]: this is a folder, not a file\n --> grids\n  = help: in that folder: a.yaml"
    )


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop.yaml").symlink_to("loop.yaml")
    for path, message in {
        "loop.yaml": "the file cannot be read: too many levels of symbolic links",
        "x" * 300 + ".yaml": "the file cannot be read: file name too long",
        "a\0b": "the file cannot be read: embedded null byte",
    }.items():
        with pytest.raises(InputError) as caught:
            read(Path(path))
        assert [(d.code, d.message) for d in caught.value.diagnostics] == [("Y001", message)]

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError) as refused:
        read(Path("a.yaml"))
    assert str(refused.value) == "error[Y001]: the file cannot be read: permission denied\n --> a.yaml"


def test_a_file_that_is_not_utf_8_names_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("latin.yaml").write_bytes("name: ok\r\nquestion: é\r\n".encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read(Path("latin.yaml"))
    assert str(caught.value) == (
        "error[Y002]: line 2 is not UTF-8 text: the byte 0xE9\n"
        " --> latin.yaml:2:11\n"
        "2 | question: \ufffd\n"
        "  |           ^\n"
        "  = help: save the file as UTF-8"
    )
    Path("wide.yaml").write_text("name: ok\n", encoding="utf-16")
    with pytest.raises(InputError) as wide:
        read(Path("wide.yaml"))
    assert wide.value.diagnostics[0].help == "the file is UTF-16: save it as UTF-8"


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("big.yaml").write_bytes(b"\xff" * (MAX_BYTES + 1))
    with pytest.raises(InputError) as caught:
        read(Path("big.yaml"))
    assert str(caught.value) == (
        "error[Y004]: the file is larger than 1 MiB, so it is no experiment\n"
        " --> big.yaml\n"
        "  = help: an experiment takes a few kB: was another file meant?"
    )
    assert [d.code for d in errors("#" * (MAX_BYTES + 1))] == ["Y004"]
