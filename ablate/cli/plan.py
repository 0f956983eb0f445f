"""``ablate plan``: what would be run, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

import ablate
from ablate.analysis.comparability import UNMATCHED, incomparable
from ablate.analysis.prose import number
from ablate.cli.output import Planning, console, duration, print_json, print_table, print_warnings, size
from ablate.errors import Diagnostic
from ablate.records.tasks import task_baselines

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

    experiment = load(file, plugins=plugins, sets=sets)
    with Planning() as planning:
        made = ablate.plan(experiment, calibrate=calibrate, runs=runs, on_arm=planning)
    if as_json:
        price = asdict(made.price) if made.price else None
        room = asdict(made.room) if made.room else None
        print_json({**made.data, "price": price, "room": room, "warnings": [_told(each) for each in made.warnings]})
        return
    out = console()
    out.print(Text.assemble((made.name, "bold"), "  ", made.data["question"]), soft_wrap=True)
    out.print()
    _print_arms(made)
    if unlike := _unmatched(made):
        out.print(unlike, soft_wrap=True)
    out.print()
    for line in _summary(made):
        out.print(line, soft_wrap=True)
    print_warnings(made.warnings)


def _references(made: Plan) -> dict[str, Mapping[str, Any]]:
    """By identity, the arm that each arm is compared with: on its own task; an arm that none stands beside has none."""
    plan, arms = made.data, {arm["id"]: arm for arm in made.arms}
    found = dict.fromkeys(arms, plan["baseline"]) | task_baselines(plan)
    metric = plan["objective"]["metric"]
    return {id: arms[base] for id, base in found.items() if not incomparable(plan, [base, id], metric)}


def _print_arms(made: Plan) -> None:
    arms, references = made.arms, _references(made)
    columns = [("arm", False), ("parameters", True), ("vs baseline", True), ("FLOPs/step", True), ("vs baseline", True)]
    columns += [("activations", True)]
    own = ["budget.steps"] if len({arm["steps"] for arm in arms}) > 1 else []
    own += dict.fromkeys(path for arm in arms for path in arm["matched"] if path != "budget.steps")
    columns += [(path.rpartition(".")[2], True) for path in own]
    values = [{**arm["config"], "budget": {"steps": arm["steps"]}} for arm in arms[:MOST]]
    rows = [
        _row(arm, references.get(arm["id"], arm)) + [_number(_at(value, path)) for path in own]
        for arm, value in zip(arms[:MOST], values, strict=True)
    ]
    print_table(columns, rows)
    if len(arms) > MOST:
        console().print(f"and {len(arms) - MOST:,} more arms, which `--json` lists")


def _row(arm: Mapping[str, Any], base: Mapping[str, Any]) -> list[str]:
    mine, theirs = arm["parameters"]["total"], base["parameters"]["total"]
    flops = change(arm["flops"] * arm["steps"], base["flops"] * base["steps"])
    return [arm["name"], f"{mine:,}", change(mine, theirs), f"{arm['flops']:.3g}", flops, size(arm["activations"])]


def _at(config: Any, path: str) -> Any:
    """The value at a path of an arm's configuration; an empty text where the arm has no such option."""
    for step in path.split("."):
        if isinstance(config, list) and step.isdecimal() and int(step) < len(config):
            config = config[int(step)]
        else:
            config = config.get(step, "") if isinstance(config, Mapping) else ""
    return config


