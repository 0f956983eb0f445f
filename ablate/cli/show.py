"""``ablate show``: one arm or trial, with the place that every value comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ablate.cli.output import console, print_json, print_table
from ablate.errors import InputError
from ablate.experiment.tracing import trace
from ablate.records.layout import AttemptFolder, StudyFolder, read_json
from ablate.records.running import runs
from ablate.records.steps import noted_step
from ablate.registry import closest

LOG_LINES = 20
SHORTEST = 4
"""Characters of an identity that stand for it."""
BRACKETED = frozenset(",[]{}:#")
"""What text between brackets has only in quotes."""
GAVE_UP = ("failed", "timed_out", "pruned")
"""Ends of an attempt after which a trial does not go on by itself."""
CAUSES = {"oom": "out of memory", "lost": "its worker was lost"}
"""What is known of why an attempt failed, in words."""


def show(
    what: Path, name: str | None, runs: Path, plugins: list[Path], *, seed: int | None, sets: list[str], as_json: bool
) -> None:
    """Print an arm or a trial; without a name, which there are."""
    plan, study = _plan(what, runs, plugins, sets)
    if name is None:
        _list(plan, as_json=as_json)
        return
    arm, trial = find(plan, name, seed)
    told = _told(plan, study, arm, trial)
    if as_json:
        print_json(told)
        return
    out = console()
    out.print(f"{arm['name']}  arm {arm['id']}" + (f", seed {trial['seed']}, trial {trial['id']}" if trial else ""))
    if aliases := arm.get("aliases"):
        out.print(f"also: {'; '.join(aliases)}")
    out.print()
    rows = [[each["path"], _value(each["value"]), each["source"]] for each in told["values"]]
    print_table([("option", False), ("value", False), ("from", False)], rows)
    out.print()
    if trial:
        _print_end(told)
    else:
        ends = [[str(each["seed"]), each["trial"], each["end"]] for each in told["trials"]]
        print_table([("seed", True), ("trial", False), ("end", False)], ends)


def _plan(what: Path, runs: Path, plugins: list[Path], sets: list[str]) -> tuple[Mapping[str, Any], StudyFolder]:
    """The plan of a study's folder, or of an experiment's file as it is now, and the study."""
    from ablate.records.finding import find_study
    from ablate.records.frames import read_plan

    if what.is_dir():
        study = find_study(what, runs)
        return read_plan(study.path), study
    if not plugins and not sets:
        with suppress(InputError):  # there is no study, or not one that can be read: what follows says what is wrong
            study = find_study(what, runs)
            plan = read_plan(study.path)
            if _is_of(plan, study, what):
                return plan, study
    import ablate
    from ablate.experiment import load

    made = ablate.plan(load(what, plugins=plugins, sets=sets), runs=runs)
    return made.data, StudyFolder(runs / made.name)


def _is_of(plan: Mapping[str, Any], study: StudyFolder, file: Path) -> bool:
    """Whether a study's plan is what the file would give again, so that nothing need be built: that takes seconds."""
    from ablate.experiment.reading import read
    from ablate.records.finding import changed_since

    if changed_since(file, study) or not study.experiment.is_file() or "--set" in plan.get("command", "--set"):
        return False
    base = read(file).data.get("extends")
    beside = [Path(plugin) for plugin in plan.get("plugins", ())] + ([file.parent / base] if base else [])
    made = study.plan.stat().st_mtime_ns
    same = all(path.is_file() and path.stat().st_mtime_ns < made for path in beside)
    return same and plan.get("folder") == str(file.parent.resolve())


def find(plan: Mapping[str, Any], name: str, seed: int | None) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """The arm that a name, an identity or the beginning of one means, and the trial if one is meant."""
    arms = {arm["id"]: arm for arm in plan["arms"]}
    for trial in (*plan["trials"], *plan.get("repeats", ())):
        if len(name) >= SHORTEST and trial["id"].startswith(name):
            return arms[trial["arm"]], trial
    called = {called: arm for arm in plan["arms"] for called in (*arm.get("aliases", ()), arm["name"], arm["id"])}
    found = called.get(name) or next(
        (arm for id, arm in arms.items() if len(name) >= SHORTEST and id.startswith(name)), None
    )
    if found is None:
        cells = {cell["name"]: cell["why"] for cell in plan["excluded"]}
        if name in cells:
            raise InputError.one("S116", f"`{name}` is excluded: {cells[name]}")
        names = [arm["name"] for arm in plan["arms"]]
        near = closest(name, called) or next((each for each in names if "=" in name and name in each.split(", ")), None)
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        help = f"did you mean `{near}`?" if near else f"the arms are {'; '.join(names[:6])}{more}"
        raise InputError.one("S116", f"the experiment has no arm or trial `{name}`", help=help)
    if seed is None:
        return found, None
    for trial in plan["trials"]:
        if trial["arm"] == found["id"] and trial["seed"] == seed:
            return found, trial
    raise InputError.one(
        "S116", f"seed {seed} is not planned", help=f"the seeds are {', '.join(map(str, plan['seeds']))}"
    )


