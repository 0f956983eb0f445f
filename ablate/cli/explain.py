"""``ablate explain``: the long form of a diagnostic."""

from __future__ import annotations

import sys

from ablate.cli.output import console, print_json
from ablate.errors import InputError
from ablate.experiment.explanations import EXPLANATIONS, FAMILIES, first_sentence
from ablate.registry import closest


def show_explanation(code: str | None, *, as_json: bool) -> None:
    """Print what a code means, or every code with its first sentence.

    Raises:
        InputError: there is no such code (S117).
    """
    if code is None:
        _list_all(as_json=as_json)
        return
    known = code.upper()
    if known not in EXPLANATIONS:
        raise _unknown(code)
    if as_json:
        print_json(_plain(known) | {"text": EXPLANATIONS[known]})
    else:
        sys.stdout.write(EXPLANATIONS[known])


def _list_all(*, as_json: bool) -> None:
    if as_json:
        print_json({"codes": [_plain(code) for code in EXPLANATIONS]})
        return
    out = console()
    for index, (family, texts) in enumerate(FAMILIES.items()):
        if index:
            out.print()
        out.print(family, style="bold")
        for code in texts:
            out.print(f"  {code}  {first_sentence(code)}")


def _plain(code: str) -> dict[str, str]:
    """A code, what it is about and what it says, as JSON values."""
    family = next(family for family, texts in FAMILIES.items() if code in texts)
    return {"code": code, "family": family, "problem": first_sentence(code)}


def _unknown(code: str) -> InputError:
    near = closest(code.upper(), EXPLANATIONS)
    guess = [f"did you mean `{near}`?"] if near else []
    listed = [f"{family}: {' '.join(texts)}" for family, texts in FAMILIES.items()]
    return InputError.one("S117", f"no diagnostic has the code `{code}`", help="\n".join([*guess, *listed]))
