"""The noise floor: by how much a trial differs from itself when it is run once more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ablate.analysis.pairing import spread
from ablate.analysis.verdict import Objective
from ablate.records import frames

COLUMNS = ("seed", "repeat", "end", "value", "again", "difference", "identical", "sd")
"""The columns of :func:`noise_floor`."""


def noise_floor(
    study: Path, plan: Mapping[str, Any], trials: pd.DataFrame, curves: pd.DataFrame | None = None
) -> pd.DataFrame:
    """One row for each time that the baseline ran once more with a seed; none without ``noise_floor: true``.

    Columns:
        seed, repeat (int): the seed, and which repeat of it this is, from 1.
        end (text): how the repeat ended, as in a frame of trials.
        value, again (float): the objective the first time and this time, in its unit; NaN where it did not complete, or
            there is no trial of that seed.
        difference (float): this time minus the first time.
        identical (bool): whether that and every point of every curve are the same to the last bit.
        sd (float): between the baseline's seeds, in the same unit; NaN below two seeds.
    """
    wanted = plan.get("repeats") or ()
    if not wanted:
        return _typed([])
    metric = plan["objective"]["metric"]
    again = frames.planned(study, {**plan, "trials": wanted, "excluded": []})
    first = trials[trials["arm"] == plan["baseline"]]
    before = _curves(frames.curves(study, frame=trials) if curves is None else curves)
    after = _curves(frames.curves(study, frame=again))
    values = first.loc[first["end"] == "complete", metric].dropna()
    rows = []
    for repeat, end, value in zip(wanted, again["end"], again[metric], strict=True):
        same = first[first["seed"] == repeat["seed"]]
        # A repeat of a seed that the baseline has no trial of has nothing to differ from.
        once, trial = (float(same[metric].iloc[0]), str(same["trial"].iloc[0])) if len(same) else (math.nan, "")
        ours, theirs = after.get(repeat["id"]), before.get(trial)
        rows.append({
            "seed": repeat["seed"], "repeat": repeat["repeat"], "end": end, "value": once, "again": value,
            "difference": value - once,
            "identical": bool(value == once and ours is not None and theirs is not None and ours.equals(theirs)),
            "sd": spread(values.to_numpy(dtype=float)),
        })  # fmt: skip
    return _typed(rows)


def noise_caveats(plan: Mapping[str, Any], floor: pd.DataFrame) -> Iterator[str]:
    """A sentence for each time that the baseline ran once more."""
    objective = Objective.of(plan)
    unit = f" {objective.spoken}" if objective.spoken else ""
    for row in floor.to_dict("records"):
        lead = f"Noise floor: the baseline run twice with seed {row['seed']}"
        if not math.isfinite(row["difference"]):
            how = "has not ended yet" if row["end"] in ("running", "waiting") else row["end"].replace("_", " ")
            once = "the first run has no value" if not math.isfinite(row["value"]) else f"the second run {how}"
            yield f"{lead} gives no difference: {once}."
            continue
        size = abs(row["difference"])
        bits = "bit-identical" if row["identical"] else "not bit-identical"
        seeds = f"; between seeds the sd is {row['sd']:.2g}{unit}" if math.isfinite(row["sd"]) else ""
        large = size >= objective.smallest_effect
        more = (
            "; that is no less than the smallest effect that matters, so effects of that size may be rounding"
            if large
            else ""
        )
        yield f"{lead} differs by {size:.2g}{unit} {objective.metric} ({bits}){seeds}{more}."


def _curves(frame: pd.DataFrame) -> dict[str, pd.Series[Any]]:
    """Every curve of each trial as one series of values; NaN equals itself."""
    parts = frame.groupby("trial", observed=True, sort=False)
    return {str(trial): part.set_index(["metric", "step"])["value"] for trial, part in parts}


def _typed(rows: list[dict[str, Any]]) -> pd.DataFrame:
    kinds = {"seed": "int64", "repeat": "int64", "end": "str", "identical": "bool"}
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({name: kinds.get(name, "float64") for name in COLUMNS})
