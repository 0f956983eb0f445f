"""``ablate status``: how far an experiment is."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ablate.cli.lines import clean, totals_line
from ablate.cli.output import console, print_json, print_table
from ablate.records.finding import RUNS, changed_since, find_study
from ablate.records.layout import StudyFolder, read_json
from ablate.records.locks import Driver
from ablate.records.spelling import in_words
from ablate.records.usage import Use
from ablate.sweep.standing import Row, Standing
from ablate.sweep.watching import bulletin_of, running

if TYPE_CHECKING:
    import pandas as pd

STATES = ("complete", "diverged", "failed", "timed_out", "pruned", "excluded", "running", "waiting")


@dataclass(frozen=True)
class _State:
    """All that is told of a study."""

    what: Path
    plan: Mapping[str, Any]
    total: Mapping[str, int]
    arms: Mapping[str, tuple[str, Mapping[str, int]]]
    """Name and counts, by identity: two arms may have one name."""
    searched: Mapping[str, int]
    """Counts of the tuning trials."""
    repeated: Mapping[str, int]
    """Counts of the trials that run once more for the noise floor."""
    failed: Sequence[Mapping[str, Any]]
    timed_out: Sequence[Mapping[str, Any]]
    interrupted: Sequence[Mapping[str, Any]]
    budget: Sequence[Use]
    changed: bool
    driver: Driver | None
    standing: Standing | None
    following: str


def show_status(what: Path, runs: Path, *, as_json: bool) -> None:
    """Print how many trials are in which state, and the command that comes next."""
    state = _read(what, runs)
    if as_json:
        _print_json(state)
    else:
        _print(state)


def _read(what: Path, runs: Path) -> _State:
    import pandas as pd

    from ablate.records.frames import count, planned, read_plan
    from ablate.records.tuning import tuning
    from ablate.records.usage import uses

    study = find_study(what, runs)
    plan = read_plan(study.path)
    frame = planned(study.path, plan)
    total = count(frame)
    of_arms = Counter(zip(frame["arm"], frame["end"], strict=True))
    searched = tuning(study.path, plan)
    repeated = planned(study.path, {**plan, "trials": plan.get("repeats", []), "excluded": []})
    everything = pd.concat([each for each in (frame, searched, repeated) if len(each) or each is frame])
    changed = changed_since(what, study)
    unfinished = count(everything) | {"oom": int((everything["cause"] == "oom").sum())}
    if searched["end"].isin(("failed", "timed_out")).any():
        unfinished["waiting"] = 0  # arms wait for their tuning, which waits for a retry
    unfinished["waiting"] += changed
    driver = running(study)
    bulletin = bulletin_of(study, driver) if driver else None
    if total["running"] or driver:
        following = shlex.join(["ablate", "status", str(study.path), "--watch"])
    else:
        home = study.path.parent if what.is_dir() else runs
        following = next_command(_command(plan, what), what, study, home, unfinished)
        # What a run makes of the changed file, and whether it is refused, is for the preview to say.
        following += " --dry-run" if changed else ""
    return _State(
        what=what,
        plan=plan,
        total=total,
        arms={arm["id"]: (arm["name"], _tally(of_arms, arm["id"])) for arm in plan["arms"]},
        searched=count(searched),
        repeated=count(repeated),
        failed=_reasons(everything[everything["end"] == "failed"]),
        timed_out=_reasons(everything[everything["end"] == "timed_out"]),
        interrupted=_reasons(everything[(everything["end"] == "waiting") & (everything["reason"] != "")]),
        budget=uses(study, plan["budget"]),
        changed=changed,
        driver=driver,
        standing=bulletin.standing if bulletin else None,
        following=following,
    )


def _print_json(state: _State) -> None:
    tuned = {"tuning": {**state.searched, "tuned": _tuned(state.plan)}} if state.plan.get("tuning") else {}
    print_json(
        {
            "name": state.plan["name"],
            **state.total,
            "arms": {id: {"name": name, **tally} for id, (name, tally) in state.arms.items()},
            "failures": state.failed,
            "timeouts": state.timed_out,
            "interrupted": state.interrupted,
            "driver": asdict(state.driver) if state.driver else None,
            "trials_running": [asdict(row) for row in state.standing.rows] if state.standing else [],
            **tuned,
            **({"repeats": state.repeated} if state.plan.get("repeats") else {}),
            "budget": {use.name: {"limit": use.limit, "used": use.used} for use in state.budget},
            "changed": state.changed,
            "next": state.following,
        }
    )


def _print(state: _State) -> None:
    states = [end for end in STATES if state.total[end]]
    columns = [("arm", False), *((end.replace("_", " "), True) for end in states), ("planned", True)]
    rows = [
        [name, *(str(tally[end] or "") for end in states), str(tally["planned"])] for name, tally in state.arms.values()
    ]
    rows.append(["all", *(str(state.total[end]) for end in states), str(state.total["planned"])])
    print_table(columns, rows)
    out = console()
    if state.plan.get("tuning"):
        out.print(_tuning(state.plan, state.searched))
        for arm in state.plan["arms"]:
            if arm.get("tuned"):
                out.print(f"tuned: {arm['name']}: {in_words(arm['tuned'])}")
    if state.plan.get("repeats"):
        out.print(f"noise floor: the baseline once more: {_ends(state.repeated)}")
    for title, trials in (("failed", state.failed), ("timed out", state.timed_out), ("waiting", state.interrupted)):
        for each in trials:
            out.print(f"{title}: {each['arm']}, seed {each['seed']}: {each['reason']}")
    if state.standing:
        out.print(f"{state.driver} runs it: {totals_line(state.standing)}")
        for row in state.standing.rows:
            out.print(f"running: {clean(row.arm)}, seed {row.seed}: {_reached(row)}")
    elif state.driver:
        out.print(f"{state.driver} runs it, and has just begun")
    for use in state.budget:
        stops = "; it is used up" if use.reached and state.total["waiting"] else ""
        out.print(f"budget: {use.text}{stops}")
    if state.changed:
        words = (
            "has changed since this study was run; the counts are those of the file as it was then, and "
            "`ablate run --dry-run` shows what a run would do now"
        )
        out.print(f"note: {state.what} {words}")
    name = state.plan["name"]
    if state.what.is_dir() and state.what.resolve().name != name and state.following.startswith("ablate run"):
        out.print(f"note: a run goes on in a folder called `{name}`, as its experiment: rename `{state.what}` first")
    out.print(f"next: {state.following}")


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
    known = f"{tally['planned']} trials known so far ({_ends(tally)})"
    return f"tuning: {done} of {len(arms)} arms have their values; {known}"


def _ends(tally: Mapping[str, int]) -> str:
    """Counts by state, in words."""
    return ", ".join(f"{tally[state]} {state.replace('_', ' ')}" for state in STATES if tally[state])


def _reasons(frame: pd.DataFrame) -> list[dict[str, Any]]:
    columns = (frame[name] for name in ("name", "seed", "reason", "cause"))
    return [
        {"arm": arm, "seed": int(seed), "reason": reason} | ({"cause": cause} if cause else {})
        for arm, seed, reason, cause in zip(*columns, strict=True)
    ]


def _command(plan: Mapping[str, Any], what: Path) -> list[str]:
    """The command that runs a study on: with its plugins and settings, if its plan was made from this file."""
    command = shlex.split(plan["command"])
    if what.is_dir():
        return command
    made_from = Path(plan.get("folder", "")) / Path(*command[2:3]).name
    same = made_from == what.parent.resolve() / what.name
    return ["ablate", "run", str(what), *(command[3:] if same else ())]


def _storage(study: StudyFolder) -> list[str]:
    """The database that a run is to go on with, where the last one was told which; a password in it is not repeated."""
    try:
        return ["--storage", str(read_json(study.database)["url"])]
    except (OSError, ValueError, KeyError):
        return []


def next_command(command: Sequence[str], what: Path, study: StudyFolder, runs: Path, counts: Mapping[str, int]) -> str:
    """The command that comes next: the one that runs the experiment while there is something to run, or its report.

    Args:
        command: the words of what runs the experiment, with its plugins and settings.
        what: what the user named.
        study: the study, which is reported by its folder where the file alone does not say all of it.
        runs: the folder that holds the studies.
        counts: how many trials are ``waiting``, ``failed`` and ``timed_out``, and how many of those that failed ran
            out of memory, ``oom``.
    """
    where = [] if runs == RUNS else ["--runs", str(runs)]
    # What ran out of memory wants more of it; what failed otherwise wants its code mended.
    again = {"failed": "oom" if counts["oom"] == counts["failed"] else "failed", "timed_out": "timeout"}
    retries = [word for end, option in again.items() if counts[end] for word in ("--retry", option)]
    if counts["waiting"] or retries:
        return shlex.join([*command, *where, *_storage(study), *(() if counts["waiting"] else retries)])
    if what.is_dir() or len(command) > 3:
        return shlex.join(["ablate", "report", str(study.path)])
    return shlex.join(["ablate", "report", str(what), *where])
