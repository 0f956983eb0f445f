"""The rule that calls a gradient vanishing or exploding, as it is printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ablate.analysis.prose import joined
from ablate.reporting import series
from ablate.reporting.effects import named
from ablate.reporting.numbers import digits
from ablate.reporting.study import Arm, Study
from ablate.reporting.tables import Column, Table

VANISHING, EXPLODING = 1e-2, 1e2
RULE = (
    "an arm's gradient vanishes where the first block's gradient norm of w2 is under 1e-2 of the last block's, and "
    "explodes where it is over 1e2 of it (geometric mean of the seeds, at the first or at the last probed step)"
)


class Ratio(NamedTuple):
    """One arm's first/last gradient ratio; None where it was not measured."""

    arm: Arm
    start: float | None
    end: float | None

    @property
    def start_text(self) -> str:
        """The ratio at the start, in words."""
        return digits(self.start, 2) or "an unknown number of"

    @property
    def end_text(self) -> str:
        """The ratio at the end, in words."""
        return digits(self.end, 2) or "an unknown number of"

    @property
    def flag(self) -> str:
        """``vanishing``, ``exploding``, both, or nothing."""
        known = [value for value in (self.start, self.end) if value is not None]
        words = [("vanishing", min(known, default=1) < VANISHING), ("exploding", max(known, default=1) > EXPLODING)]
        return " and ".join(word for word, holds in words if holds)


def ratios(study: Study) -> Sequence[Ratio]:
    """The first/last gradient ratio of w2 of every arm that has one, in the plan's order."""
    start, end = (
        series.geometric(frame, ["arm"]).set_index("arm")["value"].to_dict()
        for frame in series.ends(study.first_to_last)
    )
    return [Ratio(arm, start.get(arm.id), end.get(arm.id)) for arm in study.arms if arm.id in start or arm.id in end]


def unjudged(study: Study) -> Sequence[str]:
    """Every arm that has no such ratio, each with why, in the plan's order; arms that share a reason stand together."""
    judged = {ratio.arm.id for ratio in ratios(study)}
    norms = study.probe("grad_norm")
    norms = norms[norms["layer"].notna()]
    reasons: dict[str, list[str]] = {}
    for arm in study.arms:
        if arm.id not in judged:
            mine = norms[norms["arm"] == arm.id]
            w2 = mine[mine["role"] == "w2"]
            one = "only one block with a parameter of role w2" if len(w2) else "no parameter of role w2"
            reasons.setdefault(one if len(mine) else "no gradients on record", []).append(arm.label)
    return [f"{joined(names)} {'has' if len(names) == 1 else 'have'} {why}" for why, names in reasons.items()]


def table(found: Sequence[Ratio]) -> Table:
    """The arms that are flagged, with their ratios."""
    columns = [
        Column("name", "arm", numeric=False, adorn=named),
        Column("start", "ratio at the start"),
        Column("end", "ratio at the end"),
        Column("flag", "gradient", numeric=False),
    ]
    records = [
        {"name": ratio.arm.label, "look": ratio.arm.look, "start": digits(ratio.start, 2), "end": digits(ratio.end, 2),
         "flag": ratio.flag} for ratio in found
    ]  # fmt: skip
    return Table(columns, records)
