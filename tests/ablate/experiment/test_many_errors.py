"""A long experiment with forty mistakes: all are told at once, in the order of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.errors import InputError
from ablate.experiment import load
from tests.ablate.experiment.maker import EXPERIMENT

FACTORS = 58
SHAPE = [("misspelt key", "paht", "S101"), ("type of a path", "7", "S103"), ("no levels", "many", "S103")]
PATHS = [("misspelt path", "model.feed_forward.ratoi", "G201"), ("same level twice", "4", "G202")]


def spoiled(mistakes: list[tuple[str, str, str]]) -> tuple[str, list[tuple[str, int]]]:
    """An experiment of 300 lines with a mistake in 40 of its factors, and the code and the line of each."""
    lines = EXPERIMENT.splitlines()
    at = lines.index("factors:") + 1
    before, after = lines[:at], lines[at + 2 :]
    expected = []
    for index in range(FACTORS):
        option, path, levels, first, second = "path", "model.feed_forward.ratio", "", "4", str(index + 5)
        kind, wrong, code = mistakes[index % len(mistakes)] if index < 40 else ("", "", "")
        if kind:
            line = {"misspelt key": 2, "type of a path": 2, "misspelt path": 2, "no levels": 3, "same level twice": 5}
            expected.append((code, len(before) + line[kind]))
        if kind == "misspelt key":
            option = wrong
        elif kind in ("type of a path", "misspelt path"):
            path = wrong
        elif kind == "same level twice":
            second = wrong
        elif kind == "no levels":
            levels = wrong
        items = [] if levels else [f"      - {first}", f"      - {second}"]
        filler = ["      # and no more", "      # than that"] if levels else []
        before += [f"  f{index:02}:", f"    {option}: {path}", f"    levels: {levels}".rstrip(), *items, *filler]
    return "\n".join([*before, *after]) + "\n", expected


@pytest.mark.parametrize("mistakes", [SHAPE, PATHS], ids=["shape", "paths"])
def test_forty_mistakes_are_told_at_once_and_in_order(tmp_path: Path, mistakes: list[tuple[str, str, str]]) -> None:
    text, expected = spoiled(mistakes)
    assert (len(text.splitlines()), len(expected)) == (304, 40)
    path = tmp_path / "long.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(path)
    assert [(each.code, each.span and each.span.line) for each in caught.value.diagnostics] == expected
    assert str(caught.value).count("error[") == 40
