"""The contract suite: what every component must keep, for its author to run.

``ablate.testing.check(MyNorm)`` gives a finding for each check that applies to the component's slot. With pytest::

    @pytest.mark.parametrize("check", ablate.testing.checks(MyNorm), ids=str)
    def test_contract(check):
        check()
"""

from ablate.testing.contract import check, checks, instance_of
from ablate.testing.findings import ContractError, Finding
from ablate.testing.rules import Check

__all__ = ["Check", "ContractError", "Finding", "check", "checks", "instance_of"]
