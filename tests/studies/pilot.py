"""How strongly do arms correlate within a seed, by step? It decides how many seeds the shipped experiments need.

Run as ``python -m tests.studies.pilot FOLDER``; it takes some minutes on two cores and goes on where it was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ablate.records.layout import TrialFolder
from ablate.records.series import read_series
from tests.trial_maker import make_trial

SEEDS = range(8)
STEPS = 550
BASE: dict[str, Any] = {"width": 64, "depth": 3, "mixer": {"kind": "attention", "heads": 4}}
ARMS: dict[str, dict[str, Any]] = {
    "baseline": {},
    "placement=post": {"placement": "post"},
    "scale=off": {"mixer": {"kind": "attention", "heads": 4, "scale": "none"}},
    "residual=off": {"residual": "none"},
    "ratio=1": {"feed_forward": {"kind": "mlp", "ratio": 1}},
    "norm=rms": {"norm": "rms"},
}


def run(path: Path, model: dict[str, Any], seed: int) -> None:
    """Train one trial, unless it is there already."""
    from ablate.registry import Registry
    from ablate.training.trial import train

    folder = TrialFolder(path)
    if not path.exists():
        task = {"kind": "text", "source": "python-docs", "context": 64, "windows": 256}
        make_trial(path, model=model, task=task, training={"batch": 16}, steps=STEPS, seed=seed, evaluations=11)
    if not folder.result.exists():
        train(folder, len(folder.attempts()) + 1, Registry.installed())


def losses(root: Path) -> pd.DataFrame:
    """Validation loss by arm, seed and step."""
    frames: list[pd.DataFrame] = []
    for arm in ARMS:
        for seed in SEEDS:
            folder = TrialFolder(root / f"{arm}-{seed}")
            (attempt,) = (attempt for attempt in folder.attempts() if attempt.curves.exists())
            curve = read_series(attempt.curves).to_pandas().query("metric == 'val/loss'")
            frames.append(curve.assign(arm=arm, seed=seed))
    return pd.concat(frames)


def rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Each arm's pairing with the baseline, by step."""
    arms = len(ARMS) - 1
    for step, part in frame.groupby("step"):
        table = part.pivot(index="seed", columns="arm", values="value")
        for arm in list(ARMS)[1:]:
            base, other = table["baseline"], table[arm]
            difference = other - base
            paired, unpaired = difference.var(), base.var() + other.var()
            # seeds until a simultaneous interval is narrower than 0.02 on either side
            enough = (n for n in range(3, 500) if stats.t.ppf(1 - 0.025 / arms, n - 1) * np.sqrt(paired / n) < 0.02)
            yield {
                "step": step,
                "arm": arm,
                "base": base.mean(),
                "effect": difference.mean(),
                "sd": np.sqrt(paired),
                "correlation": base.corr(other),
                "paired/unpaired": paired / unpaired,
                "seeds": next(enough, None),
            }


def main() -> None:
    """Train what is missing and print the table."""
    root = Path(sys.argv[1])
    root.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(2) as pool:
        jobs = [pool.submit(run, root / f"{arm}-{seed}", BASE | ARMS[arm], seed) for seed in SEEDS for arm in ARMS]
        for job in jobs:
            job.result()
    table = pd.DataFrame(rows(losses(root)))
    with pd.option_context("display.width", 160, "display.max_rows", None, "display.float_format", "{:.3f}".format):
        print(table.to_string(index=False))


if __name__ == "__main__":
    main()
