"""What was tuned: one row for each tuning trial, apart from the trials that arms are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ablate.records.frames import count, planned, read_plan

__all__ = ["at_baseline", "count", "tuning"]


def tuning(study: Path, plan: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """One row for each tuning trial that has been opened, in the order of arms and proposals; none without tuning.

    Columns: those of :func:`ablate.records.frames.trials`, and

        number (int): of the combination among its arm's, from 0; it has one row a tuning seed.
        tuned.<path> (object): the value of each tuned option.
        chosen (bool): whether these are the values that the arm is reported at.

    Raises:
        InputError: the study or one of its records cannot be read (S401 to S403).
    """
    plan = read_plan(study) if plan is None else plan
    runs = (plan.get("tuning") or {}).get("runs", [])
    frame = planned(study, {**plan, "trials": runs, "excluded": []})
    chosen = {arm["id"]: arm.get("tuned") for arm in plan["arms"]}
    frame["number"] = pd.Series([trial["number"] for trial in runs], dtype="int64")
    for path in (plan.get("tuning") or {}).get("params", {}):
        values = [trial["tuned"].get(path, pd.NA) for trial in runs]
        frame[f"tuned.{path}"] = pd.Series(values, dtype=object)
    frame["chosen"] = pd.Series([trial["tuned"] == chosen[trial["arm"]] for trial in runs], dtype=bool)
    return frame


def at_baseline(study: Path, plan: Mapping[str, Any]) -> pd.DataFrame:
    """The trials of every arm at the values that are best for the baseline; columns as a frame of trials has them.

    An arm that chose these values itself, and the baseline, are here with the trials that they are judged by. No rows
    where the experiment does not ask for it, or the baseline has no values yet.
    """
    tuned = {arm["id"]: arm.get("tuned") for arm in plan["arms"]}
    values = tuned[plan["baseline"]]
    own = [trial for trial in plan["trials"] if tuned[trial["arm"]] == values]
    again = (plan.get("tuning") or {}).get("at_baseline")
    wanted = [] if values is None or again is None else [*own, *again]
    return planned(study, {**plan, "trials": wanted, "excluded": []})
