"""What an arm has tried, entered into the index for those who look on."""

from __future__ import annotations

from collections.abc import Callable

from optuna.trial import TrialState

from ablate.sweep.agenda import Agenda
from ablate.sweep.bookkeeping.index import Index
from ablate.sweep.tuning.sampling import Tried, distributions, told


def proposals(name: str, agenda: Agenda, arm: str) -> Callable[[Index], None]:
    """An entry of all combinations that an arm, which is called ``name``, has tried."""
    params, tried = agenda.params(arm), agenda.tried(arm)
    space = distributions(params, tried)

    def enter(index: Index) -> None:
        for number, each in enumerate(tried):
            value = agenda.value(each.cost)
            rungs = {} if each.rung is None or value is None else {each.rung: value}
            final = value if each.rung is None else None
            index.proposal(name, number, told(params, each.values), space, final, _state(each, value), rungs=rungs)

    return enter


def _state(tried: Tried, value: float | None) -> TrialState:
    if tried.rung is not None:
        return TrialState.PRUNED
    return TrialState.FAIL if value is None else TrialState.COMPLETE
