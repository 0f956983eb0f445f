"""Effects of a design as a whole, for figures and tables: ablation paths, Shapley shares, analysis of variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ablate.analysis import ablation, shapley
from ablate.analysis.effects import family_of
from ablate.analysis.prose import joined, number
from ablate.reporting.effects import estimate, named, rows_of, text_of
from ablate.reporting.figures.waterfall import Bar, Fall
from ablate.reporting.numbers import MINUS, digits, fixed, interval, missing, plain, probability
from ablate.reporting.palette import Look, look
from ablate.reporting.study import Study
from ablate.reporting.tables import Column, Table

MOST_DRAWN = 6
"""So many corners are drawn; the table has the others."""
SHARES = (
    "Each share begins where the last one ends. Intervals are simultaneous, of the shares and, apart, of the wholes."
)
"""What the figure of the Shapley shares shows."""


def path_fall(study: Study, path: pd.DataFrame) -> Fall:
    """An ablation path: the parts on top of one another, their sum, and from there the difference to the whole."""
    rows = {kind: rows_of(path[path["kind"] == kind]) for kind in ("part", "sum", "difference", "whole")}
    (total,), (difference,), (whole,) = rows["sum"], rows["difference"], rows["whole"]
    bars, start = [], 0.0
    for row in rows["part"]:
        bars.append(_bar(study, row, plain(row["name"]), _arm_look(study, row), start))
        start = bars[-1].end if _follows(path) else 0.0
    bars.append(_bar(study, total, "sum of the parts", None))
    bars.append(_bar(study, difference, f"whole {MINUS} sum", None, bars[-1].end))
    bars.append(_bar(study, whole, study.all_changed, _arm_look(study, whole)))
    return Fall(bars, shaded=len(rows["part"]))


def _follows(path: pd.DataFrame) -> bool:
    """Whether the parts are of the seeds of their sum, so that one upon the other they end where it does."""
    seeds = path.loc[path["kind"].isin(["part", "sum"]), "seeds"]
    return bool(seeds.iloc[0]) and seeds.nunique() == 1


def path_label(study: Study) -> str:
    """What the path's axis shows."""
    return f"Δ {study.metric_and_unit} when {ablation.DONE[study.plan['design']]}"


def path_caption(study: Study, path: pd.DataFrame) -> str:
    """What the figure of a path shows."""
    family = number(family_of(study.plan), "arm")
    known = bool((path.loc[path["kind"] == "sum", "seeds"] > 0).all())
    start = "Each part begins where the last one ends. " if _follows(path) else ""
    own = "; of the sum and of the difference each its own" if known else ""
    shade = f" Shaded: within ±{study.smallest:g} of the sum, where parts add up." if known else ""
    return (
        f"{start}Intervals are of 95%, paired by seed: of parts and whole simultaneous over the {family} planned{own}."
        f"{shade}"
    )


def share_falls(study: Study, shares: pd.DataFrame) -> list[Fall]:
    """The Shapley shares of each corner, one upon the other, and the whole; of many corners, the first."""
    falls = []
    known = shares[shares["seeds"] > 0]
    for corner in list(dict.fromkeys(known["corner"]))[:MOST_DRAWN]:
        *rows, whole = rows_of(known[known["corner"] == corner])
        bars, start = [], 0.0
        for row in rows:
            bars.append(_bar(study, row, plain(row["name"]), _factor_look(study, row), start, _share(row)))
            start = bars[-1].end
        bars.append(_bar(study, whole, "all of them", None))
        falls.append(Fall(bars, title=plain(corner) if known["corner"].nunique() > 1 else ""))
    return falls


