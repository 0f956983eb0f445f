"""Events as JSON and back: for tools that read them, and for a view in another process."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, get_args

from pydantic import TypeAdapter

from ablate.sweep.events import Event


def kind(event: type) -> str:
    """What an event is called in JSON: ``trial_ended`` for :class:`~ablate.sweep.events.TrialEnded`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower()


_ADAPTERS: dict[str, TypeAdapter[Event]] = {kind(event): TypeAdapter(event) for event in get_args(Event)}


def as_json(event: Event) -> dict[str, Any]:
    """An event as plain values: ``event`` is its kind, the rest its fields; a number that is not finite is None."""
    name = kind(type(event))
    return {"event": name, **json.loads(_ADAPTERS[name].dump_json(event))}


def of_json(value: Mapping[str, Any]) -> Event:
    """The event that :func:`as_json` wrote.

    Raises:
        ValueError: it is none.
    """
    fields = dict(value)
    adapter = _ADAPTERS.get(fields.pop("event", ""))
    if adapter is None:
        raise ValueError("it is no event of a sweep")
    return adapter.validate_python(fields)
