from __future__ import annotations

from ablate.records.needs import need_of
from ablate.slots import Need
from tests.ablate.sweep.stub_study import make_plan


def test_a_plan_needs_what_its_largest_arm_takes() -> None:
    plan = make_plan([{}, {}, {}])
    plan["arms"][0] |= {"parameters": {"total": 1_000_000}, "activations": 2_000_000}
    plan["arms"][1] |= {"parameters": {"total": 10}, "activations": 50_000_000}
    plan["arms"][2] |= {"parameters": {"total": 5}, "activations": None}
    assert need_of(plan | {"threads": 2}) == Need("cpu", 2, 50_000_160)


def test_of_what_nobody_has_counted_nothing_is_said() -> None:
    assert need_of(make_plan([{}])) == Need("cpu", 1, 0)
    assert need_of(make_plan([])) == Need("cpu", 1, 0)
