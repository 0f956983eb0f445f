"""What a plan's trials take of a machine, from what the plan counted. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ablate.slots import Need

BYTES_A_PARAMETER = 16
"""Weights, gradients and two moments, at 32 bit: what Adam has. Other optimizers have less, and few have more."""


def memory_of(arm: Mapping[str, Any]) -> int:
    """Bytes that a trial of an arm of a plan takes while it trains, beside its data and the process; 0 if not counted.

    An estimate: parameters with their gradients and moments, and what autograd keeps of one step at 32 bit.
    """
    counted = arm.get("parameters", {}).get("total", 0)
    return BYTES_A_PARAMETER * int(counted) + int(arm.get("activations") or 0)


def need_of(plan: Mapping[str, Any]) -> Need:
    """What a trial of this plan needs, whichever it is: as much as that of the largest arm."""
    return Need(plan["device"], plan["threads"], max(map(memory_of, plan["arms"]), default=0))