def shares_note(study: Study, shares: pd.DataFrame) -> str:
    """What the shares are of, for how many of them the intervals hold, and what is not shown or not computed."""
    several = number(shares["corner"].nunique(), "corner")
    total, drawn = shapley.corners(study.plan), shares.loc[shares["seeds"] > 0, "corner"].nunique()
    family = number(int((shares["kind"] == "share").sum()), "share")
    parts = [
        "What changing a factor does on average over all orders in which the factors can be changed, from the "
        f"reference level of each; the shares sum to the whole. The intervals hold together at 95% for the {family} "
        "(Bonferroni). A share in per cent is given where the whole's interval excludes zero."
    ]
    if total > 1:
        cut = (
            f"the first {several} of {total}, in the plan's order" if total > shapley.MOST_CORNERS else f"all {several}"
        )
        parts.append(f"A corner is one way to change every factor; given are {cut}.")
    if drawn > MOST_DRAWN:
        parts.append(f"The figure has the first {MOST_DRAWN}.")
    gone = shares[(shares["kind"] == "whole") & (shares["left_out"] != "")]
    for why, rows in gone.groupby("left_out", sort=False):
        lost = rows["seeds"].iloc[0] == 0
        which = "" if total == 1 else f" of {joined(list(rows['corner']))}"
        parts.append(f"{'Not computed' if lost else 'Left out'}{which}: {why}.")
    return plain(" ".join(parts))


def shares_table(study: Study, shares: pd.DataFrame) -> Table:
    """Every share and every whole."""
    columns = [
        Column("corner", "corner", numeric=False, optional=True),
        Column("name", "changed", numeric=False, adorn=named),
        Column("pairs", "seeds", compose=lambda record: f"{record['pairs']}/{record['planned']}", optional=True),
        Column("effect", "share", unit=study.unit),
        Column("low", "95% CI", unit="simultaneous", compose=lambda record: interval(record["low"], record["high"])),
        Column("share", "of the whole", unit="%"),
        Column("left_out", "left out", numeric=False, optional=True),
    ]
    records = [
        estimate(study, row)
        | {"corner": plain(row["corner"]), "share": fixed(row["share"], 1), "look": _factor_look(study, row)}
        | ({"left_out": ""} if row["kind"] == "share" else {})  # once a corner
        for row in rows_of(shares)
    ]
    return Table(columns, records)


def anova_table(study: Study) -> Table:
    """The table of the analysis of variance, a term a row."""
    columns = [
        Column("term", "term", numeric=False),
        Column("kind", "kind", numeric=False),
        Column("df", "df"),
        Column("sum_sq", "sum of squares", unit=f"({study.unit})²" if study.unit else ""),
        Column("F", "F"),
        Column("p", "p", unit="not adjusted"),
        Column("partial_eta2", "partial η²"),
        Column("left_out", "left out", numeric=False, optional=True),
    ]
    records = [
        {
            "term": plain(row["term"]), "kind": row["kind"], "df": str(row["df"]), "sum_sq": digits(row["sum_sq"]),
            "F": digits(row["F"]), "p": probability(row["p"]), "partial_eta2": fixed(row["partial_eta2"], 3),
            "left_out": plain(row["left_out"]),
        }
        for row in rows_of(study.results.anova())
    ]  # fmt: skip
    return Table(columns, records)


def _bar(
    study: Study, row: Mapping[str, Any], name: str, style: Look | None, start: float = 0.0, after: str = ""
) -> Bar:
    effect, low, high = (None if missing(row[key]) else float(row[key]) for key in ("effect", "low", "high"))
    lost = f"✕ {row['diverged']} of {row['planned']} seeds diverged" if row.get("diverged") else ""
    known = (
        f"{text_of(study, row)}{after}" if effect is not None else "" if lost else plain(row["left_out"]) or "no seed"
    )
    text = "  ".join(filter(None, (known, lost)))
    return Bar(name, style, effect, low, high, text, start)


def _share(row: Mapping[str, Any]) -> str:
    return "" if missing(row["share"]) else f"  {fixed(row['share'], 1)}%"


def _arm_look(study: Study, row: Mapping[str, Any]) -> Look:
    return study.by_id[row["arm"]].look if row["arm"] else look(0)


def _factor_look(study: Study, row: Mapping[str, Any]) -> Look | None:
    names: Sequence[str] = [factor["name"] for factor in study.plan["factors"]]
    return look(1 + names.index(row["factor"])) if row["kind"] == "share" else None
