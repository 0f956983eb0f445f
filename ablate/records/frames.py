"""A study's records as tidy pandas frames: one row a trial, one row a reading.

Only planned trials are read: what a grid used to hold and no longer does stays on disk and out of every table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ablate.errors import InputError
from ablate.records.layout import StudyFolder, TrialFolder, read_json
from ablate.records.locks import lock_held
from ablate.records.running import runs
from ablate.records.series import CURVES, PROBES, read_series
from ablate.records.shapes import plan_fault, record_fault
from ablate.records.spelling import spelled
from ablate.records.steps import furthest_step

__all__ = [
    "ENDS", "FACTS", "count", "counts", "curves", "lock_held", "planned", "probes", "read_plan", "spelled", "trials",
]  # fmt: skip

ENDS = ("complete", "diverged", "failed", "timed_out", "pruned", "excluded", "running", "waiting")
"""Every state that a planned trial can be in; the first two have a sealed result."""
FACTS = ("initial_loss", "clip_rate", "unigram_entropy")
"""Facts that every frame of trials has a column for, whether or not a record knows them."""

_PLAN = ("schema", "name", "design", "baseline", "factors", "objective", "units", "seeds", "arms", "trials", "excluded")
_SEALED = ("complete", "diverged", "pruned")
_GAVE_UP = ("failed", "timed_out", "pruned")


def read_plan(study: Path) -> dict[str, Any]:
    """The resolved plan of a study's folder.

    Raises:
        InputError: there is no such folder (S401), no plan in it (S402), or one that cannot be read (S403).
    """
    files = StudyFolder(Path(study))
    if not files.path.is_dir():
        raise InputError.one(
            "S401",
            f"there is no study at `{study}`",
            help="check the path, or run the experiment first with `ablate run`",
        )
    if not files.plan.is_file():
        raise InputError.one(
            "S402",
            f"`{study}` holds no plan.json, so it is not the folder of a study",
            help="name the study's own folder, as `runs/quickstart`, or the experiment's YAML",
        )
    remedy = "run the experiment again: `ablate run` writes the plan anew and repeats no sealed trial"
    plan = _read(files.plan, remedy)
    lacking = [key for key in _PLAN if key not in plan]
    if lacking or plan["schema"] != 1:
        raise _unreadable(files.plan, f"it lacks {', '.join(lacking)}" if lacking else "its schema is not 1", remedy)
    if fault := plan_fault(plan):
        raise _unreadable(files.plan, fault, remedy)
    return plan


def trials(study: Path) -> pd.DataFrame:
    """One row for each planned trial, in the plan's order, whatever became of it.

    Columns:
        trial, arm (text): identities. Both are "" for a cell that the plan excludes: it has one row a seed.
        name (text): the arm's name; the baseline's is ``baseline``.
        factor.<name> (object): the arm's level as the plan has it. None is a level; pd.NA says that the factor is no
            part of the arm. pandas drops None and merges 1, 1.0 and True when it groups: group by ``arm``, or by
            ``frame["factor.x"].map(spelled)``.
        seed (int).
        end (text): one of :data:`ENDS`. ``running`` has a driver that has handed it out; ``waiting`` has none.
        reason (text): why it diverged, failed, waits or was excluded; "" where there is nothing to say.
        cause (text): of a failure, ``oom`` where memory was too short, ``lost`` where its worker died; else "".
        rule (text), bad_step (Int64): the divergence rule that struck, and at which step.
        first_bad (text), first_bad_step (Int64), first_bad_module (text): what the first bad value was when the trial
            was replayed, in which step and module: its ``output``, the ``gradient`` that it sent back, the ``update``
            of its parameters, the ``loss`` by itself, or an output ``out_of_range`` (over 10,000), where the loss
            passed its limit and every value was finite. "" and NA where it did not diverge or nothing was found;
            ``out_of_time`` and NA where `trial_timeout` left too little time to replay it.
        attempt (Int64): the newest attempt, from 1.
        steps (Int64): training steps done. tokens (Int64): training tokens seen.
        micro_batch (Int64): sequences at once, where memory was too short for the batch; else NA.
        <metric> (float): each of the task's metrics under its own name, in the plan's ``units``; NaN without a value,
            as where it is infinite.
        seconds (float). tokens_per_second (float). peak_memory (Int64): bytes.
        parameters (Int64): of the arm, in total. flops (float): training FLOPs a step.
        initial_loss, unigram_entropy (float): nats. clip_rate (float): share of steps clipped; and any other facts.
        started, sealed (text): UTC times, "" without a record.

    Raises:
        InputError: the study or one of its records cannot be read (S401 to S403).
    """
    return planned(study, read_plan(study))


def planned(study: Path, plan: Mapping[str, Any]) -> pd.DataFrame:
    """The frame of :func:`trials`, for a plan that has been read already."""
    files = StudyFolder(Path(study))
    running = runs(files)
    rows = []
    for arm, trial in _planned(plan):
        folder = files.trial(trial["id"])
        row = {"trial": trial["id"], "arm": arm["id"], "name": arm["name"], "seed": trial["seed"]}
        row |= {"parameters": arm["parameters"]["total"], "flops": arm["flops"], **_levels(plan, arm["levels"])}
        rows.append(row | (_sealed(folder, plan) if folder.result.exists() else _unsealed(folder, running)))
    for cell in plan["excluded"]:
        levels = cell["levels"]
        names = [factor["name"] for factor in plan["factors"] if factor["name"] in levels]
        name = cell.get("name") or ", ".join(f"{factor}={spelled(levels[factor])}" for factor in names)
        row = {"trial": "", "arm": "", "name": name, "end": "excluded", "reason": cell.get("why", "")}
        rows.extend(row | _levels(plan, levels) | {"seed": seed} for seed in plan["seeds"])
    return _typed(rows, plan)


def count(frame: pd.DataFrame) -> dict[str, int]:
    """How many rows of a frame of trials are in each of :data:`ENDS`, and ``planned``, which is their sum."""
    tally = {end: int((frame["end"] == end).sum()) for end in ENDS}
    assert sum(tally.values()) == len(frame), f"a trial is in none of the states {ENDS}"
    return tally | {"planned": len(frame)}


def counts(study: Path) -> dict[str, int]:
    """How many planned trials are in each of :data:`ENDS`, and ``planned``, which is their sum.

    Raises:
        InputError: the study or one of its records cannot be read (S401 to S403).
    """
    return count(trials(study))


def curves(study: Path, *, frame: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every recorded value of every curve of the sealed trials, in long form.

    Columns:
        trial, arm, name (category, in the plan's order). seed (int).
        step (int): updates done before the value was taken.
        metric (category): ``train/loss``, ``grad_norm/global`` (before clipping), ``lr``, and the task's metrics.
        value (float): in the metric's unit (losses in nats); NaN and infinity as they came.

    Args:
        study: the study's folder.
        frame: its :func:`trials`, where they have been read; only the trials in it are read.

    Raises:
        InputError: the study or one of its records cannot be read (S401 to S403).
    """
    return _series(study, frame, "curves", CURVES)


