"""One table as CSV, LaTeX, Markdown and HTML."""

from __future__ import annotations

import csv
import io

import pytest
from markupsafe import Markup

from ablate.reporting.tables import Column, Table, as_markdown, latex


def example() -> Table:
    columns = [
        Column("name", "arm", numeric=False),
        Column("effect", "Δ", unit="nats"),
        Column("low", "CI", compose=lambda record: f"[{record['low']}, {record['high']}]" if record["low"] else ""),
        Column("same", "same", optional=True),
        Column("stuck", "stuck", optional=True),
    ]
    records: list[dict[str, str | None]] = [
        {"name": "baseline", "effect": None, "low": "", "high": "", "same": "6", "stuck": "0"},
        {"name": 'a|b & 50% "x"', "effect": "+0.1", "low": "+0.0", "high": "+0.2", "same": "6", "stuck": "1"},
    ]
    return Table(columns, records, pinned=1)


def test_csv_has_every_column_and_nothing_for_what_is_missing() -> None:
    rows = list(csv.reader(io.StringIO(example().csv())))
    assert rows == [
        ["name", "effect", "low", "same", "stuck"],
        ["baseline", "", "", "6", "0"],
        ['a|b & 50% "x"', "+0.1", "+0.0", "6", "1"],
    ]


def test_print_leaves_out_optional_columns_in_which_all_rows_agree() -> None:
    assert [column.key for column in example().shown()] == ["name", "effect", "low", "stuck"]


def test_latex_is_booktabs_and_escaped() -> None:
    assert example().latex() == (
        "\\begin{tabular}{lrrr}\n"
        "\\toprule\n"
        "arm & $\\Delta$ (nats) & CI & stuck \\\\\n"
        "\\midrule\n"
        "baseline & -- & -- & 0 \\\\\n"
        "\\midrule\n"
        "a\\textbar{}b \\& 50\\% {\\char34}x{\\char34} & +0.1 & [+0.0, +0.2] & 1 \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_a_row_of_latex_begins_with_no_option_of_the_row_before() -> None:
    table = Table([Column("[x", "*x", numeric=False)], [{"[x": "[1]"}, {"[x": "*"}, {"[x": "a[1]*"}], pinned=1)
    assert table.latex().splitlines()[1:8] == [
        r"\toprule", r"{}*x \\", r"\midrule", r"{}[1] \\", r"\midrule", r"{}* \\", r"a[1]* \\",
    ]  # fmt: skip


def test_negative_numbers_have_the_minus_of_a_paper_and_names_their_hyphens() -> None:
    columns = [
        Column("name", "arm", numeric=False),
        Column("effect", "Δ"),
        Column("low", "CI", compose=lambda record: f"[{record['low']}, +1.2e-05]"),
    ]
    made = Table(columns, [{"name": "pre-norm=-1", "effect": "-0.014", "low": "-0.02"}])
    assert r"pre-norm=-1 & $-$0.014 & [$-$0.02, +1.2e-05] \\" in made.latex()


def test_nothing_in_latex_acts_as_a_command() -> None:
    assert latex("\\input{x} $x_1^2$ # ~ {") == (
        "\\textbackslash{}input\\{x\\} \\$x\\_1\\textasciicircum{}2\\$ \\# \\textasciitilde{} \\{"
    )


def test_latex_has_letters_that_pdflatex_lacks_for_other_engines_alone() -> None:
    assert latex("partial η²") == "partial $\\eta$$^2$"
    assert latex("é 世界") == "é \\ifdefined\\pdftexversion[U+4E16 U+754C]\\else 世界\\fi{}"


def test_nothing_in_markdown_is_markup() -> None:
    assert as_markdown("<b> a|b `c` *d*\n\\ &lt;") == "\\<b\\> a\\|b \\`c\\` \\*d\\* \\\\ \\&lt;"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("[l](javascript:alert(1))", r"[l\](javascript:alert(1))"), ("[l][r]", r"[l\][r]"), ("[l]: u", r"[l\]: u"),
        ("_x_ __y", r"\_x\_ \_\_y"), ("$x_1$ ~~y~~", r"\$x_1\$ \~\~y\~\~"), ("# x #", r"\# x \#"),
        ("val/bits_per_char [-0.1, +0.2] a#b", "val/bits_per_char [-0.1, +0.2] a#b"),
    ],
)  # fmt: skip
def test_markdown_has_no_link_and_no_emphasis_of_others_and_intervals_as_they_are(text: str, written: str) -> None:
    assert as_markdown(text) == written


def test_markdown_escapes_its_bars() -> None:
    assert example().markdown().splitlines() == [
        "| arm | Δ (nats) | CI | stuck |",
        "| --- | ---: | ---: | ---: |",
        "| baseline | – | – | 0 |",
        '| a\\|b \\& 50% "x" | +0.1 | [+0.0, +0.2] | 1 |',
    ]


def test_cells_are_escaped() -> None:
    table = example()
    assert table.cell(table.columns[0], {"name": "<b>"}) == Markup('<span class="text">&lt;b&gt;</span>')
    assert "–" in table.cell(table.columns[1], table.records[0])


def test_composed_and_missing_cells_carry_what_they_sort_by() -> None:
    table = example()
    name, effect, low = table.columns[:3]
    assert table.order(name, table.records[1]) == ""
    assert table.order(effect, table.records[0]) == ' data-sort=""'
    assert table.order(low, table.records[1]) == ' data-sort="+0.0"'
