"""``ablate status``: how far an experiment is."""

from __future__ import annotations

from pathlib import Path

from ablate.api import RUNS, changed_since, find_study
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
    changed = changed_since(what, study)
    run = f"ablate run {what}" if what.is_file() else plan["command"]
    runs = study.path.parent if what.is_dir() else runs
    following = (
        "it is running; ask again"
        if total["running"]
        else next_command(what, runs, waiting=total["waiting"] + changed, failed=total["failed"], run=run)
    )
    if as_json:
        told = {"arms": arms, "failures": failed, "changed": changed, "next": following}
        print_json({"name": plan["name"], **total, **told})
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
    if changed:
        out.print(f"note: {what} has changed since this study was run; the counts are those of the file as it was then")
    out.print(f"next: {following}")


def next_command(what: Path | str, runs: Path, *, waiting: int, failed: int, run: str | None = None) -> str:
    """The command that comes next: ``run`` (by default that of ``what``) while there is something to run."""
    where = "" if runs == RUNS else f" --runs {runs}"
    if waiting or failed:
        return f"{run or f'ablate run {what}'}{where}{'' if waiting else ' --retry failed'}"
    return f"ablate report {what}{where}"
