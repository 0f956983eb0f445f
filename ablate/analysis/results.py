"""What a study found: the value that notebooks and the report ask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ablate.analysis import tasks
from ablate.analysis.ablation import ablation
from ablate.analysis.anova import anova
from ablate.analysis.caveats import caveats
from ablate.analysis.code import other_code
from ablate.analysis.contrasts import DESIGNS
from ablate.analysis.course import courses
from ablate.analysis.documented import with_columns
from ablate.analysis.effects import effects, evidence
from ablate.analysis.factorial import Factorial
from ablate.analysis.noise import noise_caveats, noise_floor
from ablate.analysis.notebook import answer
from ablate.analysis.predictions import predictions
from ablate.analysis.sensitivity import sensitivity, sweep_caveats, sweeps
from ablate.analysis.shapley import shapley
from ablate.analysis.trends import Trend, fitted, trends
from ablate.analysis.tuned import flip_caveats, tuning_caveats
from ablate.analysis.verdict import Evidence, Objective, Verdict, judge, worst_first
from ablate.errors import InputError
from ablate.records import frames
from ablate.records.tasks import task_baselines
from ablate.records.tuning import at_baseline, tuning


@dataclass(frozen=True)
class Results:
    """The records of one study's folder, read once, and what follows from them.

    The trials are those that had ended when this value was made; a study that is still running needs a new one to
    see more. Every frame is the caller's own: changing it changes nothing here.

    Raises:
        InputError: the folder holds no study (S401, S402), a record cannot be read (S403), or no trial has ended yet
            (S404).
    """

    folder: Path
    """The study's folder, as ``runs/quickstart``."""

    def __post_init__(self) -> None:
        """Read the trials, and refuse a study that has nothing to say yet."""
        object.__setattr__(self, "folder", Path(self.folder))
        if not self._trials["end"].isin(("complete", "diverged")).any():
            gave_up = self.counts()["failed"] + self.counts()["timed_out"]
            run = self.plan.get("command") or "ablate run"
            raise InputError.one(
                "S404",
                f"no trial of `{self.plan['name']}` has ended yet" + (f"; {gave_up} failed" if gave_up else ""),
                file=str(self.folder),
                help="see what failed with `ablate status`" if gave_up else f"run `{run}` first",
            )

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The resolved plan, as plan.json holds it."""
        return frames.read_plan(self.folder)

    @property
    def objective(self) -> Objective:
        """What effects are measured in: metric, unit, goal and the smallest effect that matters."""
        return Objective.of(self.plan)

    @property
    def complete(self) -> bool:
        """Whether every planned trial has ended, in whatever way; a report of others is interim."""
        tally = self.counts()
        return tally["running"] + tally["waiting"] == 0

    def trials(self) -> pd.DataFrame:
        """One row for each planned trial."""
        return self._trials.copy(deep=False)

    def curves(self) -> pd.DataFrame:
        """Every curve in long form."""
        return self._curves.copy(deep=False)

    def probes(self) -> pd.DataFrame:
        """Every probe reading in long form."""
        return self._probes.copy(deep=False)

    def counts(self) -> dict[str, int]:
        """How many planned trials are in each of the eight states, and ``planned``, which is their sum."""
        return frames.count(self._trials)

    def tuning(self) -> pd.DataFrame:
        """One row for each tuning trial. None of them is judged."""
        return self._tuning.copy(deep=False)

    def at_baseline(self) -> pd.DataFrame:
        """Each arm's effect where all arms have the values that are best for the baseline.

        Without rows unless the experiment asks for it by ``tune: {at_baseline: true}``.
        """
        return self._at_baseline.copy(deep=False)

    def learning_rates(self) -> pd.DataFrame:
        """One row for each run of a learning-rate sweep."""
        return self._rates.copy(deep=False)

    def sensitivity(self) -> pd.DataFrame:
        """What other learning rates cost each architecture, and which of them are stable.

        No rows where none was swept.
        """
        return sensitivity(self.plan, self._rates)

    def trends(self) -> pd.DataFrame:
        """The slope of the objective over each numeric factor."""
        return trends(self._trends)

    def fitted(self) -> list[Trend]:
        """What :meth:`trends` fits its lines to, factor by factor."""
        return list(self._trends)

    def noise_floor(self) -> pd.DataFrame:
        """By how much the baseline differs from itself, run once more with one seed.

        No rows unless the experiment says `noise_floor: true`. A repeat is in no other frame and in no count.
        """
        return noise_floor(self.folder, self.plan, self._trials, self._curves)

    def courses(self) -> pd.DataFrame:
        """How each sealed trial's training went."""
        return self._courses.copy(deep=False)

    def effects(self, metric: str | None = None) -> pd.DataFrame:
        """Each arm against the baseline, paired by seed.

        Args:
            metric: default the objective; a secondary metric gets intervals and no verdict.

        Raises:
            InputError: the task has no such metric (S405).
        """
        if metric is not None and metric not in self.plan["units"]:
            known = ", ".join(f"`{name}`" for name in self.plan["units"])
            raise InputError.one("S405", f"`{metric}` is no metric of this study", help=f"there are {known}")
        if metric in (None, self.objective.metric):
            return self._effects.copy(deep=False)
        if metric not in self._secondary:
            self._secondary[metric] = effects(self.plan, self._trials, self._stuck, metric)
        return self._secondary[metric].copy(deep=False)

    def main_effects(self) -> pd.DataFrame:
        """Each factor's effect over all other factors (a factorial design)."""
        return self._factorial.main_effects()

    def interactions(self) -> pd.DataFrame:
        """How two factors' effects depend on each other (a factorial design)."""
        return self._factorial.interactions()

    def simple_effects(self) -> pd.DataFrame:
        """Each factor's effect at each level of another (a factorial design)."""
        return self._factorial.simple_effects()

    def ablation(self) -> pd.DataFrame:
        """Whether parts add up, in ``leave_one_out`` and ``add_one``."""
        return ablation(self.plan, self._trials)

    def shapley(self) -> pd.DataFrame:
        """Each factor's share of changing all of them (a full design)."""
        return shapley(self.plan, self._trials)

    def anova(self) -> pd.DataFrame:
        """Analysis of variance with the seed as block (a factorial design)."""
        return anova(self.plan, self._trials)

    def task_effects(self) -> pd.DataFrame:
        """Each effect at each task, where a factor is one over tasks."""
        return tasks.by_task(self.plan, self._effects, self._factorial.simple_effects())

    def scores(self) -> pd.DataFrame:
        """Each trial's score between its task's floor and ceiling."""
        return tasks.scores(self.plan, self._trials)

    def tasks(self) -> pd.DataFrame:
        """Each architecture's interquartile mean over ten tasks or more."""
        return tasks.summary(self.plan, self.scores())

    def profiles(self) -> pd.DataFrame:
        """Each architecture's performance profile over ten tasks or more."""
        return tasks.profiles(self.plan, self.scores())

    def verdicts(self) -> list[Verdict]:
        """The verdicts, worst first: on arms, or on main and judged simple effects where the design is factorial."""
        found = [judge(e, self.objective, kind=kind, arm=arm) for kind, arm, e in self.evidence()]
        return worst_first(found, self.objective)

    def evidence(self) -> list[tuple[str, str, Evidence]]:
        """What each verdict depends on: its kind, its arm's identity ("" in a factorial design), and the evidence."""
        if self.plan["design"] in DESIGNS:
            return [(kind, "", found) for kind, found in self._factorial.evidence()]
        own = set(task_baselines(self.plan).values())
        found = evidence(self.plan, self._trials, self._stuck)
        return [("arm", id, each) for id, each in found.items() if id not in own]

    def stuck(self) -> frozenset[str]:
        """The trials that ended stuck at the unigram entropy of the training data."""
        return self._stuck

    def predictions(self) -> pd.DataFrame:
        """What was predicted before the run, and whether it held; no rows where nothing was predicted."""
        return predictions(self.plan, self._effects, self._factorial.main_effects(), complete=self.complete)

    def caveats(self) -> list[str]:
        """What to know before believing the verdicts, as sentences."""
        return list(self._caveats)

    def __repr__(self) -> str:
        tally, planned = self.counts(), len(self.plan["trials"])
        ended = planned - tally["running"] - tally["waiting"]
        return f"Results({self.plan['name']!r}: {len(self.plan['arms'])} arms, {ended} of {planned} trials ended)"

    def _repr_html_(self) -> str:
        return answer(self.plan, self.counts(), self.verdicts(), self.caveats())

    # --- read once ------------------------------------------------------------------------------------------------

    @cached_property
    def _trials(self) -> pd.DataFrame:
        return frames.planned(self.folder, self.plan)

    @cached_property
    def _curves(self) -> pd.DataFrame:
        return frames.curves(self.folder, frame=self._trials)

    @cached_property
    def _probes(self) -> pd.DataFrame:
        return frames.probes(self.folder, frame=self._trials)

    @cached_property
    def _tuning(self) -> pd.DataFrame:
        return tuning(self.folder, self.plan)

    @cached_property
    def _rates(self) -> pd.DataFrame:
        return sweeps(self.plan, self._trials, self._tuning)

    @cached_property
    def _trends(self) -> list[Trend]:
        return fitted(self.plan, self._trials)

    @cached_property
    def _at_baseline(self) -> pd.DataFrame:
        frame = at_baseline(self.folder, self.plan)
        arms = [arm for arm in self.plan["arms"] if (frame["arm"] == arm["id"]).any()]
        return effects({**self.plan, "arms": arms}, frame, frozenset()) if arms else self._effects.iloc[:0]

    @cached_property
    def _courses(self) -> pd.DataFrame:
        return courses(self._trials, self._curves)

    @cached_property
    def _stuck(self) -> frozenset[str]:
        return frozenset(self._courses.loc[self._courses["course"] == "stuck", "trial"])

    @cached_property
    def _effects(self) -> pd.DataFrame:
        return effects(self.plan, self._trials, self._stuck)

    @cached_property
    def _caveats(self) -> list[str]:
        found = caveats(
            self.plan,
            self._trials,
            curves=self._curves,
            effects=self._effects,
            courses=self._courses,
            factorial=self._factorial,
        )
        return [
            *found,
            *noise_caveats(self.plan, self.noise_floor()),
            *sweep_caveats(self.plan, self.sensitivity()),
            *tuning_caveats(self.plan, self._tuning),
            *flip_caveats(self.objective, self._effects, self._at_baseline),
            *other_code(self.plan, self.folder),
        ]

    @cached_property
    def _secondary(self) -> dict[str | None, pd.DataFrame]:
        return {}

    @cached_property
    def _factorial(self) -> Factorial:
        return Factorial(self.plan, self._trials, self._stuck)


with_columns(
    [
        (Results.trials, frames.trials),
        (Results.curves, frames.curves),
        (Results.probes, frames.probes),
        (Results.tuning, tuning),
        (Results.at_baseline, effects),
        (Results.learning_rates, sweeps),
        (Results.sensitivity, sensitivity),
        (Results.trends, trends),
        (Results.noise_floor, noise_floor),
        (Results.courses, courses),
        (Results.effects, effects),
        (Results.main_effects, Factorial.main_effects),
        (Results.interactions, Factorial.interactions),
        (Results.simple_effects, Factorial.simple_effects),
        (Results.ablation, ablation),
        (Results.shapley, shapley),
        (Results.anova, anova),
        (Results.task_effects, tasks.by_task),
        (Results.scores, tasks.scores),
        (Results.tasks, tasks.summary),
        (Results.profiles, tasks.profiles),
        (Results.predictions, predictions),
    ]
)
