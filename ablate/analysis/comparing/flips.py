"""Which verdicts of two studies are not the same, and which change in the evidence made them so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pandas as pd

from ablate.analysis.pairing import Contrast
from ablate.analysis.prose import number
from ablate.analysis.results import Results
from ablate.analysis.verdict import Evidence, Objective, word

COLUMNS = ("kind", "name", "a", "b", "flipped", "why")
"""The columns of :func:`flips`."""


NO_ESTIMATE = ("diverged", "not comparable")
"""The verdicts that are given whatever the estimate is."""
Moved = tuple[float, float]
"""By how much an arm and the baseline moved on the common seeds."""


def flips(a: Results, b: Results, names: Mapping[str, tuple[str, str]], moved: Mapping[str, Moved]) -> pd.DataFrame:
    """One row for each verdict that both studies have, on an arm or on a main or simple effect, in B's order.

    Args:
        a: the one study.
        b: the other.
        names: for the identity of each arm of B, that of the arm of A that goes with it, and the name of the two.
        moved: for the identity of each arm of B, how it and the baseline moved; "" for effects over arms.

    Columns:
        kind (text): ``arm``, ``main effect`` or ``simple effect``. name (text).
        a, b (text): the verdict in each study, against its own baseline.
        flipped (bool). why (text): "" unless it flipped.
    """
    before = {(kind, arm or found.name): found for kind, arm, found in a.evidence()}
    rows = []
    for kind, arm, found in b.evidence():
        counterpart, name = names.get(arm, ("", "")) if arm else (found.name, found.name)
        was = before.get((kind, counterpart))
        if was is None:
            continue
        old, new = word(was, a.objective), word(found, b.objective)
        why = _why(was, found, a.objective, b.objective, moved.get(arm)) if old != new else ""
        rows.append((kind, name, old, new, old != new, why))
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({"flipped": "bool"} | dict.fromkeys(("kind", "name", "a", "b", "why"), "str"))


def _why(was: Evidence, now: Evidence, before: Objective, after: Objective, moved: Moved | None) -> str:
    """The changes each of which, undone alone, gives the old verdict back; where none does, all of them.

    A verdict that needs no estimate is told by the change that gives it alone, whatever went with that change.
    """
    changes = list(_changes(was, now, before, after, moved))
    texts, old, new = [text for text, _, _ in changes], word(was, before), word(now, after)
    alone = [text for text, evidence, objective in changes if word(evidence, objective) == old]
    if not alone and new in NO_ESTIMATE:
        # The same changes in the same order, each made to the old evidence.
        made = [word(evidence, objective) for _, evidence, objective in _changes(now, was, after, before, moved)]
        alone = [text for text, found in zip(texts, made, strict=True) if found == new]
    return "; ".join(alone) or " together with ".join(texts)


def _changes(
    was: Evidence, now: Evidence, before: Objective, after: Objective, moved: Moved | None
) -> Iterator[tuple[str, Evidence, Objective]]:
    """What has changed, in words, and the new evidence and objective with that change undone."""
    if before.goal != after.goal:
        yield f"the goal is {after.goal}, it was {before.goal}", now, replace(after, goal=before.goal)
    if before.smallest_effect != after.smallest_effect:
        text = f"the smallest effect that matters is {after.smallest_effect:g}, it was {before.smallest_effect:g}"
        yield text, now, replace(after, smallest_effect=before.smallest_effect)
    for old, new in ((was.incomparable, now.incomparable), (was.no_data, now.no_data)):
        if old != new:
            text = new or f"it was without a comparison: {old}"
            yield text, replace(now, incomparable=was.incomparable, no_data=was.no_data, contrast=was.contrast), after
    if (was.diverged, was.ended) != (now.diverged, now.ended) and was.diverged + now.diverged:
        text = f"{now.diverged} of {now.ended} {now.noun} diverged, it was {was.diverged} of {was.ended}"
        yield text, replace(now, diverged=was.diverged, ended=was.ended, ranks=was.ranks), after
    if was.baseline_diverged != now.baseline_diverged:
        text = (
            f"{now.against} diverged in {now.baseline_diverged} of {now.baseline_ended} {now.noun}, "
            f"it was {was.baseline_diverged} of {was.baseline_ended}"
        )
        yield text, replace(now, baseline_diverged=was.baseline_diverged, baseline_ended=was.baseline_ended), after
    old_c, new_c = was.contrast, now.contrast
    if (was.incomparable, was.no_data) != (now.incomparable, now.no_data):
        return  # then there is one contrast at most
    if old_c.pairs == 0 or new_c.pairs == 0:
        if old_c.pairs != new_c.pairs:
            yield _pairs(old_c, new_c), replace(now, contrast=old_c), after
        return
    if old_c.pairs != new_c.pairs and moved == (0, 0):
        more = new_c.pairs - old_c.pairs
        text = number(abs(more), f"{'more' if more > 0 else 'fewer'} seed")
        yield text, replace(now, contrast=old_c), after
        return
    if old_c.effect != new_c.effect:
        of = f" (on common seeds the arm moved by {moved[0]:+.3g}, the baseline by {moved[1]:+.3g})" if moved else ""
        text = f"the effect is {new_c.effect:+.3g}, it was {old_c.effect:+.3g}{of}"
        yield text, replace(now, contrast=_about(new_c, old_c.effect, _half(new_c), old_c)), after
    if _half(old_c) != _half(new_c):
        yield _width(old_c, new_c), replace(now, contrast=_about(old_c, new_c.effect, _half(old_c), new_c)), after


def _half(c: Contrast) -> float:
    """Half the width of the simultaneous interval; NaN where there is none."""
    return (c.high - c.low) / 2


def _about(width: Contrast, effect: float, half: float, at: Contrast) -> Contrast:
    """A contrast as wide as one, with as many pairs, about the effect of another."""
    return replace(width, effect=effect, low=effect - half, high=effect + half, identical=at.identical)


def _pairs(was: Contrast, now: Contrast) -> str:
    return f"{now.pairs} {'pair has' if now.pairs == 1 else 'pairs have'} both values, it was {was.pairs}"


def _width(was: Contrast, now: Contrast) -> str:
    old, new = (f"±{_half(c):.3g}" if math.isfinite(_half(c)) else "none" for c in (was, now))
    return f"the interval is {new}, it was {old}" + (f" ({_pairs(was, now)})" if was.pairs != now.pairs else "")
