"""Quantities with a unit, as people write them: `20m`, `20GiB`, `1%`."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"B": 1, **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
          **{f"{letter}B": 1000**power for power, letter in enumerate("kMGT", 1)}}  # fmt: skip
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*"
DURATION = rf"^(?:{_NUMBER}[smhd]\s*)+$"
SIZE = rf"^{_NUMBER}(?:{'|'.join(_BYTES)})$"
PERCENT = rf"^{_NUMBER}%$"


def seconds(value: Any) -> Any:
    """`90s`, `20m`, `1h 30m` or `2d` in seconds; anything that is no text as it is."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(DURATION, value):
        raise ValueError(f"`{value[:40]}` is no duration: write it as `90s`, `20m`, `1h 30m` or `2d`")
    return math.fsum(float(number) * _SECONDS[unit] for number, unit in re.findall(rf"{_NUMBER}([smhd])", value))


def size(value: Any) -> Any:
    """`500MB` or `20GiB` in bytes; anything that is no text as it is."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(SIZE, value):
        raise ValueError(f"`{value[:40]}` is no size: write it as `500MB` or `20GiB`")
    number, unit = re.fullmatch(rf"{_NUMBER}(\w+)", value).groups()  # type: ignore[union-attr]  # it fits SIZE
    return round(float(number) * _BYTES[unit])


def share(value: Any) -> Any:
    """`1%` as 0.01; anything that is no text as it is, but for a number such as 5, which is meant as `5%`."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < 100:
        raise PydanticCustomError("percent", "must be less than 1", {"written": f"{value:g}%"})
    if not isinstance(value, str):
        return value
    if not re.fullmatch(PERCENT, value):
        raise ValueError(f"`{value[:40]}` is no share: write it as `1%` or `0.01`")
    return float(value.rstrip("%")) / 100


def _written(pattern: str, kind: str) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": kind, "exclusiveMinimum": 0}, {"type": "string", "pattern": pattern}]})


Duration = Annotated[float, Field(gt=0), BeforeValidator(seconds), _written(DURATION, "number")]
"""Seconds, or a text such as `20m`."""
Size = Annotated[int, Field(gt=0), BeforeValidator(size), _written(SIZE, "integer")]
"""Bytes, or a text such as `20GiB`."""
Share = Annotated[float, Field(ge=0, lt=1), BeforeValidator(share),
                  WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "exclusiveMaximum": 1},
                                            {"type": "string", "pattern": PERCENT}]})]  # fmt: skip
"""A number from 0 up to 1, or a text such as `1%`."""
