"""Numbers behind the figures: what is averaged over seeds, over what else, and with which band."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import stats

FLOOR = 1e-12
"""Smallest magnitude that a log axis shows; anything below is drawn here."""


def plain_arms(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with their arms as texts; as categories they are small, and quick to group, while there are millions."""
    return frame.assign(arm=frame["arm"].astype(str))


def band(frame: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """Mean over seeds by arm and step with Student's t band, on the steps that all of an arm's seeds have.

    Args:
        frame: rows of arm, seed, step, value.
        level: the band's coverage at each step.

    Returns:
        Columns arm, step, seeds, mean, low, high; the bounds are NaN with a single seed.
    """
    finite = frame[np.isfinite(frame["value"])]
    seeds = frame.groupby("arm")["seed"].nunique()
    by_step = finite.groupby(["arm", "step"])["value"].agg(["size", "mean", "std"]).reset_index()
    shared = by_step[by_step["size"] == by_step["arm"].map(seeds)]
    count = shared["size"].to_numpy(dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        half = stats.t.ppf((1 + level) / 2, count - 1) * shared["std"].to_numpy() / np.sqrt(count)
    return pd.DataFrame(
        {
            "arm": shared["arm"],
            "step": shared["step"],
            "seeds": shared["size"],
            "mean": shared["mean"],
            "low": shared["mean"] - half,
            "high": shared["mean"] + half,
        }
    )


def geometric(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Geometric mean of the positive finite values in each group: what an average on a log axis is."""
    values = frame["value"].to_numpy(dtype=float)
    kept = frame[np.isfinite(values) & (values >= 0)]
    logs = kept.assign(value=np.log10(np.maximum(kept["value"], FLOOR)))
    means: pd.DataFrame = logs.groupby(by, observed=True)["value"].mean().reset_index()
    return plain_arms(means.assign(value=10 ** means["value"]))


def mean(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Mean of the finite values in each group."""
    kept = frame[np.isfinite(frame["value"])]
    means: pd.DataFrame = kept.groupby(by, observed=True)["value"].mean().reset_index()
    return plain_arms(means)


def block_gradients(probes: pd.DataFrame) -> pd.DataFrame:
    """Norm of the gradient of all of a block's parameters together, by trial, step and layer.

    The root of the sum of the squares of its parameters' norms, which is exact.
    """
    rows = probes[(probes["metric"] == "grad_norm") & probes["layer"].notna()]
    keys = ["arm", "seed", "step", "layer"]
    squares = rows.assign(value=rows["value"] ** 2).groupby(keys, observed=True)["value"]
    total: pd.DataFrame = squares.sum(min_count=1).reset_index()
    return plain_arms(total.assign(value=np.sqrt(total["value"])))


def first_to_last(probes: pd.DataFrame, role: str = "w2") -> pd.DataFrame:
    """The first block's gradient norm over the last one's, of the parameters of one role.

    Returns:
        Columns arm, seed, step, value; without those in which fewer than two blocks have such a parameter.
    """
    rows = probes[(probes["metric"] == "grad_norm") & (probes["role"] == role) & probes["layer"].notna()]
    empty = pd.DataFrame({"arm": [], "seed": [], "step": [], "value": []})
    if rows.empty:
        return empty
    squares = rows.assign(value=rows["value"] ** 2, layer=rows["layer"].astype(int))
    norms = np.sqrt(squares.groupby(["arm", "seed", "step", "layer"], observed=True)["value"].sum(min_count=1))
    wide = norms.unstack("layer")
    if wide.shape[1] < 2:
        return empty
    # Arms may differ in depth: the last block is the arm's own.
    last = wide.ffill(axis=1).iloc[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (wide[wide.columns.min()] / last).where(wide.notna().sum(axis=1) > 1)
    found: pd.DataFrame = ratio.rename("value").reset_index().dropna()
    return plain_arms(found)


def ends(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows at the first probed step, and those at each trial's last."""
    if frame.empty:
        return frame, frame
    by_trial = frame.groupby(["arm", "seed"], observed=True)["step"]
    return frame[frame["step"] == frame["step"].min()], frame[frame["step"] == by_trial.transform("max")]


def binned(frame: pd.DataFrame, steps: int, bins: int = 60) -> pd.DataFrame:
    """A curve of every step as at most so many bins, each at the middle of its steps: geometric mean over seeds."""
    width = max(1, math.ceil(steps / bins))
    return geometric(frame.assign(step=(frame["step"] // width) * width + (width - 1) / 2), ["arm", "step"])
