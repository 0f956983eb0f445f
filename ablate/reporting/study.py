"""What every part of the report needs of a study: its arms as they are drawn, and its frames, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from ablate.analysis.ablation import DONE, all_at_once
from ablate.analysis.comparability import incomparable, unit_of
from ablate.analysis.contrasts import DESIGNS
from ablate.analysis.lattice import Lattice, spelled_level
from ablate.analysis.prose import decimals
from ablate.analysis.results import Results
from ablate.records.tasks import task_baselines, task_factor
from ablate.reporting import series
from ablate.reporting.numbers import plain
from ablate.reporting.palette import Look, look
from ablate.reporting.tables import Table

MOST_ARMS = 24
"""A figure that draws every arm draws no more than these."""


@dataclass(frozen=True)
class Arm:
    """One arm as the report shows it."""

    id: str
    name: str
    """As the plan calls it, safe to show."""
    label: str
    """Short, for figures: the levels in which it differs from the baseline, or that all of them do."""
    levels: Mapping[str, Any]
    look: Look
    baseline: bool
    parameters: int
    tokens: int
    """Tokens a step."""
    steps: int
    """Training steps that are planned for it."""


class Study:
    """A study's results with what the figures and tables share."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.plan: Mapping[str, Any] = results.plan
        objective = self.plan["objective"]
        self.metric: str = objective["metric"]
        self.smallest: float = float(objective["smallest_effect"])
        self.places = decimals(self.smallest)
        self.worse = 1 if objective["goal"] == "min" else -1
        """Sign of an effect that is for the worse."""
        self._budget = int(self.plan["budget"]["steps"])
        self.left_out: set[str] = set()
        """What the page does without, since it would be too large with it."""
        self.asked: set[str] = set()
        """What was asked of :meth:`leaves_out`; what a section did not ask for is no part of it."""
        self.tables: dict[str, Table] = {}
        """The tables that the page has, by their ids."""

    def leaves_out(self, what: str) -> bool:
        """Whether the page does without one of :data:`ablate.reporting.writing.REDUCTIONS`."""
        self.asked.add(what)
        return what in self.left_out

    @property
    def factorial(self) -> bool:
        """Whether the arms are combinations of the factors' levels, and verdicts are on levels."""
        return self.plan["design"] in DESIGNS

    @property
    def fraction(self) -> bool:
        """Whether they are a fraction of all combinations, so that there are main effects alone."""
        return bool(self.plan["design"] == "fractional")

    @cached_property
    def tasks(self) -> str | None:
        """The factor whose levels are tasks; None where there is none."""
        return task_factor(self.plan)

    @property
    def apart_in_units(self) -> bool:
        """Whether the objective's unit is not the same on all tasks, so that it is averaged over none of them."""
        return self.tasks is not None and len({unit_of(self.plan, arm.id) for arm in self.arms}) > 1

    @property
    def steps(self) -> int:
        """Training steps of the arm that trains the longest."""
        return max(arm.steps for arm in self.arms)

    @property
    def unit(self) -> str:
        """The objective's unit; "" where it has none."""
        return plain(self.plan["units"].get(self.metric, ""))

    @property
    def metric_and_unit(self) -> str:
        """The objective for an axis, as ``val/loss (nats)``."""
        return f"{plain(self.metric)} ({self.unit})" if self.unit else plain(self.metric)

    @cached_property
    def arms(self) -> Sequence[Arm]:
        """Every arm in the plan's order, the baseline first."""
        base = self.plan["arms"][0]
        return [self._arm(index, arm, base["levels"]) for index, arm in enumerate(self.plan["arms"])]

    def _arm(self, index: int, arm: Mapping[str, Any], base: Mapping[str, Any]) -> Arm:
        order = [factor["name"] for factor in self.plan["factors"] if factor["name"] in arm["levels"]]
        changed = [key for key in order if spelled_level(arm["levels"], key) != spelled_level(base, key)]
        named = plain(", ".join(f"{key}={spelled_level(arm['levels'], key)}" for key in changed))
        short = named if self.factorial and index > 0 else ""
        if arm["id"] == all_at_once(self.plan, self.lattice):
            short = self.all_changed
        return Arm(
            id=arm["id"],
            name=plain(arm["name"]),
            label=short or plain(arm["name"]),
            levels=arm["levels"],
            look=look(index),
            baseline=arm["id"] == self.plan["baseline"],
            parameters=int(arm["parameters"]["total"]),
            tokens=int(arm["tokens"]),
            steps=int(arm.get("steps") or self._budget),
        )

    @property
    def all_changed(self) -> str:
        """What the arm is called in which all parts of an ablation path are changed; "" in other designs."""
        return f"all {done}" if (done := DONE.get(self.plan["design"])) else ""

    @cached_property
    def lattice(self) -> Lattice:
        """The arms by the levels of their factors."""
        return Lattice(self.plan)

    @cached_property
    def by_id(self) -> Mapping[str, Arm]:
        """Each arm by its identity."""
        return {arm.id: arm for arm in self.arms}

    @cached_property
    def planned(self) -> Mapping[str, Mapping[str, Any]]:
        """Each arm as the plan has it, by its identity."""
        return {arm["id"]: arm for arm in self.plan["arms"]}

    @property
    def baseline(self) -> Arm:
        """The arm that all others are compared with."""
        return self.by_id[self.plan["baseline"]]

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row a planned trial."""
        return self.results.trials()

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Every value of every curve."""
        return self.results.curves()

    @cached_property
    def probes(self) -> pd.DataFrame:
        """Every probe's reading."""
        return self.results.probes()

    @cached_property
    def block_gradients(self) -> pd.DataFrame:
        """:func:`ablate.reporting.series.block_gradients` of the probes."""
        return series.block_gradients(self.probes)

    @cached_property
    def first_to_last(self) -> pd.DataFrame:
        """:func:`ablate.reporting.series.first_to_last` of the probes."""
        return series.first_to_last(self.probes)

    @cached_property
    def effects(self) -> pd.DataFrame:
        """One row an arm, by its identity."""
        return self.results.effects().set_index("arm", drop=False)

    @cached_property
    def values(self) -> pd.DataFrame:
        """The objective by seed (rows) and arm (columns, all of the plan's); NaN where a trial has no value."""
        return self.values_of(self.metric)

    def values_of(self, metric: str) -> pd.DataFrame:
        """A metric's last values as those of the objective are; all NaN where no trial has it."""
        done = self.trials[self.trials["end"] == "complete"].reindex(columns=["seed", "arm", metric])
        wide = done.pivot(index="seed", columns="arm", values=metric)
        return wide.reindex(index=sorted(self.plan["seeds"]), columns=[arm.id for arm in self.arms])

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Each arm's value minus its baseline's of the same seed; NaN for arms that cannot be compared with it."""
        found = self.values - self.values[[self.reference(arm).id for arm in self.arms]].to_numpy()
        return found.mask(pd.DataFrame(False, found.index, found.columns) | [self.apart(arm) for arm in self.arms])

    @cached_property
    def seconds(self) -> Mapping[str, float]:
        """The seconds that each arm's trials were in training, all together; nothing for arms without a record."""
        known = self.trials.dropna(subset=["seconds"])
        return {str(arm): float(total) for arm, total in known.groupby("arm")["seconds"].sum().items()}

    def apart(self, arm: Arm) -> bool:
        """Whether an arm has another task than what it is compared with, or its objective another unit."""
        return bool(incomparable(self.plan, [self.reference(arm).id, arm.id], self.metric))

    def reference(self, arm: Arm) -> Arm:
        """What an arm is compared with: the baseline, or the arm that stands for it on the arm's own task."""
        return self.by_id[self._references.get(arm.id, self.baseline.id)]

    @cached_property
    def _references(self) -> Mapping[str, str]:
        return task_baselines(self.plan)

    def diverged(self, arm: Arm) -> int:
        """How many of an arm's seeds diverged."""
        return int(self._diverged.get(arm.id, 0))

    @cached_property
    def _diverged(self) -> pd.Series[int]:
        return self.trials.loc[self.trials["end"] == "diverged", "arm"].value_counts()

    def curve(self, metric: str) -> pd.DataFrame:
        """The rows of one curve."""
        return series.plain_arms(self.curves[self.curves["metric"] == metric])

    def probe(self, metric: str) -> pd.DataFrame:
        """The rows of one probe's metric."""
        return self.probes[self.probes["metric"] == metric]

    def chosen(self, frame: pd.DataFrame | None = None) -> tuple[list[Arm], str]:
        """The arms that a figure of many shows: all of a frame's, or the baseline and those of the largest effects.

        Returns:
            The arms in the plan's order, and a sentence that says what was left out, or "".
        """
        arms = self.arms if frame is None else self.measured(frame)
        if len(arms) <= MOST_ARMS:
            return list(arms), ""
        sizes = self.effects["effect"].abs().fillna(float("inf"))
        largest = sorted((arm for arm in arms if not arm.baseline), key=lambda arm: -sizes[arm.id])[: MOST_ARMS - 1]
        kept = {arm.id for arm in largest} | {self.baseline.id}
        return [arm for arm in arms if arm.id in kept], (
            f"Shown are the baseline and the {MOST_ARMS - 1} arms of the largest effects, of {len(arms)} arms."
        )

    def measured(self, frame: pd.DataFrame) -> list[Arm]:
        """The arms that a frame has rows of, in the plan's order."""
        there = set(frame["arm"].unique())
        return [arm for arm in self.arms if arm.id in there]
