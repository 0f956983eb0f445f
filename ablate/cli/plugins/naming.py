"""What a word of the command line means: a slot, or a component as ``rms``, ``norm.rms`` or ``norm:rms``."""

from __future__ import annotations

import re

from pydantic_core import PydanticCustomError

from ablate.errors import InputError
from ablate.registry import Entry, Registry, closest
from ablate.slots import SLOTS


def slot_called(name: str) -> str:
    """The slot of this name.

    Raises:
        InputError: there is none; says the closest.
    """
    if name in SLOTS:
        return name
    near = closest(name.replace("-", "_"), SLOTS)
    help = f"did you mean `{near}`?" if near else f"the slots are {', '.join(SLOTS)}"
    raise InputError.one("S122", f"no slot is called `{name}`", help=help)


def component_called(name: str, registry: Registry) -> Entry:
    """The one component of this name.

    Raises:
        InputError: there is none, several slots have one, or two distributions bring it.
    """
    if name.endswith(".py"):
        help = f"give the component's name, and the file by `--plugin {name}`"
        raise InputError.one("S102", f"no component is called `{name}`", help=help)
    slot, separator, kind = _parted(name)
    if separator:
        return _in_slot(slot_called(slot), kind, registry)
    kinds = {slot: registry.kinds(slot) for slot in SLOTS}
    holding = [slot for slot in SLOTS if name in kinds[slot] or (slot, name) in registry.clashes]
    if len(holding) > 1:
        raise InputError.one(
            "S121",
            f"`{name}` is the name of {len(holding)} components",
            help=f"say which: {', '.join(f'`{slot}.{name}`' for slot in holding)}",
        )
    if holding:
        return _in_slot(holding[0], name, registry)
    raise InputError.one("S102", f"no component is called `{name}`", help=_meant(name, kinds))


def _parted(name: str) -> tuple[str, str, str]:
    """The slot, what stands between, and the kind; all but the kind are empty where no slot is named."""
    found = re.fullmatch(r"(\w+)([.:])(.+)", name)
    return (found[1], found[2], found[3]) if found else ("", "", name)


def _in_slot(slot: str, kind: str, registry: Registry) -> Entry:
    try:
        return registry.entry(slot, kind)
    except PydanticCustomError:
        kinds = registry.kinds(slot)
        near = closest(kind, kinds)
        help = f"did you mean `{slot}.{near}`?" if near else f"there are {', '.join(kinds) or 'none'}"
        raise InputError.one("S102", f"no {slot} is called `{kind}`", help=help) from None


def _meant(name: str, kinds: dict[str, list[str]]) -> str:
    """What to do about a name that nothing has."""
    if name in SLOTS:
        return f"`{name}` is a slot, whose components `ablate plugins list --slot {name}` shows"
    near = closest(name, [kind for each in kinds.values() for kind in each])
    if near is None:
        return "`ablate plugins list` shows every component, and which plugins could not be used"
    slots = [slot for slot in SLOTS if near in kinds[slot]]
    return "did you mean " + " or ".join(f"`{slot}.{near}`" for slot in slots) + "?"
