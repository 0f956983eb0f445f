"""What tuning proposed, as one further Optuna study an arm: for those who look on, since the folders hold it all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from ablate.sweep.bookkeeping.tables import Tables

Value = float | int | str
"""A tuned value."""


class Proposals:
    """The proposals of every arm's tuning that the database has."""

    def __init__(self, tables: Tables, name: str) -> None:
        """Nothing is read before it is needed."""
        self._tables = tables
        self._name = name
        self._studies: dict[str, tuple[int, dict[int, FrozenTrial | None]]] = {}

    def forget(self) -> None:
        """Read everything again: after an error nobody knows what was written."""
        self._studies.clear()

    def enter(
        self,
        arm: str,
        number: int,
        params: Mapping[str, Value],
        distributions: Mapping[str, BaseDistribution],
        value: float | None,
        state: TrialState,
        rungs: Mapping[int, float],
    ) -> str | None:
        """Enter a proposal, unless it is there; gives what became of a study that says otherwise."""
        title = f"{self._name}: tuning of {arm}"
        study, known = self._studies.get(title) or self._read(title)
        there = known.get(number)
        if there and (there.params != dict(params) or there.state != state or there.value != value):
            old = self._tables.rename(study)
            self._studies.pop(title, None)
            study, known = self._read(title)
            renewed = f"the tuning of {arm} proposed something else; it was begun anew, and the old one is `{old}`"
        else:
            renewed = None
        if number not in known:
            attributes: dict[str, Any] = {"arm": arm, "proposal": number}
            self._tables.add_to(
                study, state, attributes, value, params=params, distributions=distributions, rungs=rungs
            )
            known[number] = None  # what it says is what we would say again
        return renewed

    def _read(self, title: str) -> tuple[int, dict[int, FrozenTrial | None]]:
        study = self._tables.study(title)
        numbered = ((entry.user_attrs.get("proposal"), entry) for entry in self._tables.trials(study))
        known: dict[int, FrozenTrial | None] = {
            number: entry for number, entry in numbered if isinstance(number, int) and entry.state.is_finished()
        }
        self._studies[title] = study, known
        return study, known
