"""``ablate status``: how far an experiment is."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ablate.api import RUNS, changed_since, find_study
from ablate.cli.lines import clean, totals_line
from ablate.cli.output import console, print_json, print_table
from ablate.records.layout import StudyFolder
from ablate.sweep.standing import Row
from ablate.sweep.watching import bulletin_of, running

if TYPE_CHECKING:
    import pandas as pd

STATES = ("complete", "diverged", "failed", "timed_out", "pruned", "excluded", "running", "waiting")


def show_status(what: Path, runs: Path, *, as_json: bool) -> None:
    """Print how many trials are in which state, and the command that comes next."""
    import pandas as pd

    from ablate.records.frames import count, planned, read_plan
    from ablate.records.tuning import tuning
    from ablate.records.usage import uses

    study = find_study(what, runs)
    plan = read_plan(study.path)
    frame = planned(study.path, plan)
    total = count(frame)
    # By identity, since two arms may have one name.
    of_arms = Counter(zip(frame["arm"], frame["end"], strict=True))
    arms = {arm["id"]: (arm["name"], _tally(of_arms, arm["id"])) for arm in plan["arms"]}
    searched = tuning(study.path, plan)
    everything = pd.concat([frame, searched]) if len(searched) else frame
    failed = _reasons(everything[everything["end"] == "failed"])
    timed_out = _reasons(everything[everything["end"] == "timed_out"])
    interrupted = _reasons(frame[(frame["end"] == "waiting") & (frame["reason"] != "")])
    changed = changed_since(what, study)
    command = _command(plan, what)
    runs = study.path.parent if what.is_dir() else runs
    budget = uses(study, plan["budget"])
    unfinished = count(everything)
    if searched["end"].isin(("failed", "timed_out")).any():
        unfinished["waiting"] = 0  # arms wait for their tuning, which waits for a retry
    unfinished["waiting"] += changed
    following = next_command(command, what, study, runs, unfinished)
    driver = running(study)
    bulletin = bulletin_of(study, driver) if driver else None
    standing = bulletin.standing if bulletin else None
    if total["running"] or driver:
        following = shlex.join(["ablate", "status", str(study.path), "--watch"])
    if as_json:
        tallies = {id: {"name": name, **tally} for id, (name, tally) in arms.items()}
        told: dict[str, Any] = {"arms": tallies, "failures": failed, "timeouts": timed_out, "interrupted": interrupted}
        under_way = [asdict(row) for row in standing.rows] if standing else []
        told |= {"driver": asdict(driver) if driver else None, "trials_running": under_way}
        used = {use.name: {"limit": use.limit, "used": use.used} for use in budget}
        tuned = {"tuning": count(searched) | {"tuned": _tuned(plan)}} if plan.get("tuning") else {}
        print_json(
            {"name": plan["name"], **total, **told, **tuned, "budget": used, "changed": changed, "next": following}
        )
        return
    states = [state for state in STATES if total[state]]
    columns = [("arm", False), *((state.replace("_", " "), True) for state in states), ("planned", True)]
    rows = [
        [name, *(str(tally[state] or "") for state in states), str(tally["planned"])] for name, tally in arms.values()
    ]
    rows.append(["all", *(str(total[state]) for state in states), str(total["planned"])])
    print_table(columns, rows)
    out = console()
    if plan.get("tuning"):
        out.print(_tuning(plan, count(searched)))
    for each in failed:
        out.print(f"failed: {each['arm']}, seed {each['seed']}: {each['reason']}")
    for each in timed_out:
        out.print(f"timed out: {each['arm']}, seed {each['seed']}: {each['reason']}")
    for each in interrupted:
        out.print(f"waiting: {each['arm']}, seed {each['seed']}: {each['reason']}")
    if standing:
        out.print(f"{driver} runs it: {totals_line(standing)}")
        for row in standing.rows:
            out.print(f"running: {clean(row.arm)}, seed {row.seed}: {_reached(row)}")
    elif driver:
        out.print(f"{driver} runs it, and has just begun")
    for use in budget:
        stops = "; it is used up" if use.reached and total["waiting"] else ""
        out.print(f"budget: {use.text}{stops}")
    if changed:
        out.print(f"note: {what} has changed since this study was run; the counts are those of the file as it was then")
    out.print(f"next: {following}")


def _tally(ends: Mapping[tuple[str, str], int], arm: str) -> dict[str, int]:
    tally = {state: ends.get((arm, state), 0) for state in STATES}
    return tally | {"planned": sum(tally.values())}


def _reached(row: Row) -> str:
    """How far a running trial is."""
    parts = [f"step {row.step} of {row.steps}" if row.steps else "starting"]
    parts += [] if row.loss is None else [f"loss {row.loss:.4f}"]
    parts += [] if row.tokens_per_second is None else [f"{row.tokens_per_second:,.0f} tok/s"]
    return ", ".join([*parts, f"attempt {row.attempt} since {row.since}"])


def _tuned(plan: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The values that were chosen, by the identity of the arm."""
    return {arm["id"]: arm["tuned"] for arm in plan["arms"] if "tuned" in arm}


def _tuning(plan: Mapping[str, Any], tally: Mapping[str, int]) -> str:
    """How far tuning is: arms that have their values, and the trials that are known so far."""
    arms, done = [arm for arm in plan["arms"] if arm.get("tuning")], len(_tuned(plan))
    ends = [f"{tally[state]} {state.replace('_', ' ')}" for state in STATES if tally[state]]
    return f"tuning: {done} of {len(arms)} arms have their values; {tally['planned']} trials so far ({', '.join(ends)})"


def _reasons(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {"arm": arm, "seed": int(seed), "reason": reason}
        for arm, seed, reason in zip(frame["name"], frame["seed"], frame["reason"], strict=True)
    ]


def _command(plan: Mapping[str, Any], what: Path) -> list[str]:
    """The command that runs a study on: with its plugins and settings, if its plan was made from this file."""
    command = shlex.split(plan["command"])
    if what.is_dir():
        return command
    made_from = Path(plan.get("folder", "")) / Path(*command[2:3]).name
    same = made_from == what.parent.resolve() / what.name
    return ["ablate", "run", str(what), *(command[3:] if same else ())]


def next_command(command: Sequence[str], what: Path, study: StudyFolder, runs: Path, counts: Mapping[str, int]) -> str:
    """The command that comes next: the one that runs the experiment while there is something to run, or its report.

    Args:
        command: the words of what runs the experiment, with its plugins and settings.
        what: what the user named.
        study: the study, which is reported by its folder where the file alone does not say all of it.
        runs: the folder that holds the studies.
        counts: how many trials are ``waiting``, ``failed`` and ``timed_out``.
    """
    where = [] if runs == RUNS else ["--runs", str(runs)]
    again = {"failed": "failed", "timed_out": "timeout"}
    retries = [word for end, option in again.items() if counts[end] for word in ("--retry", option)]
    if counts["waiting"] or retries:
        return shlex.join([*command, *where, *(() if counts["waiting"] else retries)])
    if what.is_dir() or len(command) > 3:
        return shlex.join(["ablate", "report", str(study.path)])
    return shlex.join(["ablate", "report", str(what), *where])
