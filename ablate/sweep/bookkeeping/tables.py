"""One Optuna study in a storage, as the index writes and reads it; a study of this name is made, kept or renewed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState, create_trial
from sqlalchemy import event
from sqlalchemy.engine import ExceptionContext

from ablate.records.spelling import spelled
from ablate.sweep.bookkeeping.storage import (
    Direction,
    LostError,
    Storage,
    enter_study,
    let_go,
    name_metric,
    rename,
    widen,
)

MOST = 50
"""So many levels of a factor are choices of a parameter at most: every trial has all of them written beside its own."""


class Left(Exception):  # no error: nobody waits for the entry any more
    """The study was left while an entry was being made."""


class Tables:
    """The study of an experiment, and beside it those of its tuning."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        metric: str,
        direction: Direction,
        on_trouble: Callable[[BaseException], None],
    ) -> None:
        """Open the storage and the study, or make them."""
        self._storage = storage
        self._name = name
        self._metric = metric
        self._direction: Direction = direction
        self._on_trouble = on_trouble
        self.shaken = True
        """Whether the study was not read since it was opened or an error came: nobody knows what is in it."""
        self.written = 0
        """How many times something was written."""
        self._left = False
        self._levels: dict[str, tuple[Any, ...] | None] = {}
        """The levels of each factor that the study's trials have; None where it is no factor of ours, but a number."""
        self._rdb, self._study = self._connect()

    def add(self, state: TrialState, attributes: dict[str, Any], value: float | None = None) -> int:
        """Enter a trial; gives its number in the database. Its levels are its parameters, which plots go by."""
        levels = {factor: spelled(level) for factor, level in attributes["levels"].items()}
        factors = self._factors(levels)
        params = {factor: levels[factor] for factor in factors}
        return self.add_to(self._study, state, attributes, value, params=params, distributions=factors)

    def add_to(
        self,
        study: int,
        state: TrialState,
        attributes: dict[str, Any],
        value: float | None,
        *,
        params: Mapping[str, Any] | None = None,
        distributions: Mapping[str, BaseDistribution] | None = None,
        rungs: Mapping[int, float] | None = None,
    ) -> int:
        """Enter a trial into one of our studies."""
        self._begin()
        trial = create_trial(
            state=state,
            value=value,
            params=dict(params or {}),
            distributions=dict(distributions or {}),
            user_attrs=attributes,
            intermediate_values=dict(rungs or {}),
        )
        number = self._rdb.create_new_trial(study, trial)
        self.written += 1
        return number

    def set(self, entry: int, state: TrialState, value: float | None = None) -> None:
        """Change the state of a trial that has not ended."""
        self._begin()
        self._rdb.set_trial_state_values(entry, state, None if value is None else [value])
        self.written += 1

    def note(self, entry: int, **attributes: object) -> None:
        """Give a trial that has not ended further attributes."""
        for key, value in attributes.items():
            self._begin()
            self._rdb.set_trial_user_attr(entry, key, value)
            self.written += 1

    def reached(self, entry: int, step: int, value: float) -> None:
        """Give a trial that has not ended its value at a rung."""
        self._begin()
        self._rdb.set_trial_intermediate_value(entry, step, value)

    def finish(self, entry: int, end: str, reason: str, state: TrialState = TrialState.FAIL) -> None:
        """End a trial without a result."""
        self.note(entry, end=end, reason=reason)
        self.set(entry, state)

    def trials(self, study: int | None = None) -> list[FrozenTrial]:
        """Every trial of the study, or of another one."""
        found = self._rdb.get_all_trials(self._study if study is None else study, deepcopy=False)
        if study is None:
            self._levels = {}
            for entry in found:
                for name, known in entry.distributions.items():
                    self._levels[name] = known.choices if isinstance(known, CategoricalDistribution) else None
        return found

    @property
    def direction(self) -> str:
        """The way that the study has as the better one, which cannot be changed."""
        return self._rdb.get_study_directions(self._study)[0].name.lower()

    def study(self, name: str) -> int:
        """The number of a further study of ours; it is made if need be."""
        self._begin()
        study = enter_study(self._rdb, name, self._direction)
        self._storage.claim(self._rdb, study)
        name_metric(self._rdb, study, self._metric)
        return study

    def renew(self) -> str:
        """Begin a new study of the same name; gives what the old one is called now."""
        old = self._storage.set_aside(self._rdb, self._study)
        self._levels = {}
        self._rdb, self._study = self._connect()
        return old

    def rename(self, study: int) -> str:
        """Free the name of a further study; gives what it is called now."""
        self._begin()
        return rename(self._rdb, study)

    def leave(self) -> None:
        """Have nothing more written; may be called from another thread."""
        self._left = True

    def close(self) -> None:
        """Let go of the database."""
        let_go(self._rdb)

    def _factors(self, levels: Mapping[str, str]) -> dict[str, BaseDistribution]:
        """The factors of these levels; one that has a level more has it in the trials that are there too."""
        found: dict[str, BaseDistribution] = {}
        for factor, level in levels.items():
            known = self._levels.get(factor, ())
            if known is None or (level not in known and len(known) >= MOST):
                continue
            if level not in known:
                if known:
                    self._begin()
                    widen(self._rdb, self._study, factor, CategoricalDistribution((*known, level)))
                self._levels[factor] = known = (*known, level)
            found[factor] = CategoricalDistribution(known)
        return found

    def _begin(self) -> None:
        if self._left:
            raise Left

    def _connect(self) -> tuple[RDBStorage, int]:
        rdb = self._storage.open()
        try:
            study = enter_study(rdb, self._name, self._direction)
            self._storage.claim(rdb, study)
            name_metric(rdb, study, self._metric)
        except BaseException:
            let_go(rdb)
            raise
        event.listen(rdb.engine, "handle_error", self._shakes)
        return rdb, study

    def _shakes(self, context: ExceptionContext) -> None:
        if not context.is_pre_ping:  # a connection that had died was found out before it was used
            self.shaken = True
            self._on_trouble(context.original_exception)
            if context.is_disconnect:  # Optuna would enter it once more, without a look at whether it is there
                raise LostError from context.original_exception
