"""From an experiment to a plan: every arm built once on the meta device, counted, identified and priced."""

from ablate.planning.plan import Plan, make_plan

__all__ = ["Plan", "make_plan"]