def _told(
    plan: Mapping[str, Any], study: StudyFolder, arm: Mapping[str, Any], trial: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Everything that is shown, as JSON values."""
    values = [{"path": each.path, "value": each.value, "source": each.source} for each in trace(plan, arm)]
    told = {"arm": arm["name"], "id": arm["id"], "levels": arm["levels"], "values": values}
    own = [each for each in plan["trials"] if each["arm"] == arm["id"]]
    if trial is None:
        ends = [(each, _end(study, each["id"])["end"]) for each in own]
        return told | {"trials": [{"seed": each["seed"], "trial": each["id"], "end": end} for each, end in ends]}
    return told | {"trial": trial["id"], "seed": trial["seed"], **_end(study, trial["id"])}


def _end(study: StudyFolder, trial: str) -> dict[str, Any]:
    """How a trial stands: its end with metrics, or its last attempt's error; and the last lines of its log."""
    folder = study.trial(trial)
    attempts = folder.attempts()
    told: dict[str, Any] = {"end": "waiting", "attempts": len(attempts)}
    open = attempts and not folder.result.is_file()
    running = bool(open and (handed_out := runs(study)) and handed_out(trial))
    if folder.result.is_file():
        record = _read(folder.result)
        told |= {
            key: record.get(key)
            for key in ("end", "reason", "metrics", "steps", "seconds", "micro_batch", "peak_memory", "attempt")
        }
    elif attempts and attempts[-1].end.is_file():
        closed = _read(attempts[-1].end)
        if closed.get("end") in GAVE_UP:
            told |= {"end": closed["end"], "reason": closed.get("error")}
    elif running:
        told |= {"end": "running"}
    told["history"] = [_ended(each, told, running and each == attempts[-1]) for each in attempts]
    log = attempts[-1].log if attempts else None
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log and log.is_file() else []
    return told | {"log": lines[-LOG_LINES:]}


def _ended(attempt: AttemptFolder, trial: Mapping[str, Any], running: bool) -> dict[str, Any]:
    """How one attempt ended: as it has sealed it, with the trial's result, at a rung, or with none of these."""
    told: dict[str, Any] = {"attempt": attempt.number, "end": "running" if running else "interrupted"}
    told |= {"cause": None, "reason": None, "step": noted_step(attempt)}
    if trial.get("attempt") == attempt.number:
        told["end"] = trial["end"]
    elif attempt.end.is_file():
        closed = _read(attempt.end)
        told |= {"end": closed.get("end"), "cause": closed.get("cause"), "reason": closed.get("error")}
    elif attempt.rung.is_file():
        told["end"] = "paused"
    return told


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        raise InputError.one("S403", f"`{path}` cannot be read: {error}") from None


def _print_end(told: Mapping[str, Any]) -> None:
    out = console()
    reason = told.get("reason")
    if isinstance(reason, Mapping):
        reason = f"{reason.get('rule')} at step {reason.get('step')}"
    out.print(f"end: {told['end']}" + (f" ({reason})" if reason else "") + f", attempts: {told['attempts']}")
    if len(told["history"]) > 1:
        for each in told["history"]:
            out.print(f"attempt {each['attempt']}: {_how(each)}")
    for metric, value in (told.get("metrics") or {}).items():
        out.print(f"{metric}: {_value(value)}")
    for line in told["log"]:
        out.print(f"  {''.join(sign if sign.isprintable() else ' ' for sign in line)}")


def _how(attempt: Mapping[str, Any]) -> str:
    """How an attempt ended, in words: an interrupted one was stopped, or lost with its worker."""
    said = str(attempt["end"]).replace("_", " ")
    said += f" ({CAUSES.get(attempt['cause'], attempt['cause'])})" if attempt["cause"] else ""
    said += f": {attempt['reason']}" if attempt["reason"] else ""
    on_the_way = attempt["step"] is not None and attempt["end"] != "complete"  # whose checkpoint is of its last step
    return said + (f"; its checkpoint is of step {attempt['step']}" if on_the_way else "")


def _list(plan: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json([{"arm": arm["name"], "id": arm["id"], "levels": arm["levels"]} for arm in plan["arms"]])
        return
    print_table([("arm", False), ("id", False)], [[arm["name"], arm["id"]] for arm in plan["arms"]])


def _value(value: Any) -> str:
    """A value as YAML spells it."""
    from ablate.experiment.levels import shown

    if isinstance(value, list):
        return f"[{', '.join(map(_inside, value))}]"
    if isinstance(value, Mapping):
        options = {name: option for name, option in value.items() if option is not None}
        if options.keys() == {"kind"}:
            return _inside(options["kind"])
        return f"{{{', '.join(f'{name}: {_inside(option)}' for name, option in options.items())}}}"
    return f"{value:g}" if isinstance(value, float) else shown(value)


def _inside(value: Any) -> str:
    """A value within brackets, where some text needs quotes that needs none outside of them."""
    if isinstance(value, str) and (BRACKETED.intersection(value) or value != value.strip() or not value):
        return json.dumps(value, ensure_ascii=False)
    return _value(value)
