"""``ablate compare``: what differs between two studies, first in what was asked and then in what was found."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import typer

import ablate
from ablate.analysis.comparing import WORSE, Comparison
from ablate.analysis.prose import decimals, fixed, number
from ablate.analysis.results import Results
from ablate.cli.output import console, print_json, print_table
from ablate.errors import visible

ABSENT = "(absent)"
"""What stands for a value that one of the two does not have."""
UNKNOWN = "-"
"""What stands for a number that cannot be computed."""


def compare_studies(a: Path, b: Path, runs: Path, *, fail_on: Collection[str], as_json: bool) -> None:
    """Print the comparison; exit by 1 where ``fail_on`` names what is found."""
    found = ablate.compare(a, b, runs=runs)
    verdicts = found.verdicts()
    hits = {"worse": found.worse(), "flip": [str(name) for name in verdicts.loc[verdicts["flipped"], "name"]]}
    if as_json:
        print_json(_plain(found) | hits)
    else:
        _print(found)
    failed = [each for each in fail_on if hits[each]]
    for each in failed:
        sys.stderr.write(f"--fail-on {each}: {', '.join(map(visible, hits[each]))}\n")
    if failed:
        raise typer.Exit(1)


def _print(found: Comparison) -> None:
    out = console()
    for letter, results in (("A", found.a), ("B", found.b)):
        out.print(visible(f"{letter}: {results.folder}, {_ended(results)}"))
    out.print()
    _print_differences(found.differences())
    out.print()
    _print_effects(found)
    out.print()
    _print_flips(found.verdicts())
    for note in found.notes():
        out.print(visible(f"note: {note}"))


def _ended(results: Results) -> str:
    tally, trials = results.counts(), len(results.plan["trials"])
    return f"{trials - tally['running'] - tally['waiting']} of {number(trials, 'trial')} ended"


def _print_differences(frame: pd.DataFrame) -> None:
    if frame.empty:
        console().print("nothing differs in the configuration")
        return
    console().print("what differs in the configuration:")
    rows = [[visible(text) for text in row] for row in frame.fillna(ABSENT).itertuples(index=False)]
    print_table([(title, False) for title in ("path", "A", "B", "arms")], rows)


def _print_effects(found: Comparison) -> None:
    frame, objective = found.effects(), found.objective
    written = partial(_value, places=decimals(objective.smallest_effect))
    unit = f" in {objective.spoken}" if objective.spoken else ""
    better = "less" if objective.goal == "min" else "more"
    console().print(
        f"B minus A, {objective.metric}{unit} ({better} is better), on {number(len(found.seeds), 'common seed')}; "
        f"the 95% intervals hold together for {number(len(frame), 'arm')}:"
    )
    diverged = bool(frame[["diverged_a", "diverged_b"]].any(axis=None))
    columns = [("arm", False), ("pairs", True), ("A", True), ("B", True), ("B - A", True), ("95% CI", True)]
    columns += [("diverged A, B", True)] if diverged else []
    rows = []
    for row in frame.to_dict("records"):
        cells = [visible(row["name"]), f"{row['pairs']}/{row['planned']}"]
        cells += [written(row["mean_a"]), written(row["mean_b"]), written(row["effect"], sign=True)]
        bounds = [written(row[name], sign=True) for name in ("low", "high")]
        cells += [UNKNOWN if UNKNOWN in bounds else ", ".join(bounds)]
        cells += [f"{row['diverged_a']}, {row['diverged_b']}"] if diverged else []
        rows.append([*cells, _verdict(row)])
    print_table([*columns, ("verdict", False)], rows)


def _verdict(row: Mapping[Any, Any]) -> str:
    if not pd.isna(row["settle"]):
        return f"{row['verdict']} (about {number(row['settle'], 'seed')} would settle it)"
    more = "; diverged more often" if row["worse"] and row["verdict"] not in WORSE else ""
    return f"{row['verdict']}{more}"


def _print_flips(frame: pd.DataFrame) -> None:
    flipped = frame[frame["flipped"]]
    for row in flipped.to_dict("records"):
        console().print(visible(f"flipped: {row['name']}: {row['a']} -> {row['b']}, since {row['why']}"))
    if rest := len(frame) - len(flipped):
        console().print(f"{number(rest, 'verdict')} {'is' if rest == 1 else 'are'} the same in both")


def _value(value: float, places: int, sign: bool = False) -> str:
    return fixed(value, places, sign) if math.isfinite(value) else UNKNOWN


def _plain(found: Comparison) -> dict[str, Any]:
    """Everything as JSON values; what cannot be computed is null."""
    return {
        "a": _study(found.a),
        "b": _study(found.b),
        "metric": found.objective.metric,
        "seeds": list(found.seeds),
        "differences": _records(found.differences()),
        "effects": _records(found.effects()),
        "verdicts": _records(found.verdicts()),
        "only_a": found.only_a,
        "only_b": found.only_b,
        "notes": found.notes(),
    }


def _study(results: Results) -> dict[str, Any]:
    return {"folder": str(results.folder), "name": results.plan["name"], "complete": results.complete}


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(key): None if pd.isna(value) else value for key, value in row.items()} for row in frame.to_dict("records")
    ]
