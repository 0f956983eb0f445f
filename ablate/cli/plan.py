"""``ablate plan``: what would be run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

import ablate
from ablate.cli.output import console, print_json, print_table, print_warnings


def show_plan(file: Path, plugins: list[Path], *, as_json: bool) -> None:
    """Print a plan."""
    from ablate.experiment import load
    from ablate.experiment.levels import shown

    made = ablate.plan(load(file, plugins=plugins))
    if as_json:
        print_json(made.data)
        return
    base = made.arms[0]
    out = console()
    out.print(Text.assemble((made.name, "bold"), "  ", made.data["question"]), soft_wrap=True)
    out.print()
    columns = [("arm", False), ("parameters", True), ("vs baseline", True), ("FLOPs/step", True), ("vs baseline", True)]
    print_table(columns, [_row(arm, base) for arm in made.arms])
    out.print()
    if made.data["factors"]:
        levels = ", ".join(f"{name}={shown(level)}" for name, level in base["levels"].items())
        out.print(f"baseline: {levels}")
    seeds, steps = made.data["seeds"], made.data["budget"]["steps"]
    trials = len(made.trials)
    out.print(
        f"{_count(len(made.arms), 'arm')} x {_count(len(seeds), 'seed')} = {trials} trials of {steps:,} steps "
        f"({trials * steps * base['tokens'] / 1e6:,.1f} M tokens) on {made.data['device']}, {made.data['precision']}"
    )
    if made.data["excluded"]:
        out.print(f"{len(made.data['excluded'])} arms are excluded")
    out.print(f"plan {made.data['hash']}")
    print_warnings(made.warnings)


def _row(arm: dict[str, Any], base: dict[str, Any]) -> list[str]:
    mine, theirs = arm["parameters"]["total"], base["parameters"]["total"]
    return [
        arm["name"],
        f"{mine:,}",
        change(mine, theirs),
        f"{arm['flops']:.3g}",
        change(arm["flops"], base["flops"]),
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def change(value: float, base: float) -> str:
    """A difference in per cent, or nothing where there is none."""
    return "" if value == base or not base else f"{100 * (value / base - 1):+.1f}%"
