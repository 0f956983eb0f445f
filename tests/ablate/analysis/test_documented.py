"""What a notebook's ``help()`` shows of the frames."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pandas as pd
import pytest

from ablate.analysis.comparing import Comparison
from ablate.analysis.documented import columns_of
from ablate.analysis.results import Results
from tests.study_maker import make_study

FRAMES = [
    method
    for owner in (Results, Comparison)
    for name, method in vars(owner).items()
    if inspect.isfunction(method) and not name.startswith("_") and get_type_hints(method)["return"] is pd.DataFrame
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results(make_study(tmp_path_factory.mktemp("documented") / "study", design="full", seeds=2, steps=20))


@pytest.mark.parametrize("method", FRAMES, ids=lambda method: str(method.__qualname__))
def test_help_lists_the_columns_of_every_frame(method: Callable[..., pd.DataFrame], results: Results) -> None:
    text = inspect.getdoc(method) or ""
    assert text.count("\nColumns:") == 1
    assert "class:`~" not in text
    if method.__qualname__.startswith("Results"):
        known = text
        for said, other in (("as in :meth:`main_effects`", Results.main_effects), ("frames.trials`", Results.trials)):
            known += (inspect.getdoc(other) or "") if said in text else ""
        named = [str(column) for column in method(results) if not str(column).startswith("factor.")]
        assert [column for column in named if column.split("/")[0] not in known] == []


def test_columns_end_where_the_next_part_begins() -> None:
    def frame() -> Any:
        """A frame.

        Columns:
            one (int): the first.

            two (int): the second.

        No rows without data.
        """

    assert columns_of(frame) == "Columns:\n    one (int): the first.\n\n    two (int): the second."
