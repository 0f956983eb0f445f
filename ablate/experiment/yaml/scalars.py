"""What an unquoted scalar means by YAML 1.2's core schema, and what a text was probably meant to be."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TypeAlias

Scalar: TypeAlias = bool | int | float | str | None

_CONSTANTS: Mapping[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((sign + name for sign in ("", "+") for name in (".inf", ".Inf", ".INF")), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def resolve(text: str) -> Scalar:
    """What an unquoted scalar means by YAML 1.2's core schema: ``on`` is text, ``1e-3`` a number.

    Raises:
        OverflowError: the number is too large, or too close to zero, for a float.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _BASED.fullmatch(text):
        whole = int(text[2:], 8 if text[1] == "o" else 16)
        if whole > sys.float_info.max:
            raise OverflowError
        return whole
    if not _FLOAT.fullmatch(text):
        return text
    number = float(text)
    mantissa = re.split("[eE]", text)[0]
    if abs(number) == float("inf") or (number == 0 and mantissa.strip("+-0.")):
        raise OverflowError
    if _DECIMAL.fullmatch(text):
        # Python refuses to read thousands of digits, leading zeros included.
        return int(text.lstrip("+-").lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
    return number


def looks_like_number(text: str) -> str | None:
    """The number that a text was probably meant to be, as YAML spells it: ``1_000`` gives ``1000``; else None.

    A text that is a number but for its quotes gives itself, so ``"3"`` gives ``3``. A date is no number.
    """
    plain = text.strip().replace("\N{MINUS SIGN}", "-")
    guesses = [plain, plain.replace("_", "")]
    if re.fullmatch(r"[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?", plain):
        guesses.append(plain.replace(",", ""))
    elif re.fullmatch(r"[-+]?[0-9]+,[0-9]+", plain):
        guesses.append(plain.replace(",", "."))
    if power := re.fullmatch(r"([-+]?)10(?:\^|\*\*)([-+]?[0-9]+)", plain):
        guesses.append(f"{power[1]}1e{power[2]}")
    if scaled := re.fullmatch(r"([-+]?[0-9]{1,15})([kKM])", plain):
        guesses.append(scaled[1] + ("000000" if scaled[2] == "M" else "000"))
    if based := re.fullmatch(r"([-+]?)(0[box][0-9a-fA-F]{1,64})", plain.replace("_", "").lower()):
        with suppress(ValueError):  # a digit that the base lacks
            guesses.append(str(int(based[1] + based[2], 0)))
    if re.fullmatch(r"[-+]?[0-9]{1,9}(:[0-5]?[0-9]){1,3}", plain):
        # YAML 1.1 counts in sixties: 12:30 is 750 to the tools that users come from.
        total = 0
        for part in plain.lstrip("+-").split(":"):
            total = total * 60 + int(part)
        guesses.append(f"-{total}" if plain[0] == "-" else str(total))
    if special := re.fullmatch(r"([-+]?)\.?(?:(inf)(?:inity)?|(nan))", plain.lower()):
        guesses.append(".nan" if special[3] else f"{special[1]}.inf")
    for guess in guesses:
        try:
            if isinstance(number := resolve(guess), int | float) and not isinstance(number, bool):
                return guess
        except OverflowError:
            return None
    return None
