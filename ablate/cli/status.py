"""``ablate status``: how far an experiment is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ablate.api import RUNS, changed_since, find_study
from ablate.cli.output import console, print_json, print_table

if TYPE_CHECKING:
    import pandas as pd

STATES = ("complete", "diverged", "failed", "timed_out", "pruned", "excluded", "running", "waiting")


def show_status(what: Path, runs: Path, *, as_json: bool) -> None:
    """Print how many trials are in which state, and the command that comes next."""
    from ablate.records.frames import count, read_plan, trials
    from ablate.records.usage import uses

    study = find_study(what, runs)
    plan = read_plan(study.path)
    frame = trials(study.path)
    total = count(frame)
    # By identity, since two arms may have one name.
    arms = {arm["id"]: (arm["name"], count(frame[frame["arm"] == arm["id"]])) for arm in plan["arms"]}
    failed = _reasons(frame[frame["end"] == "failed"])
    timed_out = _reasons(frame[frame["end"] == "timed_out"])
    interrupted = _reasons(frame[(frame["end"] == "waiting") & (frame["reason"] != "")])
    changed = changed_since(what, study)
    run = f"ablate run {what}" if what.is_file() else plan["command"]
    runs = study.path.parent if what.is_dir() else runs
    budget = uses(study, plan["budget"])
    unfinished = total | {"waiting": total["waiting"] + changed}
    following = "it is running; ask again" if total["running"] else next_command(what, runs, unfinished, run=run)
    if as_json:
        tallies = {id: {"name": name, **tally} for id, (name, tally) in arms.items()}
        told = {"arms": tallies, "failures": failed, "timeouts": timed_out, "interrupted": interrupted}
        used = {use.name: {"limit": use.limit, "used": use.used} for use in budget}
        print_json({"name": plan["name"], **total, **told, "budget": used, "changed": changed, "next": following})
        return
    states = [state for state in STATES if total[state]]
    columns = [("arm", False), *((state.replace("_", " "), True) for state in states), ("planned", True)]
    rows = [
        [name, *(str(tally[state] or "") for state in states), str(tally["planned"])] for name, tally in arms.values()
    ]
    rows.append(["all", *(str(total[state]) for state in states), str(total["planned"])])
    print_table(columns, rows)
    out = console()
    for each in failed:
        out.print(f"failed: {each['arm']}, seed {each['seed']}: {each['reason']}")
    for each in timed_out:
        out.print(f"timed out: {each['arm']}, seed {each['seed']}: {each['reason']}")
    for each in interrupted:
        out.print(f"waiting: {each['arm']}, seed {each['seed']}: {each['reason']}")
    for use in budget:
        stops = "; it is used up" if use.reached and total["waiting"] else ""
        out.print(f"budget: {use.text}{stops}")
    if changed:
        out.print(f"note: {what} has changed since this study was run; the counts are those of the file as it was then")
    out.print(f"next: {following}")


def _reasons(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {"arm": arm, "seed": int(seed), "reason": reason}
        for arm, seed, reason in zip(frame["name"], frame["seed"], frame["reason"], strict=True)
    ]


def next_command(what: Path | str, runs: Path, counts: Mapping[str, int], *, run: str | None = None) -> str:
    """The command that comes next: ``run`` (by default that of ``what``) while there is something to run.

    Args:
        what: what the user named.
        runs: the folder that holds the studies.
        counts: how many trials are ``waiting``, ``failed`` and ``timed_out``.
        run: the command that runs the experiment, where it is known.
    """
    where = "" if runs == RUNS else f" --runs {runs}"
    again = {"failed": " --retry failed", "timed_out": " --retry timeout"}
    retries = "".join(option for end, option in again.items() if counts[end])
    if counts["waiting"] or retries:
        return f"{run or f'ablate run {what}'}{where}{'' if counts['waiting'] else retries}"
    return f"ablate report {what}{where}"