def probes(study: Path, *, frame: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every probe reading of the sealed trials, in long form.

    Columns:
        trial, arm, name (category, in the plan's order). seed (int).
        step (int): updates done before the reading.
        metric (category): as ``grad_norm``, ``stream_rms`` or ``entropy`` (nats).
        layer (Int32): from 0; NA for what stands in no block.
        role (category): as ``q``, ``w1``, ``norm``; missing where the metric has none.
        part (category): the parameter's or head's name (``name`` in the file); missing where the metric has none.
        value (float).

    Args:
        study: the study's folder.
        frame: its :func:`trials`, where they have been read; only the trials in it are read.

    Raises:
        InputError: the study or one of its records cannot be read (S401 to S403).
    """
    return _series(study, frame, "probes", PROBES)


# --- one trial ------------------------------------------------------------------------------------------------------


def _planned(plan: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    arms = {arm["id"]: arm for arm in plan["arms"]}
    for trial in plan["trials"]:
        yield arms[trial["arm"]], trial


def _levels(plan: Mapping[str, Any], levels: Mapping[str, Any]) -> dict[str, Any]:
    return {f"factor.{factor['name']}": levels.get(factor["name"], pd.NA) for factor in plan["factors"]}


def _read(path: Path, remedy: str) -> dict[str, Any]:
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or getattr(error, "msg", None) or str(error)
        raise _unreadable(path, why, remedy) from error


def _unreadable(path: Path, why: str, remedy: str | None = None) -> InputError:
    redo = f"restore the file, or remove the folder `{path.parent}` and run the experiment again"
    return InputError.one("S403", f"`{path.name}` cannot be read: {why}", file=str(path), help=remedy or redo)


def _sealed(folder: TrialFolder, plan: Mapping[str, Any]) -> dict[str, Any]:
    """What a sealed record says."""
    redo = f"restore the file, or remove the folder `{folder.path}` and run the experiment again"
    record = _read(folder.result, redo)
    if fault := record_fault(record):
        raise _unreadable(folder.result, fault, redo)
    end, metrics = record["end"], record["metrics"]
    if end not in _SEALED or record["trial"] != folder.id:
        raise _unreadable(folder.result, "it is not the record of this trial", redo)
    values = {name: _number(metrics.get(name)) for name in plan["units"]}
    reason = record.get("reason") or {}
    if end == "complete" and not math.isfinite(values[plan["objective"]["metric"]]):
        # An infinite loss is a divergence, whatever the one who wrote the record took it for.
        end, reason = "diverged", {"rule": "nonfinite", "step": record.get("steps")}
    if end != "complete":
        values = dict.fromkeys(values, math.nan)
    known = ["attempt", "steps", "tokens", "micro_batch", "seconds", "tokens_per_second", "peak_memory"]
    known += ["started", "sealed"]
    return {
        "end": end,
        "reason": f"{reason['rule']} at step {reason['step']}" if reason else "",
        "rule": reason.get("rule", ""),
        "bad_step": reason.get("step"),
        **_first_bad(record.get("first_bad") or {}),
        **{key: _number(value) for key, value in (record.get("facts") or {}).items()},
        **{key: record.get(key) for key in known},
        **values,
    }


def _first_bad(found: Mapping[str, Any]) -> dict[str, Any]:
    names = {"what": "first_bad", "step": "first_bad_step", "module": "first_bad_module"}
    return {name: found.get(key) for key, name in names.items()}


def _unsealed(folder: TrialFolder, running: Callable[[str], bool] | None) -> dict[str, Any]:
    """What the attempts of a trial without a result say."""
    attempts = folder.attempts()
    if not attempts:
        return {"end": "waiting", "reason": ""}
    newest = attempts[-1]
    end: dict[str, Any] = {}
    if newest.end.exists():
        end = _read(newest.end, f"remove the folder `{newest.path}` and run the experiment again")
    if end.get("end") in _GAVE_UP:
        told = {"reason": str(end.get("error") or ""), "cause": str(end.get("cause") or "")}
        return {"end": end["end"], "attempt": newest.number, **told}
    if running is not None and not end:
        return {"end": "running" if running(folder.id) else "waiting", "reason": "", "attempt": newest.number}
    step = furthest_step(folder)
    reached = f"; it goes on from step {step}" if step is not None else ""
    why = "has come to a rung, where its batch is judged" if newest.rung.exists() else "was interrupted"
    return {"end": "waiting", "reason": f"attempt {newest.number} {why}{reached}", "attempt": newest.number}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else math.nan


def _typed(rows: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]) -> pd.DataFrame:
    """A frame with the documented columns in their order, each of its own type even where every value is missing."""
    factors = [f"factor.{factor['name']}" for factor in plan["factors"]]
    metrics = list(plan["units"])
    whole = ("bad_step", "first_bad_step", "attempt", "steps", "tokens", "micro_batch", "peak_memory", "parameters")
    text = ("reason", "cause", "rule", "first_bad", "first_bad_module", "started", "sealed")
    columns = ["trial", "arm", "name", *factors, "seed", "end", "reason", "cause", "rule", "bad_step"]
    columns += ["first_bad", "first_bad_step", "first_bad_module", "attempt"]
    columns += ["steps", "tokens", "micro_batch", *metrics, "seconds", "tokens_per_second", "peak_memory"]
    columns += ["parameters", "flops", *FACTS, "started", "sealed"]
    columns += sorted({key for row in rows for key in row} - set(columns))
    data: dict[str, pd.Series[Any]] = {}
    for column in columns:
        values = [row.get(column) for row in rows]
        if column in factors:
            data[column] = pd.Series(values, dtype=object)
        elif column in whole:
            data[column] = pd.Series(values, dtype="Int64")
        elif column in text:
            data[column] = pd.Series([value or "" for value in values], dtype="str")
        elif column in ("trial", "arm", "name", "end"):
            data[column] = pd.Series(values, dtype="str")
        elif column == "seed":
            data[column] = pd.Series(values, dtype="int64")
        else:
            data[column] = pd.Series([_number(value) for value in values], dtype="float64")
    return pd.DataFrame(data)


# --- series ---------------------------------------------------------------------------------------------------------


def _series(study: Path, frame: pd.DataFrame | None, which: str, schema: pa.Schema) -> pd.DataFrame:
    frame = trials(study) if frame is None else frame
    sealed = frame[frame["end"].isin(_SEALED)]
    files = StudyFolder(Path(study))
    tables: list[pa.Table] = []
    for id, attempt in zip(sealed["trial"], sealed["attempt"], strict=True):
        folder = files.trial(id).attempt(int(attempt))
        tables.append(_table(getattr(folder, which), schema))
    lengths = [table.num_rows for table in tables]
    whole = pa.concat_tables(tables) if tables else schema.empty_table()
    data: dict[str, Any] = {}
    for column in ("trial", "arm", "name"):
        # Categories make 1,000 trials' series small, and keep the plan's order in every plot.
        kinds = pd.Index(list(dict.fromkeys(frame.loc[frame["trial"] != "", column])), dtype="str")
        codes = kinds.get_indexer(pd.Index(sealed[column], dtype="str"))
        data[column] = pd.Categorical.from_codes(np.repeat(codes, lengths), categories=kinds)
    data["seed"] = np.repeat(sealed["seed"].to_numpy(), lengths)
    for field in schema:
        values = whole.column(field.name)
        if pa.types.is_string(field.type):
            data["part" if field.name == "name" else field.name] = _category(values)
        elif field.name == "layer":
            data["layer"] = pd.array(values.to_pandas().to_numpy(dtype="float64"), dtype="Int32")
        else:
            data[field.name] = values.to_numpy()
    return pd.DataFrame(data)


def _table(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        table = read_series(path)
    except (OSError, pa.ArrowInvalid) as error:
        why = "the file is missing" if isinstance(error, FileNotFoundError) else "it is damaged"
        redo = f"restore the file, or remove the folder `{path.parent.parent}` and run the experiment again"
        raise _unreadable(path, why, redo) from error
    if table.schema.names != schema.names:
        raise _unreadable(path, f"its columns are {', '.join(table.schema.names)}, not {', '.join(schema.names)}")
    return table


def _category(values: pa.ChunkedArray) -> pd.Categorical:
    encoded = values.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return pd.Categorical.from_codes(codes, categories=pd.Index(encoded.dictionary.to_pylist(), dtype="str"))
