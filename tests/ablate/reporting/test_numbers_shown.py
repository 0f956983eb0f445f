"""Every number that a reader sees in the tables is the one that stands in the CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

Open = Callable[..., Page]
Report = Callable[..., Path]
Row = Mapping[str, str]

READ = """(id) => {
  const table = document.getElementById(id);
  const text = (cell) => Array.from(cell.childNodes, (node) => node.textContent).join(" ").replace(/\\s+/g, " ").trim();
  const heads = Array.from(table.querySelectorAll("thead th button, thead th:not(:has(button))"), text);
  return Array.from(table.querySelectorAll("tbody tr"), (row) =>
    Object.fromEntries(Array.from(row.cells, (cell, index) => [heads[index], text(cell)])));
}"""
"""The rows of a table as they stand in the page, by the texts of their heads."""


def interval(row: Row) -> str:
    return f"[{row['low']}, {row['high']}]" if row["low"] else ""


def agreeing(row: Row) -> str:
    return f"{row['agree']}/{row['pairs']}" if row["agree"] and row["pairs"] != "0" else ""


def whole_speed(row: Row) -> str:
    return f"{float(row['speed_delta']):+.0f}".replace("-0", "+0") if row["speed_delta"] else ""


EFFECTS: Mapping[str, Callable[[Row], str]] = {
    "seeds": lambda row: f"{row['pairs']}/{row['planned']}",
    "mean": lambda row: row["mean"],
    "sd": lambda row: row["sd"],
    "Δ": lambda row: row["effect"],
    "95% CI simultaneous": interval,
    "p t test, Holm": lambda row: row["p_holm"],
    "agree seeds": agreeing,
    "verdict": lambda row: row["verdict"],
    "diverged": lambda row: row["diverged"],
    "stuck": lambda row: row["stuck"],
    "to settle seeds": lambda row: row["settle"],
    "tuned to": lambda row: row["tuned"],
    "params Δ %": lambda row: row["parameters_delta"],
    "FLOPs Δ %": lambda row: row["flops_delta"],
    "tokens Δ %": lambda row: row["tokens_delta"],
    "tokens/s Δ %": whole_speed,
    "CPU-hours all seeds": lambda row: row["hours"],
    "partial η²": lambda row: row["partial_eta2"],
    "left out": lambda row: row["left_out"],
}
"""What the CSV says of each column that the page shows, but for names; a head's unit is the objective's."""
KINDS = {
    "effects-arms": "arm", "effects-main": "main effect", "effects-interactions": "interaction",
    "effects-simple": "simple effect", "effects-secondary-0": "secondary",
}  # fmt: skip


def rows_of(report: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(report.with_name(name).read_text(encoding="utf-8"))))


def compare(shown: Sequence[Row], written: Sequence[Row], units: Sequence[str]) -> set[str]:
    """Compare the cells of all rows; the heads of the columns that were compared."""
    seen = set()
    assert len(shown) == len(written)
    for cells, row in zip(shown, written, strict=True):
        for head, cell in cells.items():
            key = next((head.removesuffix(f" {unit}") for unit in units if head.endswith(f" {unit}")), head)
            if key in EFFECTS:
                assert cell == (EFFECTS[key](row) or "–"), head
                seen.add(key)
            elif key != "size":
                assert any(name in cell for name in (row["name"], row["name"].split(", ")[-1], "baseline", "=")), head
    return seen


CASES: dict[str, dict[str, Any]] = {
    "one factor": {"seeds": 6, "diverged": {("ratio=1", 2)}, "failed": {("scale=off", 3)}},
    "factorial": {"design": "full", "seeds": 3, "diverged": {("residual=add, scale=off, placement=pre, ratio=1", 0)}},
    "to be maximised": {"metric": "val/accuracy", "goal": "max", "smallest_effect": 0.5, "seeds": 3},
}


@pytest.mark.parametrize("case", CASES)
def test_effects_are_those_of_the_csv(open_page: Open, report: Report, case: str) -> None:
    path = report(steps=40, **CASES[case])
    page, written = open_page(path), rows_of(path, "effects.csv")
    kinds = {row["kind"] for row in written}
    tables = [table for table, kind in KINDS.items() if kind in kinds and page.locator(f"#{table}").count()]
    assert len(tables) == (5 if case == "factorial" else 2)
    for table in tables:
        rows = [row for row in written if row["kind"] == KINDS[table]]
        rows = [row for row in rows if row["metric"] == rows[0]["metric"]]  # of the secondary ones the first
        shown = page.evaluate(READ, table)
        if table == "effects-simple":
            judged = {row["simple effect"] for row in shown}
            rows = [row for row in rows if row["name"] in judged]
        seen = compare(shown, rows, ["nats", "bits/char"])
        assert {"Δ", "95% CI simultaneous"} <= seen


def test_trials_are_those_of_the_csv_in_every_page_of_the_table(open_page: Open, report: Report) -> None:
    path = report(seeds=23, steps=10, factors={"a": [0, None, "null", *range(1, 16)]}, diverged={("a=3", 20)})
    page, written = open_page(path), rows_of(path, "trials.csv")
    assert len(written) == 414
    shown = page.evaluate(READ, "trials-table")
    for _ in range(2):
        page.get_by_role("button", name="Next 200 rows").click()
        shown += page.evaluate(READ, "trials-table")
    assert len(shown) == 414
    titles = {
        "a": "factor.a", "seed": "seed", "end": "end", "reason": "reason", "val/loss nats": "val/loss",
        "val/bits_per_char bits/char": "val/bits_per_char", "steps": "steps", "tokens": "tokens",
        "loss at the start nats": "initial_loss", "clip rate share of steps": "clip_rate", "time s": "seconds",
        "tokens/s": "tokens_per_second", "peak memory MB": "peak_memory_mb", "attempts": "attempt",
    }  # fmt: skip
    assert set(shown[0]) == {*titles, "arm", "trial"}
    for cells, row in zip(shown, written, strict=True):
        assert {head: cells[head] for head in titles} == {head: row[key] or "–" for head, key in titles.items()}
        assert cells["trial"] == row["trial"][:8]
        assert cells["arm"].endswith(row["name"])
    page.get_by_label("only columns that differ").check()
    heads = page.locator("#trials-table thead th:visible").all_inner_texts()
    assert not any(head.startswith("peak memory") for head in heads)
    assert page.locator("#trials-table tbody tr").first.locator("th:visible, td:visible").count() == len(heads)


SHOWN: Mapping[str, Mapping[str, str]] = {
    "anova": {"df": "df", "F": "F", "p not adjusted": "p", "partial η²": "partial_eta2"},
    "shapley": {"of the whole %": "share", "share nats": "effect"},
    "stability-arms": {"runs": "runs", "spikes % of steps": "spike_score", "clipped % of steps": "clip_rate"},
}
"""Columns of tables that no CSV has, by their heads, and what report.json calls them."""


@pytest.mark.parametrize("table", SHOWN)
def test_what_no_csv_has_is_in_the_json(open_page: Open, full: Path, table: str) -> None:
    shown = open_page(full).evaluate(READ, table)
    written = json.loads(full.with_name("report.json").read_text(encoding="utf-8"))["tables"][table]
    assert len(shown) == len(written) > 1
    for cells, row in zip(shown, written, strict=True):
        for head, key in SHOWN[table].items():
            assert (row[key] is None) == (cells[head] == "–")
            assert row[key] is None or float(cells[head]) == row[key]
