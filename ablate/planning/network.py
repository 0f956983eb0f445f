"""The network of an arm, with the initial values that its trials begin with."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from torch import nn

from ablate.errors import InputError
from ablate.experiment.settings import Setup, stream_of
from ablate.model.parameters import build, root_site
from ablate.planning.plan import Plan


def network_of(plan: Plan, arm: str, seed: int) -> nn.Module:
    """Build an arm's network on the CPU, as a trial of this seed does.

    Raises:
        InputError: the plan has no arm of this name, or the seed is none.
    """
    if isinstance(seed, bool) or not isinstance(seed, SupportsIndex) or not 0 <= index(seed) < 1 << 63:
        raise InputError.one("S115", f"{seed!r} is no seed", help="give a whole number that is at least 0, as `seed=1`")
    named = {name: each for each in plan.arms for name in (each["name"], *each["aliases"])}
    if arm not in named:
        there = ", ".join(f"`{each['name']}`" for each in plan.arms)
        raise InputError.one("S116", f"the experiment has no arm `{arm}`", help=f"there is: {there}")
    experiment = plan.experiment
    setup = Setup.model_validate(named[arm]["config"], context={"registry": experiment.registry})
    interface = setup.task.load(str(experiment.folder)).interface
    stream = stream_of(setup, index(seed))  # a NumPy number keys other streams
    return build(setup.model, root_site(interface), stream=stream, initializer=setup.training.initializer)
