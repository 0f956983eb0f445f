"""What a wrong learning rate costs, by architecture: an arm without its learning rate.

Sources: sensitivity to the learning rate as Wortsman 2023 (Small-scale proxies for large-scale Transformer training
instabilities), section 2.2: the mean, over the rates that were swept, of the final loss, capped at the loss at
initialisation, minus the loss at the best rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ablate.analysis.lattice import cells_of, changes, is_number
from ablate.analysis.pairing import Floats, contrast
from ablate.analysis.tuned import edge
from ablate.analysis.verdict import Objective
from ablate.records.spelling import short, spelled

RATE = "training.optimizer.lr"
"""The option that holds the peak learning rate."""
RUNS = ("architecture", "source", "arm", "rate", "seed", "end", "value", "initial_loss")
"""The columns of :func:`sweeps`."""
COLUMNS = (
    "architecture", "source", "rates", "low_rate", "high_rate", "best", "best_value", "edge", "good_low", "good_high",
    "good_rates", "sensitivity", "low95", "high95", "seeds", "planned", "capped", "max_stable_lr", "runs", "diverged",
    "pruned", "missing", "left_out",
)  # fmt: skip
"""The columns of :func:`sensitivity`."""


def sets_rate(factor: Mapping[str, Any]) -> bool:
    """Whether a factor of the plan is the learning rate and nothing else."""
    paths = {each["path"] for sets in factor.get("sets") or () for each in sets}
    return paths == {RATE} and all(map(is_number, factor["levels"]))


def sweeps(plan: Mapping[str, Any], trials: pd.DataFrame, tuning: pd.DataFrame) -> pd.DataFrame:
    """One row for each run of a learning-rate sweep: of a factor that is the learning rate, or of tuning.

    Tuning counts where the learning rate alone was tuned, by grid or at random: TPE looks most where it is best. An
    architecture with a single rate has no sweep.

    Args:
        plan: the study's plan.
        trials: the trials that arms are judged by.
        tuning: the tuning trials, as :func:`ablate.records.tuning.tuning` gives them.

    Columns:
        architecture (text): the arm's levels beside the rate in which it differs from the baseline, as
            ``placement=post``; ``baseline`` where there are none. source (text): ``factor`` or ``tuning``.
        arm (text): identity. rate (float). seed (int). end (text): as in a frame of trials.
        value (float): the objective; NaN unless the run completed. initial_loss (float): nats.
    """
    found = [*_of_factor(plan, trials), *_of_tuning(plan, tuning)]
    runs = pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(RUNS))
    runs = runs.rename(columns={plan["objective"]["metric"]: "value"})[list(RUNS)]
    runs = runs.drop_duplicates(["architecture", "source", "rate", "seed"])
    many = runs.groupby(["architecture", "source"])["rate"].transform("nunique") > 1
    return runs[many].reset_index(drop=True)


def _of_factor(plan: Mapping[str, Any], trials: pd.DataFrame) -> list[pd.DataFrame]:
    rate = next((factor["name"] for factor in plan["factors"] if sets_rate(factor)), None)
    if rate is None:
        return []
    base = next(arm["levels"] for arm in plan["arms"] if arm["id"] == plan["baseline"])
    trials_of = dict(list(trials.groupby("arm")))
    found = []
    for arm in plan["arms"]:
        rows = trials_of.get(arm["id"], trials.iloc[:0])
        for levels in cells_of(arm):
            if rate not in levels or levels[rate] <= 0:
                continue
            name = changes(levels, base, rate) or "baseline"
            found.append(rows.assign(architecture=name, source="factor", rate=float(levels[rate])))
    return found


def _of_tuning(plan: Mapping[str, Any], tuning: pd.DataFrame) -> list[pd.DataFrame]:
    search = plan.get("tuning") or {}
    if not sweeps_rate(search):
        return []
    rates = tuning[f"tuned.{RATE}"]
    rows = tuning[[is_number(value) and value > 0 for value in rates]]
    return [rows.assign(architecture=rows["name"], source="tuning", rate=rows[f"tuned.{RATE}"].astype(float))]


def sweeps_rate(search: Mapping[str, Any]) -> bool:
    """Whether what a plan says of tuning is a sweep over the learning rate alone."""
    return list(search.get("params", ())) == [RATE] and search["method"] != "tpe"


def sensitivity(plan: Mapping[str, Any], runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each architecture whose learning rate was swept: what other rates cost, and which are stable.

    Where the objective is a loss in nats whose value at initialisation is known, it is capped there, and a diverged
    run counts as that value. With any other objective nothing is capped: a rate at which a run diverged then has no
    mean, and an architecture with one no sensitivity.

    The best rate is chosen on the seeds that it is then judged by. So the sensitivity and its interval hold given that
    choice: they say nothing of which rate other seeds would choose, and the best value is flattered by it.

    Args:
        plan: the study's plan.
        runs: the runs of its sweeps, as :func:`sweeps` gives them.

    Columns:
        architecture, source (text): as in :func:`sweeps`.
        rates (int), low_rate, high_rate (float): how many rates some seed ended at or tuning gave up, and their range.
        best (float): the rate whose mean over ``seeds`` is best; the smallest of equals; NaN without such a seed.
            best_value (float): that mean.
        edge (text): where among the rates the best one is, if it is at their edge; else "".
        good_low, good_high (float), good_rates (int): the rates next to each other around the best whose mean over
            ``seeds`` is within the smallest effect that matters of it.
        sensitivity (float): mean over the rates, each counting once, of the capped objective minus that at ``best``,
            turned so that more is worse; the objective's unit. A mean over ``seeds``; NaN where a rate has no mean.
        low95, high95 (float): Student's t interval over the seeds, for this architecture alone; NaN for one seed.
        seeds (int): those with a value, or a divergence, at every rate that was neither left out nor given up, which
            alone count for all of the above, so that rates are compared on the same seeds. planned (int): seeds of the
            sweep.
        capped (bool): whether the cap is known.
        max_stable_lr (float): the largest rate at which a run completed and none diverged; NaN without one. Whether
            smaller rates were stable it does not ask.
        runs (int), diverged (int), pruned (int): given up early by tuning. missing (int): failed or not ended.
        left_out (text): the rates that no seed ended at, so that nothing is known of them.
    """
    objective = Objective.of(plan)
    rows = [
        _row(plan, objective, str(name), str(source), part)
        for (name, source), part in runs.groupby(["architecture", "source"], sort=False)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(plan: Mapping[str, Any], objective: Objective, name: str, source: str, runs: pd.DataFrame) -> dict[str, Any]:
    curve = Curve.of(objective, runs)
    rates, best = curve.rates, curve.best
    good = [] if best is None else [rates[place] for place in curve.good(best, objective.smallest_effect)]
    # A rate without a mean, since a run diverged there or it was given up, leaves no mean over the rates.
    told = best is not None and bool(np.isfinite(curve.means).all())
    c = contrast(curve.costs.mean(axis=0) - curve.costs[best] if told else [], 1)
    search = plan["tuning"] if source == "tuning" else {}
    ends = {end: int((runs["end"] == end).sum()) for end in ("complete", "diverged", "pruned")}
    stable = set(runs.loc[runs["end"] == "complete", "rate"]) - set(runs.loc[runs["end"] == "diverged", "rate"])
    left_out = sorted(set(runs["rate"]) - set(rates))
    return {
        "architecture": name, "source": source, "rates": len(rates), "low_rate": min(rates, default=math.nan),
        "high_rate": max(rates, default=math.nan),
        "best": math.nan if best is None else rates[best],
        "best_value": math.nan if best is None else objective.worse(float(curve.means[best])),
        "edge": "" if best is None else edge(rates[best], rates, RATE, search),
        "good_low": min(good, default=math.nan), "good_high": max(good, default=math.nan), "good_rates": len(good),
        "sensitivity": c.effect, "low95": c.low95, "high95": c.high95, "seeds": curve.costs.shape[1],
        "planned": runs["seed"].nunique(), "capped": curve.capped, "max_stable_lr": max(stable, default=math.nan),
        "runs": len(runs), "diverged": ends["diverged"], "pruned": ends["pruned"],
        "missing": len(runs) - sum(ends.values()), "left_out": ", ".join(map(short, left_out)),
    }  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """One architecture's objective over the learning rate, turned so that more is worse."""

    rates: tuple[float, ...]
    """Ascending: those that some seed ended at, or that tuning gave up."""
    costs: Floats
    """By rate (rows) and seed, capped where a cap is known, of the seeds that ended at every rate that was not given
    up in all of them; NaN there, and where a run diverged and nothing says what that counts as."""
    means: Floats
    """By rate, over these seeds; NaN where one of them is."""
    capped: bool
    """Whether the cap is known for every seed."""

    @classmethod
    def of(cls, objective: Objective, runs: pd.DataFrame) -> Curve:
        """The curve through the runs of one architecture."""
        is_loss = objective.goal == "min" and objective.unit.split("/")[0] == "nats"
        at = runs.pivot(index="rate", columns="seed", values=["end", "value"])
        ends, values = at["end"].to_numpy(), at["value"].to_numpy(dtype=float)
        starts = runs.groupby("seed")["initial_loss"].first().to_numpy()  # the same for all rates of a seed
        cap = np.broadcast_to(starts if is_loss else math.nan, ends.shape)
        ended = np.isin(ends, ("complete", "diverged"))
        # fmin: a value without a cap stays as it is, and one that diverged is its cap.
        costs = np.where(ended, np.fmin(objective.worse(1.0) * values, cap), math.nan)
        # A seed that lacks a rate would set its mean against those of other seeds.
        somewhere = ended.any(axis=1)
        known = somewhere | (ends == "pruned").any(axis=1)
        costs = costs[np.ix_(known, ended[somewhere].all(axis=0) & somewhere.any())]
        means = costs.mean(axis=1) if costs.shape[1] else np.full(len(costs), math.nan)
        rates = tuple(float(rate) for rate in at.index[known])
        return cls(rates, costs, means, bool(np.isfinite(cap).all()))

    @property
    def best(self) -> int | None:
        """Which rate has the best mean; None where none has one."""
        return int(np.nanargmin(self.means)) if np.isfinite(self.means).any() else None

    def good(self, best: int, smallest: float) -> range:
        """Which rates are as good as the best one, up to the first on each side that is not."""
        with_gaps = np.nan_to_num(self.means, nan=math.inf)
        bad = np.flatnonzero(with_gaps > self.means[best] + smallest * (1 + 1e-9))
        below, above = bad[bad < best], bad[bad > best]
        return range(int(below.max(initial=-1)) + 1, int(above.min(initial=len(self.rates))))


def sweep_caveats(plan: Mapping[str, Any], found: pd.DataFrame) -> list[str]:
    """Where a better learning rate may lie beyond those of a factor; tuning has its own caveats."""
    base = next(arm["levels"] for arm in plan["arms"] if arm["id"] == plan["baseline"])
    rates = {factor["name"] for factor in plan["factors"] if sets_rate(factor)}
    named = ", ".join(f"{name}={spelled(base[name])}" for name in base if name not in rates)
    own = {"baseline": named or "the model"}
    at_edge = found[(found["source"] == "factor") & (found["edge"] != "") & (found["rates"] > 2)]
    return [
        f"The best learning rate of {own.get(row['architecture'], row['architecture'])}, {short(row['best'])}, is "
        f"{row['edge']}: a better one may lie beyond it."
        for row in at_edge.to_dict("records")
    ]
