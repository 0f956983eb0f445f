"""The contract of its slot, held against `my_component`; what it promises beyond that may follow."""

import pytest
from ablate.registry import Registry
from ablate.testing import Check, checks

REGISTRY = Registry.installed()
COMPONENT = REGISTRY.get("THE_SLOT", "my_component")


@pytest.mark.parametrize("check", checks(COMPONENT, REGISTRY), ids=str)
def test_contract(check: Check) -> None:
    """A check that fails says what was expected, what was got, and where."""
    check()
