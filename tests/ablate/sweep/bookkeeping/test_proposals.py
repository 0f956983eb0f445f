"""What tuning proposed is a further Optuna study an arm, in which every proposal is once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState

from ablate.records.layout import StudyFolder
from ablate.sweep.bookkeeping.embedded import Embedded
from ablate.sweep.bookkeeping.index import Index
from tests.ablate.sweep.stub_study import entries, make_plan

RATE = {"lr": FloatDistribution(1e-5, 1.0, log=True)}
NAME = "stub: tuning of norm=layer"


@pytest.fixture
def index(study: StudyFolder) -> Iterator[Index]:
    study.path.mkdir()
    plan = make_plan([{}])
    opened = Index(Embedded(study.storage), plan["name"], plan["objective"])
    yield opened
    opened.close()


def test_proposals_are_entered_once_with_their_values_and_rungs(study: StudyFolder, index: Index) -> None:
    for _ in range(2):
        index.proposal("norm=layer", 0, {"lr": 0.1}, RATE, 2.0, TrialState.COMPLETE, rungs={10: 3.0, 20: 2.5})
        index.proposal("norm=layer", 1, {"lr": 0.01}, RATE, None, TrialState.PRUNED, rungs={10: 4.0})
        index.proposal("baseline", 0, {"lr": 0.1}, RATE, 1.0, TrialState.COMPLETE)
    first, second = entries(study, name=NAME)
    assert (first.value, first.params, first.intermediate_values) == (2.0, {"lr": 0.1}, {10: 3.0, 20: 2.5})
    assert first.user_attrs == {"arm": "norm=layer", "proposal": 0}
    assert (second.state, second.params, second.intermediate_values) == (TrialState.PRUNED, {"lr": 0.01}, {10: 4.0})
    assert [entry.value for entry in entries(study, name="stub: tuning of baseline")] == [1.0]
    assert entries(study) == []
    assert index.differences == []


def test_a_study_that_is_there_is_no_error_to_the_database(study: StudyFolder) -> None:
    study.path.mkdir()
    plan = make_plan([{}])
    troubles: list[BaseException] = []
    for _ in range(2):
        index = Index(Embedded(study.storage), plan["name"], plan["objective"], troubles.append)
        index.proposal("norm=layer", 0, {"lr": 0.1}, RATE, 2.0, TrialState.COMPLETE)
        index.close()
    assert troubles == []  # after one, all that is in the study is read again


def test_a_range_may_be_widened(study: StudyFolder, index: Index) -> None:
    index.proposal("norm=layer", 0, {"lr": 0.1}, RATE, 2.0, TrialState.COMPLETE)
    wider = {"lr": FloatDistribution(1e-6, 10.0, log=True)}
    index.proposal("norm=layer", 1, {"lr": 3.0}, wider, 2.0, TrialState.COMPLETE)
    assert len(entries(study, name=NAME)) == 2


def test_tuning_that_proposes_something_else_is_begun_anew(study: StudyFolder) -> None:
    study.path.mkdir()
    plan = make_plan([{}])
    for value, choices in ((1, (1, 2)), (3, (1, 2, 3))):
        index = Index(Embedded(study.storage), plan["name"], plan["objective"])
        given = {"lr": CategoricalDistribution(choices)}
        index.proposal("norm=layer", 0, {"lr": value}, given, 2.0, TrialState.COMPLETE)
        index.close()
    assert index.differences == [
        (None, "the tuning of norm=layer proposed something else; it was begun anew, and the old one is "
         f"`{NAME} (old 1)`"),
    ]  # fmt: skip
    assert [entry.params for entry in entries(study, name=NAME)] == [{"lr": 3}]
