"""The numbers behind the figures, against ones computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ablate.reporting import series


def frame(rows: list[tuple[str, int, int, float]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["arm", "seed", "step", "value"])


def test_the_band_is_students_t_on_the_steps_that_all_seeds_have() -> None:
    rows = [("a", 0, 1, 1.0), ("a", 1, 1, 3.0), ("a", 0, 2, 5.0), ("a", 1, 2, math.nan), ("b", 0, 1, 7.0)]
    band = series.band(frame(rows)).set_index(["arm", "step"])
    # Two values 1 and 3: mean 2, sd sqrt(2), standard error 1, t(0.975, 1) = 12.7062.
    assert band.loc[("a", 1), "mean"] == 2
    assert band.loc[("a", 1), "high"] == pytest.approx(2 + 12.7062, abs=1e-4)
    assert band.loc[("a", 1), "low"] == pytest.approx(2 - 12.7062, abs=1e-4)
    assert ("a", 2) not in band.index
    assert band.loc[("b", 1), "mean"] == 7
    assert band["low"].isna().tolist() == [False, True]


def test_geometric_means_leave_out_what_is_not_finite() -> None:
    rows = [("a", 0, 1, 1e-4), ("a", 1, 1, 1e-2), ("a", 2, 1, math.nan), ("a", 3, 1, math.inf)]
    assert series.geometric(frame(rows), ["arm"])["value"].tolist() == [pytest.approx(1e-3)]
    assert series.geometric(frame([("a", 0, 1, 0.0)]), ["arm"])["value"].tolist() == [pytest.approx(series.FLOOR)]


def probes(rows: list[tuple[int | None, str, float]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "arm": "a",
            "seed": 0,
            "step": 0,
            "metric": "grad_norm",
            "layer": pd.array([layer for layer, _, _ in rows], dtype="Int32"),
            "role": [role for _, role, _ in rows],
            "value": [value for _, _, value in rows],
        }
    )


def test_a_blocks_gradient_is_the_root_of_the_sum_of_squares() -> None:
    readings = probes([(0, "w1", 3.0), (0, "w2", 4.0), (1, "w2", 2.0), (None, "embed", 100.0)])
    assert series.block_gradients(readings).set_index("layer")["value"].to_dict() == {0: 5.0, 1: 2.0}


def test_first_to_last_is_of_one_role() -> None:
    readings = probes([(0, "w1", 9.0), (0, "w2", 0.5), (1, "w2", 7.0), (2, "w2", 2.0)])
    assert series.first_to_last(readings)["value"].tolist() == [0.25]
    assert series.first_to_last(probes([(0, "w2", 1.0)])).empty
    assert series.first_to_last(probes([(0, "q", 1.0), (1, "q", 1.0)])).empty


def test_an_arm_of_one_block_has_no_first_to_last_beside_deeper_ones() -> None:
    deep, shallow = probes([(0, "w2", 0.5), (1, "w2", 2.0)]), probes([(0, "w2", 1.0)]).assign(arm="b")
    found = series.first_to_last(pd.concat([deep, shallow]))
    assert found[["arm", "value"]].to_numpy().tolist() == [["a", 0.25]]


def test_the_ends_are_the_first_step_and_each_trials_last() -> None:
    rows = [("a", 0, 0, 1.0), ("a", 0, 9, 2.0), ("b", 0, 0, 3.0), ("b", 0, 5, 4.0)]
    first, last = series.ends(frame(rows))
    assert first["value"].tolist() == [1.0, 3.0]
    assert last["value"].tolist() == [2.0, 4.0]


def test_bins_stand_at_the_middle_of_their_steps() -> None:
    rows = [("a", 0, step, 10.0 ** (step // 5)) for step in range(10)]
    binned = series.binned(frame(rows), steps=10, bins=2)
    assert binned["step"].tolist() == [2.0, 7.0]
    assert np.allclose(binned["value"], [1.0, 10.0])
