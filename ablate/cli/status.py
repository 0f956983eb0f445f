"""``ablate status``: how far an experiment is."""

from __future__ import annotations

from pathlib import Path

from ablate.api import find_study
from ablate.cli.output import console, print_json, print_table

STATES = ("complete", "diverged", "failed", "timed_out", "pruned", "excluded", "running", "waiting")


def show_status(what: Path, runs: Path, *, as_json: bool) -> None:
    """Print how many trials are in which state, and the command that comes next."""
    from ablate.records.frames import count, read_plan, trials

    study = find_study(what, runs)
    plan = read_plan(study.path)
    frame = trials(study.path)
    total = count(frame)
    arms = {arm["name"]: count(frame[frame["arm"] == arm["id"]]) for arm in plan["arms"]}
    failures = frame[frame["end"] == "failed"]
    failed = [
        {"arm": arm, "seed": int(seed), "reason": reason}
        for arm, seed, reason in zip(failures["name"], failures["seed"], failures["reason"], strict=True)
    ]
    following = _next(total, what, plan["command"])
    if as_json:
        print_json({"name": plan["name"], **total, "arms": arms, "failures": failed, "next": following})
        return
    states = [state for state in STATES if total[state]]
    columns = [("arm", False), *((state.replace("_", " "), True) for state in states), ("planned", True)]
    rows = [
        [name, *(str(tally[state] or "") for state in states), str(tally["planned"])] for name, tally in arms.items()
    ]
    rows.append(["all", *(str(total[state]) for state in states), str(total["planned"])])
    print_table(columns, rows)
    out = console()
    for each in failed:
        out.print(f"failed: {each['arm']}, seed {each['seed']}: {each['reason']}")
    out.print(f"next: {following}")


def _next(total: dict[str, int], what: Path, command: str) -> str:
    if total["running"]:
        return "it is running; ask again"
    if total["waiting"]:
        return command
    if total["failed"]:
        return f"{command} --retry failed"
    return f"ablate report {what}"
