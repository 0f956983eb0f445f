"""The files beside the page that are for programs and for notes: the tables as Markdown, and the results as JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from typing import Any

from ablate.reporting.effects import caption, effects_csv, tables
from ablate.reporting.numbers import plain
from ablate.reporting.study import Study
from ablate.reporting.tables import Table, as_markdown

TEXTS = frozenset(("kind", "name", "arm", "metric", "verdict", "left_out", "tuned"))
"""The columns of effects.csv that are texts, as those of the factors are; all others are numbers."""


def effects_markdown(study: Study) -> str:
    """The tables of effects that the page shows, each under its title."""
    parts = [f"# {as_markdown(plain(study.plan['name']))}"]
    if question := study.plan["question"]:
        parts.append(as_markdown(plain(question)))
    for name, title, table in tables(study):
        parts += [f"## {as_markdown(caption(study, name, title))}", table.markdown().rstrip()]
    return "\n\n".join(parts) + "\n"


def report_json(study: Study) -> str:
    """What the study found, for programs; asked once the page is made.

    Keys:
        schema (int): 1; raised when a key changes its meaning.
        name, question, design (text): the experiment's. complete (bool): whether every planned trial has ended.
        hash (text): the plan's. baseline (text): the baseline's identity.
        objective (object): metric, unit, goal (``min`` or ``max``), smallest_effect (float, in the unit), and
            secondary, the other metrics that are reported, without verdicts.
        counts (object): trials by how they ended, and ``planned``, which is their sum.
        verdicts (array): worst first, each with kind, name, arm (its identity, null for a level), word and sentence.
        effects (array): the rows of effects.csv by its columns, numbers as they stand there. A level is a text, as in
            the CSV: ``(null)`` is the level null, and null says that the factor is no part of the arm. Elsewhere null
            says that there is no such number.
        caveats (array of text).
        predictions (array): what was foretold before the run: name, effect, verdict, judged and source.
        tables (object): every table that the page has and no file beside it, by its id: an array of rows.
    """
    results, plan, objective = study.results, study.plan, study.plan["objective"]
    found = {
        "schema": 1, "name": plan["name"], "question": plan["question"], "design": plan["design"],
        "complete": results.complete, "hash": plan["hash"], "baseline": plan["baseline"],
        "objective": {"metric": study.metric, "unit": study.unit, "goal": objective["goal"],
                      "smallest_effect": study.smallest, "secondary": list(objective.get("secondary", ()))},
        "counts": results.counts(),
        "verdicts": [
            {"kind": each.kind, "name": each.name, "arm": each.arm or None, "word": each.word,
             "sentence": each.sentence}
            for each in results.verdicts()
        ],
        "effects": [_numbers(row) for row in csv.DictReader(io.StringIO(effects_csv(study)))],
        "caveats": results.caveats(),
        "predictions": results.predictions().to_dict("records"),
        "tables": {name: _rows(table) for name, table in study.tables.items() if not table.file},
    }  # fmt: skip
    return json.dumps(_public(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _numbers(row: Mapping[str, str]) -> dict[str, str | float | None]:
    """A row of CSV with its numbers as numbers, and None for what is not there."""
    texts = {key: key in TEXTS or key.startswith("factor.") for key in row}
    return {key: (value if texts[key] else _number(value)) if value else None for key, value in row.items()}


def _rows(table: Table) -> list[dict[str, str | float | None]]:
    """All cells of a table by its columns' keys."""
    written = ([(column, table.value(column, record)) for column in table.columns] for record in table.records)
    return [
        {column.key: (_number(text) if column.numeric else text) if text else None for column, text in row}
        for row in written
    ]


def _number(text: str) -> float | str:
    try:
        value = float(text)
    except ValueError:
        return text
    if not math.isfinite(value):
        return text  # JSON has no infinity
    return int(value) if text.lstrip("+-").isdigit() else value


def _public(value: Any) -> Any:
    """All texts as they may be shown."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {plain(str(key)): _public(each) for key, each in value.items()}
    return [_public(each) for each in value] if isinstance(value, list | tuple) else value
