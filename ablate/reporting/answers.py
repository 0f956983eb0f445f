"""The first screen: what the study found, in sentences and as the rows of the forest plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ablate.analysis.comparability import more_tokens, not_matched, sizes_matched
from ablate.analysis.predictions import predicted
from ablate.analysis.verdict import Verdict
from ablate.records.frames import spelled
from ablate.reporting.effects import TONES, rows_of, text_of
from ablate.reporting.factors import level_means
from ablate.reporting.figures import forest
from ablate.reporting.figures.forest import Row
from ablate.reporting.numbers import missing, plain
from ablate.reporting.palette import Look, look
from ablate.reporting.study import Study

MOST_ROWS = 60
"""The forest plot draws no more effects than these."""
MOST_SHOWN = 8
"""With more verdicts than these, the rest waits behind a line to open."""


@dataclass(frozen=True)
class Sentence:
    """One verdict in words: the name that it begins with, and the rest."""

    name: str
    before: str
    after: str
    tone: str
    badge: str = ""
    """What the arm has more or less of than the baseline, where sizes or training tokens are not matched."""
    matched: str = ""
    """The one size that is matched all the same; "" where none is."""


@dataclass(frozen=True)
class Prediction:
    """One prediction in words, and how it was judged."""

    text: str
    judged: str
    tone: str


JUDGED = {"confirmed": "v-better", "contradicted": "v-worse", "open": "v-unsure"}
"""The colour class of each judgement; the word itself is always there too."""


def predictions(study: Study) -> list[Prediction]:
    """What was predicted before the run, in the plan's order."""
    rows = study.results.predictions().to_dict("records")
    return [Prediction(plain(predicted(row)), row["judged"], JUDGED[row["judged"]]) for row in rows]


def shown(sentences: Sequence[Sentence | Prediction]) -> int:
    """How many sentences or predictions the page shows at once."""
    return len(sentences) if len(sentences) <= MOST_SHOWN else MOST_SHOWN - 2


def sentences(study: Study, *kinds: str) -> list[Sentence]:
    """The verdicts of these kinds as sentences, worst first."""
    return [
        _sentence(verdict, *_badge(study, verdict)) for verdict in study.results.verdicts() if verdict.kind in kinds
    ]


def _badge(study: Study, verdict: Verdict) -> tuple[str, str]:
    if verdict.arm not in study.effects.index:
        return "", ""
    row: Any = study.effects.loc[verdict.arm]
    changes = float(row["parameters_delta"]), float(row["flops_delta"])
    more = not_matched(*changes).split(" and ")[0], more_tokens(float(row["tokens_delta"]))
    return ", ".join(filter(None, more)), sizes_matched(study.plan, *changes)


def _sentence(verdict: Verdict, badge: str, matched: str) -> Sentence:
    text, end = verdict.sentence, verdict.at + len(verdict.name)
    name, before, after = map(plain, (verdict.name, text[: verdict.at], text[end:]))
    return Sentence(name, before, after, TONES[verdict.word], badge, matched)


def forest_caption(study: Study, rows: Sequence[Row]) -> str:
    """What the forest plot shows, and what is special in this one."""
    against = "reference level of its factor" if study.factorial else "baseline"
    drawn = forest.shown(study, rows)
    parts = [f"Difference to the {against}, paired by seed: mean"]
    if drawn.intervals:
        parts.append(", simultaneous 95% interval")
    if drawn.dots:
        parts.append(", a faint dot for each seed")
    if any(row.diverged for row in rows):
        parts.append(", and on the right how many diverged (✕)")
    parts.append(".")
    if drawn.arrows:
        parts.append(" An arrow stands for an effect beyond the axis and its interval; the numbers are beside it.")
    if drawn.cut_intervals:
        parts.append(" An interval that goes on beyond the axis ends in a triangle.")
    if drawn.cut_dots:
        parts.append(" Seeds beyond the axis have no dot.")
    if any(row.pale and row.effect is not None for row in rows):
        parts.append(" Pale rows are not comparable: their numbers are of what finished alone.")
    return "".join(parts)


def largest(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The rows that the forest plot has room for, and what it says of the others.

    Returns:
        All rows, or those of the largest effects in the order that they have, those that refine others last to stay;
        and a sentence that says what was left out, or "".
    """
    if len(rows) <= MOST_ROWS:
        return list(rows), ""
    sizes = [float("inf") if row.effect is None else abs(row.effect) for row in rows]
    kept = sorted(range(len(rows)), key=lambda place: (rows[place].indent, -sizes[place]))[:MOST_ROWS]
    said = f" Shown are the {MOST_ROWS} largest of {len(rows)} effects; the tables have all."
    return [rows[place] for place in sorted(kept)], said


def forest_rows(study: Study) -> list[Row]:
    """The rows of the forest plot in the order of the sentences; simple effects under the main effect they refine."""
    verdicts = study.results.verdicts()
    if not study.factorial:
        effects = study.effects
        return [effect_row(study, effects.loc[verdict.arm]) for verdict in verdicts if verdict.arm in effects.index]
    main = {row["name"]: row for row in rows_of(study.results.main_effects())}
    simple = {row["name"]: row for row in rows_of(study.results.simple_effects())}
    judged = [row for row in simple.values() if row["judged"]]
    rows: list[Row] = []
    for verdict in verdicts:
        if verdict.kind != "main effect":
            continue
        row = main[verdict.name]
        style = look(1 + [factor["name"] for factor in study.plan["factors"]].index(row["factor"]))
        rows.append(_level_row(study, row, plain(row["name"]), style))
        for part in judged:
            if (part["factor"], spelled(part["level"])) == (row["factor"], spelled(row["level"])):
                where = f"at {plain(part['name']).split(' at ', 1)[-1]}"
                rows.append(_level_row(study, part, where, style, indent=True))
    return rows


def effect_row(study: Study, row: Any, name: str = "") -> Row:
    """The row of an arm's effect; with a ``name``, of one that refines the row above it."""
    arm = study.by_id[row["arm"]]
    seeds = [] if name else study.differences[arm.id].dropna().tolist()
    return Row(name or arm.label, arm.look, *_estimate(row), seeds=seeds, diverged=int(row["diverged"]),
               text=text_of(study, dict(row)), indent=bool(name), pale=row["verdict"] == "not comparable")  # fmt: skip


def _level_row(study: Study, row: Any, name: str, style: Look, *, indent: bool = False) -> Row:
    return Row(name, style, *_estimate(row), seeds=_differences(study, row), diverged=int(row["diverged"]),
               text=text_of(study, row), indent=indent, pale=row["verdict"] == "not comparable")  # fmt: skip


def _estimate(row: Any) -> tuple[float | None, float | None, float | None]:
    effect, low, high = (None if missing(row[key]) else float(row[key]) for key in ("effect", "low", "high"))
    return effect, low, high


def _differences(study: Study, row: Any) -> list[float]:
    """Each seed's own effect of a level; nothing where cells had to be left out, since the dots would be of others."""
    if row["cells"] < row["cells_planned"] or row["seeds"] < row["planned"]:
        return []
    factors, sides = [row["factor"]], [[spelled(row["level"])], [spelled(row["against"])]]
    if "at_factor" in row:
        factors, sides = [*factors, row["at_factor"]], [[*side, spelled(row["at_level"])] for side in sides]
    means = level_means(study, factors, sides)
    return [] if means.empty else (means.iloc[:, 0] - means.iloc[:, 1]).tolist()
