"""Where a text is from: files, patterns, packages; what is kept of long ones, and what happens when they change."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import ablate.data.reading
import ablate.data.tokens
from ablate.data import caching
from ablate.errors import InputError
from ablate.model.keys import generator
from ablate.slots import Batch, Data
from ablate_plugins.task.text import Text

WORDS = "".join(f"{number} bottles of beer, " for number in range(300))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ABLATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text is long."""
    monkeypatch.setattr(ablate.data.tokens, "LARGE", 0)


def load(folder: Path, **options: Any) -> Data:
    return Text.model_validate({"context": 16, **options}).load(str(folder))


def diagnosed(folder: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        load(folder, **options)
    return str(caught.value)


def contents(data: Data) -> tuple[Any, ...]:
    """All that can be told of data."""
    batches: list[Batch] = [data.batch(64, generator(0)), *data.evaluation(50)]
    tensors = [tensor.tolist() for batch in batches for tensor in (*batch.inputs, batch.targets)]
    return data.digest, data.interface, dict(data.facts), tensors


def write(path: Path, text: str, *, ago: float = 60) -> None:
    """Write a file, as some seconds ago."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    os.utime(path, (time.time() - ago,) * 2)


# --- where it is from ---


def test_several_files_follow_each_other_by_their_paths_each_once(tmp_path: Path) -> None:
    for name, text in (("b", "bbb" * 99), ("a", "aaa" * 99), ("part/c", "ccc" * 99), ("part/d", "")):
        write(tmp_path / f"{name}.txt", text)
    whole = "aaa" * 99 + "bbb" * 99 + "ccc" * 99
    expected = contents(load(tmp_path, text=whole))
    for path in (["**/*.txt"], "**/*.txt", ["b.txt", "part/?.txt", "./a.txt", "[ab].txt"], ["part/*", "*.txt"]):
        assert contents(load(tmp_path, path=path)) == expected
    assert contents(load(tmp_path, path="*.txt")) != expected


def test_a_name_that_looks_like_a_pattern_is_a_name_where_there_is_such_a_file(tmp_path: Path) -> None:
    write(tmp_path / "a[1].txt", WORDS)
    write(tmp_path / "a1.txt", "other")
    assert contents(load(tmp_path, path="a[1].txt")) == contents(load(tmp_path, text=WORDS))


@pytest.mark.parametrize("documents", [None, ", "])
@pytest.mark.parametrize("tokenizer", ["char", "byte", {"kind": "bpe", "vocabulary": 280}], ids=str)
@pytest.mark.parametrize("large", [1 << 24, 0])
def test_a_byte_order_mark_is_no_part_of_a_text(
    tokenizer: Any, documents: str | None, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablate.data.tokens, "LARGE", large)
    options = {"tokenizer": tokenizer, "documents": documents}
    for name, mark in (("plain", ""), ("marked", "\ufeff")):
        write(tmp_path / name / "a.txt", mark + WORDS)
        write(tmp_path / name / "b.txt", mark + WORDS[::-1])
    for path in ("a.txt", "[ab].txt"):
        plain, marked = (load(tmp_path, path=f"{name}/{path}", **options) for name in ("plain", "marked"))
        assert contents(marked) == contents(plain)


def test_a_file_of_a_package_is_read(tmp_path: Path) -> None:
    file = Path(importlib.import_module("pydoc_data.topics").__file__ or "")
    expected = contents(load(tmp_path, text=file.read_text(encoding="utf-8")))
    assert contents(load(tmp_path, resource="pydoc_data:topics.py")) == expected


def test_a_file_of_a_package_in_an_archive_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed_words/__init__.py", "")
        archive.writestr("packed_words/in/words.txt", WORDS)
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    assert contents(load(tmp_path, resource="packed_words:in/words.txt")) == contents(load(tmp_path, text=WORDS))


HELP = "\n  = help: `path` is relative to the experiment's file"
OF_PACKAGE = "\n  = help: `resource` is written PACKAGE:FILE"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "none.txt"}, f"error[S303]: cannot read `none.txt`: No such file or directory{HELP}"),
        ({"path": "folder"}, f"error[S303]: cannot read `folder`: Is a directory{HELP}"),
        ({"path": ["good.txt", "folder"]}, f"error[S303]: cannot read `folder`: Is a directory{HELP}"),
        ({"path": "x" * 300}, f"error[S303]: cannot read `{'x' * 300}`: File name too long{HELP}"),
        ({"path": "a\0b"}, f"error[S303]: cannot read `a\\x00b`: embedded null byte{HELP}"),
        ({"path": "*.csv"}, f"error[S310]: no file matches `*.csv`{HELP}"),
        ({"path": ["good.txt", "fold*"]}, f"error[S310]: no file matches `fold*`{HELP}"),
        (
            {"resource": "no_such_thing:words.txt"},
            "error[S311]: cannot read `no_such_thing:words.txt`: no package `no_such_thing` is installed"
            f"{OF_PACKAGE}; install the package",
        ),
        (
            {"resource": "keyword:words.txt"},
            "error[S311]: cannot read `keyword:words.txt`: no package `keyword` is installed"
            f"{OF_PACKAGE}; install the package",
        ),
        (
            {"resource": "pydoc_data:words.txt"},
            "error[S311]: cannot read `pydoc_data:words.txt`: the package `pydoc_data` has no file `words.txt`"
            f"{OF_PACKAGE}, as the package has the file",
        ),
        ({"path": "empty.txt"}, "error[S301]: `empty.txt` is empty\n  = help: give a text file with some text in it"),
        (
            {"path": "empty*.txt"},
            "error[S301]: `empty.txt` and 1 more is empty\n  = help: give a text file with some text in it",
        ),
        ({"text": ""}, "error[S301]: `text` is empty\n  = help: give a text file with some text in it"),
        (
            {"path": "line.txt", "tokenizer": "byte"},
            "error[S302]: `line.txt` has 9 bytes, and a context of 16 needs at least 170\n"
            "  = help: give a longer text or a shorter `context`",
        ),
    ],
)
@pytest.mark.parametrize("large", [1 << 24, 0])
def test_what_cannot_be_read_is_one_clear_error(
    options: dict[str, Any], message: str, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablate.data.tokens, "LARGE", large)
    write(tmp_path / "good.txt", WORDS)
    write(tmp_path / "empty.txt", "")
    write(tmp_path / "empty2.txt", "")
    write(tmp_path / "line.txt", "one line\n")
    (tmp_path / "folder").mkdir()
    assert diagnosed(tmp_path, **options) == message


def test_a_file_that_may_not_be_read_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "mine.txt", WORDS)

    def refuse(self: Path, *arguments: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # who runs the tests may be allowed to read everything
    assert diagnosed(tmp_path, path="mine.txt") == f"error[S303]: cannot read `mine.txt`: Permission denied{HELP}"


@pytest.mark.parametrize("tokenizer", ["char", "byte", {"kind": "bpe"}], ids=str)
@pytest.mark.parametrize("chunk", [1 << 22, 7, 1])
@pytest.mark.parametrize(
    ("content", "line", "byte"),
    [
        (b"one\ntwo\xff", 2, "ff"),
        (b"\xe9t\xe9\n", 1, "e9"),
        ("é\n\n€".encode() + b"\n\xc3\n", 4, "c3"),
        ("ends in a character\n€".encode()[:-1], 2, "e2"),
        (b"\xed\xa0\x80", 1, "ed"),
        (b"one\r\ntwo\r\n\xff", 3, "ff"),
        (b"one\rtwo\r\xff", 3, "ff"),
        (b"\xef\xbb\xbfone\n\xff", 2, "ff"),
    ],
)
def test_what_is_not_utf8_is_told_by_line_and_byte(
    content: bytes, line: int, byte: str, chunk: int, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablate.data.reading, "CHUNK", chunk)
    (tmp_path / "first.txt").write_text("\nfine\n")
    (tmp_path / "mine.txt").write_bytes(content)
    assert diagnosed(tmp_path, path=["first.txt", "mine.txt"], tokenizer=tokenizer) == (
        f"error[S304]: `mine.txt` is not UTF-8 text: line {line} has the byte 0x{byte}\n"
        "  = help: convert the file to UTF-8"
    )


@pytest.mark.parametrize("tokenizer", ["char", "byte"])
@pytest.mark.parametrize("documents", [None, ", "])
def test_how_much_is_read_at_once_makes_no_difference(
    documents: str | None, tokenizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "mine.txt", WORDS + "é€😀" * 100)
    options = {"path": "mine.txt", "tokenizer": tokenizer, "documents": documents}
    expected = contents(load(tmp_path, **options))
    monkeypatch.setattr(ablate.data.reading, "CHUNK", 13)
    assert contents(load(tmp_path, **options)) == expected


# --- what is kept ---


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no file may be read."""

    def fail(self: ablate.data.reading.Piece) -> None:
        raise AssertionError(f"{self.name} is read")

    monkeypatch.setattr(ablate.data.reading.Piece, "blocks", fail)


@pytest.mark.parametrize("documents", [None, ", "])
@pytest.mark.parametrize("tokenizer", ["char", "byte", {"kind": "bpe", "vocabulary": 280}], ids=str)
def test_a_long_file_is_read_once(
    tokenizer: Any, documents: str | None, tmp_path: Path, long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "mine.txt", WORDS)
    monkeypatch.setattr(ablate.data.tokens, "RACY_NS", -(10**9))  # its entry in the folder is new, whatever its age
    options = {"path": "mine.txt", "tokenizer": tokenizer, "documents": documents}
    first = contents(load(tmp_path, **options))
    unread(monkeypatch)
    assert contents(load(tmp_path, **options)) == first


def test_what_is_found_of_a_file_that_was_just_written_is_not_kept(
    tmp_path: Path, long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "mine.txt", WORDS)
    load(tmp_path, path="mine.txt", tokenizer="byte")
    unread(monkeypatch)
    with pytest.raises(AssertionError, match=r"mine\.txt is read"):
        load(tmp_path, path="mine.txt", tokenizer="byte")


def test_a_file_of_the_same_size_and_age_with_other_content_is_another(
    tmp_path: Path, long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablate.data.tokens, "RACY_NS", -(10**9))
    path = tmp_path / "mine.txt"
    write(path, WORDS)
    first, times = load(tmp_path, path="mine.txt").digest, path.stat()
    path.write_text(WORDS.replace("beer", "wine"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert load(tmp_path, path="mine.txt").digest != first


def damages() -> list[tuple[str, Callable[[Path], object]]]:
    return [
        ("cut", lambda path: os.truncate(path, path.stat().st_size // 2)),
        ("emptied", lambda path: os.truncate(path, 0)),
        ("longer", lambda path: path.write_bytes(path.read_bytes() + b"\0")),
        ("another byte", lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\7")),
        ("gone", lambda path: path.unlink()),
        ("a folder", lambda path: (path.unlink(), path.mkdir(), (path / "more").touch())),
        ("a link to nothing", lambda path: (path.unlink(), path.symlink_to("nothing"))),
    ]


@pytest.mark.parametrize("suffix", [".tokens", ".seen", ".json"])
@pytest.mark.parametrize(("name", "damage"), damages(), ids=[name for name, _ in damages()])
def test_a_damaged_cache_is_noticed_and_made_anew(
    name: str, damage: Callable[[Path], object], suffix: str, cache: Path, tmp_path: Path, long: None
) -> None:
    options = {"text": WORDS, "tokenizer": {"kind": "bpe", "vocabulary": 280}, "documents": ", "}
    first = contents(load(tmp_path, **options))
    expected = {path.name: path.read_bytes() for path in cache.glob("*.tokens")}
    entries = list(cache.glob(f"*{suffix}"))
    assert len(entries) >= 2
    for path in entries:
        damage(path)
    assert contents(load(tmp_path, **options)) == first
    assert {path.name: path.read_bytes() for path in cache.glob("*.tokens")} == expected
    assert not list(cache.glob(".*"))


def test_a_cache_that_was_copied_is_as_good(
    cache: Path, tmp_path: Path, long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = contents(load(tmp_path, text=WORDS))
    for path in cache.iterdir():
        (tmp_path / "copy").mkdir(exist_ok=True)
        (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    monkeypatch.setenv("ABLATE_CACHE", str(tmp_path / "copy"))
    monkeypatch.setattr(caching, "_write", lambda *arguments: pytest.fail("written again"))
    assert contents(load(tmp_path, text=WORDS)) == first


SCRIPT = """
import sys
import ablate.data.tokens
from ablate_plugins.task.text import Text
ablate.data.tokens.LARGE = 0
data = Text.model_validate({"path": "mine.txt", "context": 16, "tokenizer": {"kind": "bpe"}}).load(sys.argv[1])
print(data.digest, data.tokens.values.tolist())
"""


def test_workers_that_start_at_once_agree(cache: Path, tmp_path: Path) -> None:
    write(tmp_path / "mine.txt", WORDS)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {worker.communicate()[0] for worker in workers}
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(said) == 1 and len(said.pop()) > 1000
    assert not list(cache.glob(".*"))


def test_a_cache_that_cannot_be_written_is_one_clear_error(
    tmp_path: Path, long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "file", "")
    monkeypatch.setenv("ABLATE_CACHE", str(tmp_path / "file"))
    assert diagnosed(tmp_path, text=WORDS) == (
        f"error[S316]: tokens cannot be written to the cache `{tmp_path}/file`: File exists\n"
        "  = help: set ABLATE_CACHE to a folder with room that can be written to"
    )


def test_bytes_of_a_file_need_no_cache(tmp_path: Path, long: None, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "mine.txt", WORDS)
    write(tmp_path / "file", "")
    monkeypatch.setenv("ABLATE_CACHE", str(tmp_path / "file"))
    data = load(tmp_path, path="mine.txt", tokenizer="byte")
    (inputs,), _ = data.batch(8, generator(0))
    assert all(bytes(row).decode() in WORDS for row in inputs.tolist())


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {}, "HOME/.cache/ablate"),
        ("linux", {"XDG_CACHE_HOME": "/else"}, "/else/ablate"),
        ("darwin", {}, "HOME/Library/Caches/ablate"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/ablate"),
        ("linux", {"ABLATE_CACHE": "/mine"}, "/mine"),
    ],
)
def test_the_cache_is_where_the_platform_has_caches(
    platform: str, variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ABLATE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert caching.cache_folder() == Path(folder.replace("HOME", str(Path.home())))


# --- a file that changes ---

CHANGED = (
    "error[S315]: `mine.txt` changed while it was in use\n"
    "  = help: run again when no program writes to it: trials of one study need one text"
)


def replaced(path: Path) -> None:
    path.with_name("new").write_text(WORDS.replace("beer", "wine"))
    path.with_name("new").replace(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text(WORDS.replace("beer", "wine")),
        lambda path: os.truncate(path, 10),
        lambda path: path.unlink(),
        replaced,
    ],
    ids=["written", "cut", "gone", "replaced"],
)
def test_a_file_that_changes_in_use_stops_training(
    change: Callable[[Path], object], tmp_path: Path, long: None
) -> None:
    write(tmp_path / "mine.txt", WORDS)
    data = load(tmp_path, path="mine.txt", tokenizer="byte")
    data.batch(4, generator(0))
    change(tmp_path / "mine.txt")
    for draw in (lambda: data.batch(4, generator(0)), lambda: data.evaluation(4)):
        with pytest.raises(InputError) as caught:
            draw()
        assert str(caught.value) == CHANGED


def test_a_file_that_is_touched_is_still_the_same(tmp_path: Path, long: None, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "mine.txt", WORDS)
    data = load(tmp_path, path="mine.txt", tokenizer="byte")
    first = data.batch(4, generator(0)).targets
    os.utime(tmp_path / "mine.txt")
    assert torch.equal(data.batch(4, generator(0)).targets, first)
    unread(monkeypatch)  # and is not read at every step from then on
    assert torch.equal(data.batch(4, generator(0)).targets, first)


@pytest.mark.parametrize("tokenizer", ["char", "byte", {"kind": "bpe"}], ids=str)
def test_a_file_that_changes_while_it_is_read_is_one_clear_error(
    tokenizer: Any, tmp_path: Path, long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.txt"
    write(path, WORDS)
    blocks = ablate.data.reading.Piece.blocks

    def changing(self: ablate.data.reading.Piece) -> Any:
        yield from blocks(self)
        path.write_text(WORDS + "more")

    monkeypatch.setattr(ablate.data.reading.Piece, "blocks", changing)
    assert diagnosed(tmp_path, path="mine.txt", tokenizer=tokenizer) == CHANGED