def _unmatched(made: Plan) -> str | None:
    """That arms are not of one size, where the experiment says nothing of it."""
    arms, matching = made.arms, made.data["match"]
    if matching and any(matching.values()):
        return None
    sizes = {arm["id"]: (arm["parameters"]["total"], arm["flops"] * arm["steps"]) for arm in arms}
    most = UNMATCHED / 100
    apart = sum(
        any(abs(mine - theirs) > most * theirs for mine, theirs in zip(sizes[id], sizes[base["id"]], strict=True))
        for id, base in _references(made).items()
    )
    if not apart:
        return None
    differ, them = ("differs", "it") if apart == 1 else ("differ", "them")
    return (
        f"not matched: {number(apart, 'arm')} {differ} by more than {UNMATCHED:g}% in parameters or training FLOPs; "
        f"`match` can make {them} equal"
    )


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
        f"{number(len(arms), 'arm')} x {number(len(seeds), 'seed')} = {len(made.trials):,} trials of {each} "
        f"({_tokens(tokens)}) on {plan['device']}, {plan['precision']}"
    )
    yield from _matching(plan)
    if plan["tuning"]:
        yield from _tuning(plan["tuning"], len(arms), len(seeds))
    for trial in plan.get("repeats", ()):
        yield f"noise floor: the baseline runs once more with seed {trial['seed']} = 1 more trial"
    if "fraction" in plan:
        yield from _fraction(plan["fraction"])
    yield from _excluded(made)
    yield from _predicted(plan)
    if made.room:
        yield f"at once: {number(made.room.places, 'trial')}, {made.room.limit}"
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
            yield f"matched: {words} within {within}, by {target['adjust']} in {number(solved, 'arm')}"


def _tuning(tuning: Mapping[str, Any], arms: int, reported: int) -> Iterator[str]:
    points = {path: values and len(values) for path, values in tuning["points"].items()}
    tried = ", ".join(f"{path} ({count} values)" if count else path for path, count in points.items())
    seeds, trials = len(tuning["seeds"]), arms * tuning["trials"]
    each = f"{number(tuning['combinations'], 'combination')} x {number(seeds, 'seed')} for each arm"
    yield f"tuning first, by {tuning['method']}: {tried}; {each} = {trials:,} more trials"
    if halving := tuning["halving"]:
        rungs = number(halving["rungs"], "rung")
        yield f"halving: one combination in {halving['reduction']} of a batch goes on at each of {rungs}"
    if tuning["at_baseline"]:
        most = number((arms - 1) * reported, "more trial")
        yield f"every arm also runs at the values that are best for the baseline: at most {most}"


def _fraction(fraction: Mapping[str, Any]) -> Iterator[str]:
    resolution = fraction["resolution"]
    kind = f"resolution {resolution}" if resolution else "every combination, so nothing is aliased"
    yield f"fraction: {fraction['runs']} of {fraction['full']:,} combinations, {kind}"
    for group in fraction["aliases"][:MOST]:
        yield f"  aliased: {' = '.join(group)}"


def _excluded(made: Plan) -> Iterator[str]:
    by_rule: dict[int | None, list[Mapping[str, Any]]] = {}
    for cell in made.data["excluded"]:
        by_rule.setdefault(cell["rule"], []).append(cell)
    for rule, cells in by_rule.items():
        if rule is None:
            yield f"excluded: {number(len(cells), 'cell')} that cannot be built"
            continue
        which = f"`{cells[0]['name']}`" if len(cells) == 1 else number(len(cells), "cell")
        yield f"excluded: {which} by exclude[{rule}]: {cells[0]['why']}"


def _predicted(plan: Mapping[str, Any]) -> Iterator[str]:
    names = {arm["id"]: arm["name"] for arm in plan["arms"]}
    for each in plan["expect"][:MOST]:
        name = each.get("name") or names[each["arm"]]
        source = f" ({each['source']})" if each.get("source") else ""
        yield f"predicted: {name} {each['effect'].replace('_', ' ')}{source}"
    if (more := len(plan["expect"]) - MOST) > 0:
        yield f"and {number(more, 'more prediction')}, which `--json` lists"


def _price(made: Plan) -> str:
    cost = made.price
    assert cost is not None
    about, basis = BASES[cost.basis]
    workers = number(cost.workers, "worker")
    return (
        f"price: {about}{duration(cost.wall)} on {workers} ({about}{duration(cost.seconds)} of training), "
        f"{about}{size(cost.memory)} of memory ({basis})"
    )


def _told(warning: Diagnostic) -> dict[str, Any]:
    line = warning.span.line if warning.span else None
    return {"code": warning.code, "message": warning.message, "file": warning.file, "line": line, "help": warning.help}


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def change(value: float, base: float) -> str:
    """A difference in per cent, or nothing where there is none."""
    return "" if value == base or not base else f"{100 * (value / base - 1):+.1f}%"
