"""``ablate plan``: what would be run, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

import ablate
from ablate.cli.output import console, duration, print_json, print_table, print_warnings, size
from ablate.errors import Diagnostic

if TYPE_CHECKING:
    from ablate.planning import Plan

MOST = 60
"""Arms that the table has; `--json` has all."""
BASES = {
    "measured": ("", "measured"),
    "partly measured": ("about ", "partly measured: a shape could not be trained here, and is guessed"),
    "rough": ("about ", "rough: `--calibrate` measures it"),
}
"""How sure a price is, in words."""


def show_plan(file: Path, plugins: list[Path], *, sets: list[str], calibrate: bool, runs: Path, as_json: bool) -> None:
    """Print a plan."""
    from ablate.experiment import load

    made = ablate.plan(load(file, plugins=plugins, sets=sets), calibrate=calibrate, runs=runs)
    if as_json:
        price = asdict(made.price) if made.price else None
        print_json({**made.data, "price": price, "warnings": [_told(each) for each in made.warnings]})
        return
    out = console()
    out.print(Text.assemble((made.name, "bold"), "  ", made.data["question"]), soft_wrap=True)
    out.print()
    _print_arms(made.arms)
    out.print()
    for line in _summary(made):
        out.print(line, soft_wrap=True)
    print_warnings(made.warnings)


def _print_arms(arms: Sequence[Mapping[str, Any]]) -> None:
    base = arms[0]
    columns = [("arm", False), ("parameters", True), ("vs baseline", True), ("FLOPs/step", True), ("vs baseline", True)]
    columns += [("activations", True)]
    solved = list(dict.fromkeys(path for arm in arms for path in arm["matched"]))
    columns += [(path.rpartition(".")[2], True) for path in solved]
    rows = [_row(arm, base) + [_number(arm["matched"].get(path, "")) for path in solved] for arm in arms[:MOST]]
    print_table(columns, rows)
    if len(arms) > MOST:
        console().print(f"and {len(arms) - MOST:,} more arms, which `--json` lists")


def _row(arm: Mapping[str, Any], base: Mapping[str, Any]) -> list[str]:
    mine, theirs = arm["parameters"]["total"], base["parameters"]["total"]
    flops = change(arm["flops"] * arm["steps"], base["flops"] * base["steps"])
    return [arm["name"], f"{mine:,}", change(mine, theirs), f"{arm['flops']:.3g}", flops, size(arm["activations"])]


def _summary(made: Plan) -> Iterator[str]:
    from ablate.experiment.levels import shown

    plan, arms = made.data, made.arms
    base, seeds = arms[0], plan["seeds"]
    if plan["factors"]:
        yield f"baseline: {', '.join(f'{name}={shown(level)}' for name, level in base['levels'].items())}"
    steps = sorted({arm["steps"] for arm in arms})
    each = f"{steps[0]:,} steps" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,} steps"
    tokens = sum(arm["steps"] * arm["tokens"] for arm in arms) * len(seeds)
    yield (
        f"{_count(len(arms), 'arm')} x {_count(len(seeds), 'seed')} = {len(made.trials):,} trials of {each} "
        f"({_tokens(tokens)}) on {plan['device']}, {plan['precision']}"
    )
    yield from _matching(plan)
    if plan["tuning"]:
        yield _tuning(plan["tuning"], len(arms))
    if "fraction" in plan:
        yield from _fraction(plan["fraction"])
    yield from _excluded(made)
    if plan["expect"]:
        names = {arm["id"]: arm["name"] for arm in arms}
        predicted = [f"{names[each['arm']]} {each['effect'].replace('_', ' ')}" for each in plan["expect"]]
        yield f"predicted: {', '.join(predicted)}"
    if made.price:
        yield _price(made)
    yield f"plan {plan['hash']}"


def _tokens(count: int) -> str:
    return f"{count / 1e6:,.1f} M tokens" if count >= 1_000_000 else f"{count:,} tokens"


def _matching(plan: Mapping[str, Any]) -> Iterator[str]:
    for name, words in (("params", "parameters"), ("train_flops", "training FLOPs")):
        if target := (plan["match"] or {}).get(name):
            solved = sum(target["adjust"] in arm["matched"] for arm in plan["arms"])
            within = f"{100 * target['within']:g}% of the baseline's"
            yield f"matched: {words} within {within}, by {target['adjust']} in {_count(solved, 'arm')}"


def _tuning(tuning: Mapping[str, Any], arms: int) -> str:
    points = {path: values and len(values) for path, values in tuning["points"].items()}
    tried = ", ".join(f"{path} ({count} values)" if count else path for path, count in points.items())
    seeds, trials = len(tuning["seeds"]), arms * tuning["trials"]
    each = f"{_count(tuning['combinations'], 'combination')} x {_count(seeds, 'seed')} for each arm"
    return f"tuning first, by {tuning['method']}: {tried}; {each} = {trials:,} more trials"


def _fraction(fraction: Mapping[str, Any]) -> Iterator[str]:
    resolution = fraction["resolution"]
    kind = f"resolution {resolution}" if resolution else "every combination, so nothing is aliased"
    yield f"fraction: {fraction['runs']} of {fraction['full']:,} combinations, {kind}"
    for group in fraction["aliases"][:MOST]:
        yield f"  aliased: {' = '.join(group)}"


def _excluded(made: Plan) -> Iterator[str]:
    by_rule: dict[int | None, list[str]] = {}
    for cell in made.data["excluded"]:
        by_rule.setdefault(cell["rule"], []).append(cell["why"])
    for rule, reasons in by_rule.items():
        if rule is not None:
            yield f"excluded: {_count(len(reasons), 'cell')} by exclude[{rule}]: {reasons[0]}"
        else:
            yield f"excluded: {_count(len(reasons), 'cell')} that cannot be built"


def _price(made: Plan) -> str:
    cost = made.price
    assert cost is not None
    about, basis = BASES[cost.basis]
    workers = _count(cost.workers, "worker")
    return (
        f"price: {about}{duration(cost.wall)} on {workers} ({about}{duration(cost.seconds)} of training), "
        f"{about}{size(cost.memory)} of memory ({basis})"
    )


def _told(warning: Diagnostic) -> dict[str, Any]:
    line = warning.span.line if warning.span else None
    return {"code": warning.code, "message": warning.message, "file": warning.file, "line": line, "help": warning.help}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def change(value: float, base: float) -> str:
    """A difference in per cent, or nothing where there is none."""
    return "" if value == base or not base else f"{100 * (value / base - 1):+.1f}%"
