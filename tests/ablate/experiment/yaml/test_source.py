"""How errors are told: the exact text of each that has a place in a file, and their order."""

from __future__ import annotations

import pytest

from ablate.errors import InputError
from ablate.experiment.reading import parse
from tests.ablate.experiment.yaml.outcomes import errors


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "name: \x1b[31m",
            "error[Y003]: the character U+001B cannot stand in a YAML file\n"
            " --> x.yaml:1:7\n"
            "1 | name: \ufffd[31m\n"
            "  |       ^\n"
            '  = help: remove it, or write it as "\\x1b" inside double quotes',
        ),
        (
            "a: &a [1, 2]\nb: [" + "*a, " * 3333 + "]",
            "error[Y005]: the file has more than 10,000 keys and values, once every alias is expanded\n"
            " --> x.yaml:2:13329\n"
            "2 | …" + "*a, " * 12 + "]\n"
            "  |  " + " " * 40 + "^^\n"
            "  = help: use fewer aliases, or fewer values",
        ),
        (
            "a:\n" + "- " * 100,
            "error[Y006]: values are nested deeper than 100 levels\n"
            " --> x.yaml:2:199\n"
            "2 | …" + "- " * 20 + "-\n"
            "  |  " + " " * 40 + "^\n"
            "  = help: is a bracket left open?",
        ),
        (
            "",
            "error[Y007]: the file is empty\n --> x.yaml\n  = help: an experiment needs at least a name, a task, "
            "a model, training, an objective and a budget",
        ),
        (
            "# a: 1\n",
            "error[Y007]: the file holds nothing but comments\n"
            " --> x.yaml\n"
            "  = help: an experiment needs at least a name, a task, a model, training, an objective and a budget",
        ),
        (
            "a: 1\n---\nb: 2\n",
            "error[Y008]: a second document begins here\n"
            " --> x.yaml:2:1\n"
            "2 | ---\n"
            "  | ^^^\n"
            "  = help: one file is one experiment: split the file",
        ),
        (
            "- a\n- b\n",
            "error[Y009]: a file is a mapping of keys to values, and this is a list\n"
            " --> x.yaml:1:1\n"
            "1 | - a\n"
            "  | ^^^\n"
            "  = help: begin with `name: ...`",
        ),
        (
            "name:quickstart",
            "error[Y009]: a file is a mapping of keys to values, and this is text\n"
            " --> x.yaml:1:1\n"
            "1 | name:quickstart\n"
            "  | ^^^^^^^^^^^^^^^\n"
            "  = help: put a space after the `:`",
        ),
        (
            "question: Norm: pre or post?\n",
            "error[Y010]: a value cannot begin at this `:`\n"
            " --> x.yaml:1:15\n"
            "1 | question: Norm: pre or post?\n"
            "  |               ^\n"
            "  = help: put a text that has `: ` in it in quotes",
        ),
        (
            "task:\n\tkind: text\n",
            "error[Y011]: a tab cannot indent\n"
            " --> x.yaml:2:1\n"
            "2 |     kind: text\n"
            "  | ^^^^\n"
            "  = help: indent with spaces",
        ),
        (
            "seeds: 3\nname: x\n'seeds': 6\n",
            "error[Y012]: the key `seeds` is given twice, on lines 1 and 3\n"
            " --> x.yaml:3:1\n"
            "3 | 'seeds': 6\n"
            "  | ^^^^^^^\n"
            "  = help: keep one of the two",
        ),
        (
            "a: {b: 1, b: 2}",
            "error[Y012]: the key `b` is given twice, on line 1, at columns 5 and 11\n"
            " --> x.yaml:1:11\n"
            "1 | a: {b: 1, b: 2}\n"
            "  |           ^\n"
            "  = help: keep one of the two",
        ),
        (
            "levels: {2: x}",
            "error[Y013]: the key `2` is a number, not text\n"
            " --> x.yaml:1:10\n"
            "1 | levels: {2: x}\n"
            "  |          ^\n"
            '  = help: write `"2"`',
        ),
        (
            "a: {[1]: 2}",
            "error[Y013]: a list cannot be a key\n"
            " --> x.yaml:1:5\n"
            "1 | a: {[1]: 2}\n"
            "  |     ^^^\n"
            "  = help: a key is text",
        ),
        (
            "a: {: 2}",
            "error[Y013]: a key is missing before this `:`\n"
            " --> x.yaml:1:5\n"
            "1 | a: {: 2}\n"
            "  |     ^\n"
            "  = help: write `key: value`",
        ),
        (
            "a: &x {b: 1}\nc: {<<: *x}\n",
            "error[Y014]: YAML 1.2 has no merge key `<<`\n"
            " --> x.yaml:2:5\n"
            "2 | c: {<<: *x}\n"
            "  |     ^^\n"
            "  = help: repeat the keys, or put what is shared in the file that `extends:` names",
        ),
        (
            "a: &x !!python/object:os.system 1\n",
            "error[Y015]: `!!python/object:os.system` is a tag\n"
            " --> x.yaml:1:7\n"
            "1 | a: &x !!python/object:os.system 1\n"
            "  |       ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
            "  = help: remove it: a plain value is a number, true, false or null by itself, and text in quotes",
        ),
        (
            "a: &shared 1\nb: *shard\n",
            "error[Y016]: no anchor `&shard` stands before this alias\n"
            " --> x.yaml:2:4\n"
            "2 | b: *shard\n"
            "  |    ^^^^^^\n"
            "  = help: did you mean `*shared`?",
        ),
        (
            "a: &x [1, *x]",
            "error[Y017]: the alias `*x` stands inside what it repeats, which would never end\n"
            " --> x.yaml:1:11\n"
            "1 | a: &x [1, *x]\n"
            "  |           ^^\n"
            "  = help: write out the values that are meant",
        ),
        (
            "lr: 1e-999",
            "error[Y018]: the number `1e-999` is out of range\n"
            " --> x.yaml:1:5\n"
            "1 | lr: 1e-999\n"
            "  |     ^^^^^^\n"
            "  = help: numbers go from 5e-324 to about 1.8e308; infinity is `.inf`",
        ),
        (
            'a: "\\ud83d"',
            "error[Y019]: an escape in this text is half of a character\n"
            " --> x.yaml:1:4\n"
            '1 | a: "\\ud83d"\n'
            "  |    ^^^^^^^^\n"
            '  = help: write the whole character, or its code: "\\U0001f642"',
        ),
    ],
)
def test_an_error_shows_the_place_and_the_remedy(text: str, shown: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, "x.yaml")
    assert str(caught.value) == shown


def test_all_errors_are_told_at_once_in_the_order_of_the_file() -> None:
    text = "a: !!int 1\nb: {c: 1, c: 2, 1: 3, <<: 4}\na: 5\nd: *none\ne: [1e999, '\\ud83d', \"\\ud83d\"]\nf: [1, !x y\n"
    assert [(d.code, d.span and d.span.line) for d in errors(text)] == [
        ("Y015", 1), ("Y012", 2), ("Y013", 2), ("Y014", 2), ("Y012", 3), ("Y016", 4), ("Y018", 5), ("Y019", 5),
        ("Y010", 6), ("Y015", 6),
    ]  # fmt: skip


def test_a_message_shows_nothing_that_cannot_be_seen_and_nothing_endless() -> None:
    (first, second) = errors(f'a: {{"x\\ny": 1, "x\\ny": 2}}\nb: !{"t" * 100} 1\n')
    assert first.message == "the key `x\\ny` is given twice, on line 1, at columns 5 and 16"
    assert second.message == f"`!{'t' * 38}…` is a tag"
