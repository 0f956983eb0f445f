"""One study against another: the value that ``ablate compare`` prints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape

import pandas as pd

from ablate.analysis.comparing.arms import Matched, match
from ablate.analysis.comparing.differences import differences
from ablate.analysis.comparing.flips import flips
from ablate.analysis.comparing.paired import paired
from ablate.analysis.documented import with_columns
from ablate.analysis.effects import Grid
from ablate.analysis.prose import joined, number
from ablate.analysis.results import Results
from ablate.analysis.verdict import Objective
from ablate.errors import RefusedError


@dataclass(frozen=True)
class Comparison:
    """Study B against study A, paired by arm and seed; what B does to a value is B minus A.

    Arms go together by their names, else by their levels, else by their configuration. B's objective judges: its goal
    and its smallest effect that matters.

    Raises:
        RefusedError: both are one study; or they have no arm, no seed, no metric, or no data in common.
    """

    a: Results
    b: Results

    def __post_init__(self) -> None:
        """Refuse what cannot be paired, with the reason."""
        if self.a.folder.resolve() == self.b.folder.resolve():
            raise RefusedError(
                f"refused: `{self.a.folder}` and `{self.b.folder}` are one study: there is nothing to compare"
            )
        if reason := self._unpaired():
            raise RefusedError(f"refused: `{self.a.folder}` and `{self.b.folder}` cannot be paired: {reason}")

    def _unpaired(self) -> str:
        """Why nothing of the two can be paired; "" where something can."""
        a, b = self.a.plan, self.b.plan
        metrics = self.a.objective.metric, self.b.objective.metric
        if metrics[0] != metrics[1]:
            return f"A is judged by {metrics[0]}, B by {metrics[1]}"
        if not self._arms.pairs:
            return (
                f"no arm is in both: A has {joined([arm['name'] for arm in a['arms']])}; "
                f"B has {joined([arm['name'] for arm in b['arms']])}"
            )
        reasons = [pair.apart(a, b, metrics[0]) for pair in self._arms.pairs]
        if all(reasons):
            return reasons[0]
        if not self.seeds:
            spelled = (joined([str(seed) for seed in grid.seeds]) for grid in self._grids)
            return "no seed is in both: A has {}; B has {}".format(*spelled)
        return ""

    @property
    def objective(self) -> Objective:
        """What effects are judged by: B's objective."""
        return self.b.objective

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that both studies plan."""
        ours, theirs = (grid.seeds for grid in self._grids)
        return tuple(seed for seed in theirs if seed in ours)

    @property
    def only_a(self) -> list[str]:
        """The names of A's arms that B has none for."""
        return list(self._arms.only_a)

    @property
    def only_b(self) -> list[str]:
        """The names of B's arms that A has none for."""
        return list(self._arms.only_b)

    def differences(self) -> pd.DataFrame:
        """In what the two differ before any result.

        The objective, the factors, the seeds, the data's hash, the code of components, versions and machines as the
        records have them, and the resolved configuration of the arms that both have.
        """
        return differences((self.a.plan, self.a.folder), (self.b.plan, self.b.folder), self._arms.pairs)

    def effects(self) -> pd.DataFrame:
        """Each arm that both studies have, B minus A, worst first."""
        return self._effects.copy(deep=False)

    def verdicts(self) -> pd.DataFrame:
        """Each verdict that both studies have, whether it flipped, and why."""
        names = {pair.b["id"]: (str(pair.a["id"]), pair.name) for pair in self._arms.pairs}
        return flips(self.a, self.b, names, dict(self._moved()))

    def worse(self) -> list[str]:
        """The arms that are worse in B than in A, as ``worse`` in :meth:`effects` has it."""
        return [str(name) for name in self._effects.loc[self._effects["worse"], "name"]]

    def notes(self) -> list[str]:
        """What to know before believing the effects, as sentences."""
        return list(self._notes())

    def _repr_html_(self) -> str:
        differ, verdicts = self.differences().fillna("(absent)"), self.verdicts()
        sentences = "".join(f"<li>{escape(text)}</li>" for text in self._effects["sentence"])
        flipped = "".join(
            f"<li>{escape(f'{row.name}: {row.a} -> {row.b}, since {row.why}')}</li>"
            for row in verdicts[verdicts["flipped"]].drop(columns="flipped").itertuples(name="Flip", index=False)
        )
        notes = "".join(f"<li>{escape(text)}</li>" for text in self.notes())
        return (
            f"<h3>{escape(self.b.plan['name'])} (B) against {escape(self.a.plan['name'])} (A)</h3>"
            f"<p>Configuration</p>{differ.to_html(index=False) if len(differ) else '<p>Nothing differs.</p>'}"
            f"<p>B against A</p><ul>{sentences}</ul><p>Verdicts that flipped</p><ul>{flipped or '<li>none</li>'}</ul>"
            f"<p>Notes</p><ul>{notes}</ul>"
        )

    def __repr__(self) -> str:
        return f"Comparison({self.b.plan['name']!r} against {self.a.plan['name']!r}: {len(self._arms.pairs)} arms)"

    # --- worked out once ------------------------------------------------------------------------------------------

    @cached_property
    def _arms(self) -> Matched:
        return match(self.a.plan, self.b.plan)

    @cached_property
    def _grids(self) -> tuple[Grid, Grid]:
        metric = self.b.objective.metric
        a, b = (Grid.of(each.plan, each.trials(), metric, each.stuck()) for each in (self.a, self.b))
        return a, b

    @cached_property
    def _effects(self) -> pd.DataFrame:
        grids = self._grids[0].only(self.seeds), self._grids[1].only(self.seeds)
        return paired(self.a, self.b, self._arms.pairs, grids)

    def _moved(self) -> Iterator[tuple[str, tuple[float, float]]]:
        """For each arm of B, how much it and its baseline moved on the common seeds, where both are known.

        For effects over arms, by "", where all arms are in both and none has moved.
        """
        shifts = {str(arm): float(shift) for arm, shift in self._effects[["arm", "effect"]].itertuples(index=False)}
        counterpart = {pair.b["id"]: pair.a["id"] for pair in self._arms.pairs}
        if counterpart.get(self.b.plan["baseline"]) != self.a.plan["baseline"]:
            return
        base = shifts[self.b.plan["baseline"]]
        for id, shift in shifts.items():
            if math.isfinite(shift - base):
                yield id, (shift, base)
        if not any(shifts.values()) and not self.only_a and not self.only_b:
            yield "", (0.0, 0.0)

    def _notes(self) -> Iterator[str]:
        for letter, results in (("A", self.a), ("B", self.b)):
            if not results.complete:
                tally, trials = results.counts(), len(results.plan["trials"])
                left = tally["waiting"] + tally["running"]
                yield f"{letter} is interim: {trials - left} of {number(trials, 'trial')} ended."
        for letter, names in (("A", self.only_a), ("B", self.only_b)):
            if names:
                yield f"Only {letter} has {number(len(names), 'arm')}: {joined(names)}."
        for letter, grid in zip("AB", self._grids, strict=True):
            if rest := [str(seed) for seed in grid.seeds if seed not in self.seeds]:
                yield f"Only {letter} has {number(len(rest), 'seed')}, no part of any effect here: {joined(rest)}."
        one, other = self.a.objective, self.b.objective
        if (one.goal, one.smallest_effect) != (other.goal, other.smallest_effect):
            yield f"B's objective judges: goal {other.goal}, smallest effect that matters {other.smallest_effect:g}."
        alike = sum(pair.alike for pair in self._arms.pairs)
        if alike:
            lead = f"{number(alike, 'arm')} of {len(self._arms.pairs)} {'has' if alike == 1 else 'have'} the same"
            why = ": what differs in them comes from the code, the versions or the machine"
            yield f"{lead} configuration in both{', and the same values' if self._equal() else why}."

    def _equal(self) -> bool:
        """Whether the arms of one configuration have the same values in both, to the last bit."""
        own = self._effects[self._effects["same_configuration"]]
        same = (own["verdict"] == "identical") | ((own["pairs"] == 1) & (own["effect"] == 0))
        return bool((same & (own["diverged_a"] == own["diverged_b"])).all())


with_columns(
    [(Comparison.differences, differences), (Comparison.effects, paired), (Comparison.verdicts, flips)],
)
