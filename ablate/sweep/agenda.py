"""The agenda of a sweep: which trials there are, and which further ones open as trials end.

Without tuning all trials are known from the start. With it, the trials that an arm is reported by are known once its
own search is through; until then they have a provisional identity in the plan and no folder.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ablate.analysis.prose import number
from ablate.records.beside import beside
from ablate.sweep.bookkeeping.index import Record
from ablate.sweep.survey import Survey
from ablate.sweep.tuning.sampling import Tried, Values, combinations
from ablate.sweep.tuning.search import Known, Pruned, Run, Search, Standing, tuned_arm, tuned_trial

WIDENINGS = 3
"""How often a grid is widened at most."""


class Agenda:
    """What a plan asks for, going by what its trials came to."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        """Nothing is known of any trial yet."""
        self._made = plan
        self._objective = plan["objective"]
        self._tuning: Mapping[str, Any] = plan.get("tuning") or {}
        self._known = Known()
        self._opened: set[tuple[str, int | None]] = set()
        self._repeats: Sequence[Mapping[str, Any]] = plan.get("repeats", ())
        self._unopened: Sequence[Mapping[str, Any]] = [*plan["trials"], *self._repeats]
        """Without tuning: all trials, until they are asked for."""
        self._searches = {arm["id"]: Search(arm, self._tuning) for arm in plan["arms"] if arm.get("tuning")}
        self._standings: dict[str, Standing] = {}
        self._home: dict[str, str] = {}
        """The arm whose search a tuning trial belongs to."""
        self._tuned: dict[str, tuple[Values, dict[str, Any]]] = {}
        """Reported trials with the values that were chosen for them, by their identity in the plan."""
        self._widened = 0
        self._stale = set(self._searches)
        """Arms of which something new is known."""

    @classmethod
    def after(cls, plan: Mapping[str, Any], found: Survey) -> Agenda:
        """The agenda of a plan, with all that the study's folders say."""
        agenda = cls(plan)
        for record in found.records.values():
            agenda.sealed(record)
        for trial, reached in found.rungs.items():
            for step, metrics in reached.items():
                if (metric := plan["objective"]["metric"]) in metrics:
                    agenda.reached(trial, step, metrics[metric])
        for trial in found.pruned:
            agenda.gave_up(trial)
        agenda._look_up(found)
        return agenda

    def _look_up(self, found: Survey) -> None:
        """See what tuning trials had at rungs that were none yet when they were trained: they have evaluations."""
        steps = {step for search in self._searches.values() for step in search.rungs}
        for trial, record in found.records.items():
            tunes = record.get("tuned") and record["seed"] in self._tuning.get("seeds", ())
            if tunes and any(self._known.passed(trial, step) for step in steps):
                values = found.evaluated(trial, self._objective["metric"])
                for step in steps & values.keys():
                    self.reached(trial, step, values[step])

    # --- what is known ---

    def sealed(self, record: Record) -> None:
        """A trial has its result."""
        metric = self._objective["metric"]
        final = record["metrics"].get(metric) if record["end"] == "complete" else None
        self._known.finals[record["trial"]] = self._cost(final)
        self._known.steps[record["trial"]] = record.get("steps") or 0
        self._known.rungs.setdefault(record["trial"], {}).update(
            {step: self._cost(values[metric]) for step, values in record.get("rungs", ()) if metric in values}
        )
        self._note(record["trial"])

    def reached(self, trial: str, step: int, value: float | None) -> None:
        """A tuning trial has come to a rung, with this value of the objective; None where it is not finite."""
        self._known.rungs.setdefault(trial, {})[step] = self._cost(value)
        self._known.pruned.discard(trial)  # it had been, and has run since
        self._note(trial)

    def gave_up(self, trial: str) -> None:
        """A tuning trial is marked as given up."""
        self._known.pruned.add(trial)
        self._note(trial)

    # --- what follows from it ---

    def moves(self) -> tuple[list[Run], list[Pruned]]:
        """Trials that were not opened before, in the order in which they start, and trials to give up."""
        if not self._searches:
            trials, self._unopened = self._unopened, ()
            return [Run(trial) for trial in trials], []
        self._search()
        standings = self._standings.values()
        runs = [Run(trial) for standing in standings for trial in standing.trials if trial["id"] in self._known.finals]
        runs += [run for standing in standings for run in standing.runs]
        runs += [Run(trial) for trial in self._decided()]
        opened = []
        for run in runs:
            key = (run.trial["id"], run.pause_at)
            if key not in self._opened:
                self._opened.add(key)
                opened.append(run)
        return opened, [pruned for standing in standings for pruned in standing.prunes]

    @property
    def given_up(self) -> list[str]:
        """The tuning trials that are marked as given up."""
        self._search()
        return [trial for standing in self._standings.values() for trial in standing.given_up]

    @property
    def unjudged(self) -> list[str]:
        """How many tuning trials cannot be judged at which rung, in words."""
        self._search()
        counts = Counter(
            step
            for arm, search in self._searches.items()
            for trial in self._standings[arm].trials
            for step in search.rungs
            if self._known.passed(trial["id"], step)
        )
        words = "cannot be given up at step {:,}: trained before that was a rung, with no evaluation there"
        return [f"{number(count, 'tuning trial')} {words.format(step)}" for step, count in sorted(counts.items())]

    @property
    def total(self) -> int:
        """How many trials there are, those included that are not known yet."""
        if not self._searches:
            return len(self._made["trials"]) + len(self._repeats)
        plan = self.plan
        known = [*plan["trials"], *beside(plan)]
        return len({trial["id"] for trial in known}) + sum(map(self._unknown, self._searches))

    @property
    def later(self) -> dict[str, int]:
        """How many trials of each arm that is tuned are still to open, as far as can be said."""
        chosen, undecided = self.chosen, [*self._made["trials"], *self._repeats]
        return {
            arm: self._unknown(arm) + (0 if arm in chosen else sum(trial["arm"] == arm for trial in undecided))
            for arm in self._searches
        }

    @property
    def chosen(self) -> dict[str, Values]:
        """The tuned values of each arm whose search is through."""
        self._search()
        if self._tuning.get("widen") and not self._all_through():
            return {}
        standings = self._standings.items()
        return {arm: standing.best.values for arm, standing in standings if standing.best is not None}

    def best(self, arm: str) -> Tried:
        """What an arm that has chosen its values has chosen, and what came of it in tuning."""
        found = self._standings[arm].best
        assert found is not None
        return found

    def tried(self, arm: str) -> Sequence[Tried]:
        """Every combination that an arm whose search is through has tried, and what came of it."""
        return self._standings[arm].tried or ()

    def params(self, arm: str) -> Mapping[str, Mapping[str, Any]]:
        """What an arm is tuned in, by path."""
        return self._searches[arm].params

    def value(self, cost: float) -> float | None:
        """The objective's value that is this cost; None of what diverged."""
        return None if math.isinf(cost) else cost if self._objective["goal"] == "min" else -cost

    @property
    def plan(self) -> Mapping[str, Any]:
        """The plan, as far as it is decided: with the trials of each search, and the values that were chosen."""
        if not self._searches:
            return self._made
        chosen = self.chosen
        tuning = {
            **self._tuning,
            "runs": [trial for standing in self._standings.values() for trial in standing.trials],
            "at_baseline": self._at_baseline(),
            "widened": self._widened,
        }
        arms = [tuned_arm(arm, chosen[arm["id"]]) if arm["id"] in chosen else arm for arm in self._made["arms"]]
        repeats = {"repeats": self._decide(self._repeats)} if self._repeats else {}
        return {**self._made, "arms": arms, "trials": self._reported(), "tuning": tuning, **repeats}

    # --- inside -------------------------------------------------------------------------------------------------

    def _cost(self, value: float | None) -> float:
        if value is None or not math.isfinite(value):
            return math.inf
        return value if self._objective["goal"] == "min" else -value

    def _note(self, trial: str) -> None:
        if (arm := self._home.get(trial)) is not None:
            self._stale.add(arm)

    def _search(self) -> None:
        """Bring the searches up to what is known, and widen them where the best value lies at an edge."""
        while self._stale:
            for arm in sorted(self._stale, key=list(self._searches).index):
                self._standings[arm] = standing = self._searches[arm].standing(self._known)
                self._home |= {trial["id"]: arm for trial in standing.trials}
            self._standings = {arm: self._standings[arm] for arm in self._searches if arm in self._standings}
            self._stale.clear()
            if self._tuning.get("widen") and self._widened < WIDENINGS and self._all_through() and self._widen():
                self._stale = set(self._searches)

    def _all_through(self) -> bool:
        return len(self._standings) == len(self._searches) and all(
            standing.tried is not None for standing in self._standings.values()
        )

    def _widen(self) -> bool:
        """Give every arm the next values beyond an edge at which one of them has its best; whether there was one."""
        points = {path: list(values) for path, values in self._points().items()}
        beyond = {path: list(self._beyond(path, values)) for path, values in points.items()}
        if not any(beyond.values()):
            return False
        for search in self._searches.values():
            before = {path: points[path] for path in search.params}
            after = {path: [*points[path], *beyond[path]] for path in search.params}
            known = combinations(search.params, before)
            search.widen([values for values in combinations(search.params, after) if values not in known])
        self._widened += 1
        return True

    def _points(self) -> dict[str, list[Any]]:
        """The values of each parameter that were tried so far."""
        found: dict[str, list[Any]] = {path: list(values) for path, values in self._tuning["points"].items()}
        for standing in self._standings.values():
            for tried in standing.tried or ():
                for path, value in tried.values.items():
                    if value not in found[path]:
                        found[path].append(value)
        return found

    def _beyond(self, path: str, tried: list[Any]) -> Iterator[Any]:
        """The next value on each side where some arm has its best at the edge of what was tried."""
        sides: Mapping[str, list[Any]] = self._tuning.get("beyond", {}).get(path) or {"below": [], "above": []}
        bests = [standing.best for standing in self._standings.values()]
        values = [best.values[path] for best in bests if best and path in best.values and math.isfinite(best.cost)]
        for edge, side in ((min, "below"), (max, "above")):
            further = [value for value in sides[side] if value not in tried]
            if further and values and edge(values) == edge(tried):
                yield further[0]

    def _unknown(self, arm: str) -> int:
        """How many of an arm's trials have no identity yet, not even a provisional one."""
        standing, seeds = self._standings[arm], len(self._made["seeds"])
        wanted = self._searches[arm].count * len(self._tuning["seeds"])
        found = max(0, wanted - len(standing.trials)) if standing.tried is None else 0
        again = self._tuning.get("at_baseline") and arm != self._made["baseline"]
        return found + (seeds if again and not {arm, self._made["baseline"]} <= self.chosen.keys() else 0)

    def _reported(self) -> list[Mapping[str, Any]]:
        """The trials that arms are judged by; those of arms whose values are not chosen yet as the plan has them."""
        return self._decide(self._made["trials"])

    def _decide(self, trials: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Trials of the plan, each with the values that were chosen for its arm, if they were."""
        chosen = self.chosen
        return [self._with(chosen[trial["arm"]], trial) if trial["arm"] in chosen else trial for trial in trials]

    def _with(self, values: Values, trial: Mapping[str, Any]) -> Mapping[str, Any]:
        """A trial of the plan with these values; identified once, since every end of a trial asks for all of them."""
        known = self._tuned.get(trial["id"])
        if known is None or known[0] is not values:
            arm = self._searches[trial["arm"]].arm
            known = values, tuned_trial(arm, values, trial["seed"], trial.get("repeat"))
            self._tuned[trial["id"]] = known
        return known[1]

    def _decided(self) -> Iterator[Mapping[str, Any]]:
        """Trials to report and repeats whose values are known, and those at the baseline's values."""
        chosen = self.chosen
        for trial in [*self._reported(), *self._decide(self._repeats)]:
            if trial["arm"] not in self._searches or trial["arm"] in chosen:
                yield trial
        yield from self._at_baseline()

    def _at_baseline(self) -> list[dict[str, Any]]:
        """Every other arm with the baseline's values, where that is asked for; an arm that chose them has them."""
        chosen = self.chosen
        values = chosen.get(self._made["baseline"]) if self._tuning.get("at_baseline") else None
        if values is None:
            return []
        reported = {trial["id"] for trial in self._reported()}
        trials = [
            tuned_trial(search.arm, {path: values[path] for path in search.params}, seed)
            for id, search in self._searches.items()
            if id in chosen and id != self._made["baseline"] and search.params.keys() <= values.keys()
            for seed in self._made["seeds"]
        ]
        return [trial for trial in trials if trial["id"] not in reported]
