"""The tables of effects: each arm against the baseline and, in a factorial design, each level and each interaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from ablate.records.spelling import in_words
from ablate.reporting.numbers import big, digits, fixed, interval, level, missing, plain, probability, whole
from ablate.reporting.palette import GLYPHS, Look
from ablate.reporting.study import Study
from ablate.reporting.tables import Column, Table

Record = dict[str, Any]


TONES = {
    "better": "v-better",
    "better, size uncertain": "v-better",
    "worse": "v-worse",
    "worse, size uncertain": "v-worse",
    "no practical difference": "v-none",
    "identical": "v-none",
    "undecided": "v-unsure",
    "one seed, no interval": "v-unsure",
    "not comparable": "v-broken",
    "diverged": "v-broken",
}
"""The colour class of each verdict's word; the word itself is always there too."""


def mark(look: Look) -> Markup:
    """An arm's marker in its colour, which ties a name in the text to its line in a figure."""
    return Markup('<span class="mark" aria-hidden="true" style="color:{}">{}</span>').format(
        look.colour, GLYPHS[look.marker]
    )


def named(record: Mapping[str, Any], text: str) -> Markup:
    """A name after its arm's marker; a long one wraps beside it."""
    marker = mark(record["look"]) if record.get("look") else Markup("")
    return Markup('<span class="name">{}<span>{}</span></span>').format(marker, text)


def linked(record: Mapping[str, Any], text: str) -> Markup:
    """An arm's name that leads to what there is to know of the arm itself."""
    return named(record, Markup('<a href="#arm-{}">{}</a>').format(record["arm"], text))


def label_of(record: Mapping[str, Any]) -> str:
    """An arm's short name, where it has one."""
    return str(record.get("label") or record["name"])


def badge(word: str) -> Markup:
    """A verdict's word with its colour at its side."""
    return Markup('<span class="badge {}">{}</span>').format(TONES.get(word, "v-none"), word)


def arms_table(study: Study) -> Table:
    """Every arm, the baseline pinned on top."""
    columns = [
        Column("name", "arm", numeric=False, adorn=linked, compose=label_of),
        *_estimate_columns(study),
        *([Column("tuned", "tuned to", numeric=False)] if study.plan.get("tuning") else []),
        Column("parameters_delta", "params Δ", unit="%", optional=True, adorn=_parameters),
        Column("flops_delta", "FLOPs Δ", unit="%", optional=True),
        Column("tokens_delta", "tokens Δ", unit="%", optional=True),
        Column("speed_delta", "tokens/s Δ", unit="%", optional=True, compose=_speed),
        Column("hours", f"{_device(study)}-hours", unit="all seeds", optional=True),
    ]
    records = [_baseline(study, study.metric), *(_arm(study, row) for row in rows_of(study.effects))]
    return Table(columns, records, pinned=1, file="effects.csv")


def main_effects_table(study: Study) -> Table:
    """Every level of every factor against its reference, averaged over the other factors."""
    head = Column("name", "main effect", numeric=False, adorn=named)
    columns = [head, *_estimate_columns(study, means=False), _eta(), _left_out()]
    return Table(columns, [estimate(study, row) for row in rows_of(study.results.main_effects())])


def interactions_table(study: Study) -> Table:
    """Every two-way interaction."""
    columns = [
        column for column in _estimate_columns(study, means=False) if column.key not in ("verdict", "diverged", "stuck")
    ]
    rows = rows_of(study.results.interactions())
    records = [estimate(study, row) | {"large": "large" if row["large"] else ""} for row in rows]
    head = Column("name", "interaction", numeric=False, adorn=named)
    return Table([head, *columns, Column("large", "size", numeric=False), _eta(), _left_out()], records)


def simple_effects_table(study: Study) -> Table:
    """The simple effects that are judged, since an interaction is large."""
    frame = study.results.simple_effects()
    head = Column("name", "simple effect", numeric=False, adorn=named)
    columns = [head, *_estimate_columns(study, means=False), _left_out()]
    return Table(columns, [estimate(study, row) for row in rows_of(frame[frame["judged"].astype(bool)])])


def secondary_table(study: Study, metric: str) -> Table:
    """Every arm's effect on a secondary metric, with its interval and no verdict; the baseline pinned on top."""
    unit = plain(study.plan["units"].get(metric, ""))
    keys = ("name", "mean", "sd", "effect", "low", "agree")
    head = Column("name", "arm", numeric=False, adorn=named, compose=label_of)
    columns = [column for column in (head, *_estimate_columns(study, unit=unit)) if column.key in keys]
    records = [_baseline(study, metric), *(_arm(study, row) for row in rows_of(study.results.effects(metric)))]
    return Table(columns, records, pinned=1, file="effects.csv")


def tables(study: Study) -> list[tuple[str, str, Table]]:
    """The tables that the page shows, each with its id and its title; the one that carries the verdicts first."""
    secondary = [
        (f"effects-secondary-{index}", f"Secondary, without a verdict: {plain(metric)}", secondary_table(study, metric))
        for index, metric in enumerate(study.plan["objective"].get("secondary", ()))
    ]
    return [*_tables(study), *secondary]


def _tables(study: Study) -> list[tuple[str, str, Table]]:
    if not study.factorial:
        return [("effects-arms", "Arms", arms_table(study))]
    found = [("effects-main", "Main effects", main_effects_table(study))]
    if (pairs := interactions_table(study)).records:
        found.append(("effects-interactions", "Interactions", pairs))
    if (simple := simple_effects_table(study)).records:
        found.append(("effects-simple", "Simple effects where an interaction is large", simple))
    return [*found, ("effects-arms", "Arms, each against the baseline", arms_table(study))]


def as_text(study: Study, table: Table) -> list[tuple[str, str]]:
    """A table as texts to copy, each with its format's name; none where the page would be too large with them."""
    if study.leaves_out("tables as text"):
        return []
    return [("LaTeX", table.latex()), ("CSV", table.csv()), ("Markdown", table.markdown())]


def caption(study: Study, name: str, title: str) -> str:
    """What a table is about."""
    return title if "secondary" in name else f"{title}: effects on {study.metric_and_unit}"


def note(study: Study) -> str:
    """What the tables leave unsaid."""
    short = " Arms are named by the levels in which they differ from the baseline." if study.factorial else ""
    if study.factorial:
        short += (
            " Partial η² is t² / (t² + seeds - 1), an effect against its own variation over the seeds; in the analysis "
            "of variance a term is held against the residual of the whole model, so that its partial η² is another."
        )
    if whole := study.all_changed:
        short = f" The arm of all changes at once is called “{whole}”."
    return (
        "Δ is the mean of the differences paired by seed, with its simultaneous 95% interval. Columns in which all "
        f"rows agree are left out; effects.csv has every column, and effects.tex the tables for LaTeX.{short} "
        "tokens/s depends on what else the machine did meanwhile: it is a hint, and no part of any verdict."
    )


def effects_csv(study: Study) -> str:
    """All effects, one row each, with every column; what does not apply to a kind of effect is empty."""
    keys = [
        "kind", "metric", "name", "arm", *(f"factor.{plain(factor['name'])}" for factor in study.plan["factors"]),
        "pairs", "planned", "mean", "sd", "baseline_mean", "effect", "low", "high", "low95", "high95", "p", "p_holm",
        "p_sign_flip", "agree", "correlation", "variance_ratio", "partial_eta2", "diverged", "diverged_low",
        "diverged_high", "stuck", "settle", "parameters", "parameters_delta", "flops", "flops_delta",
        "tokens_delta", "speed_delta", "hours", "tuned",
        "left_out", "verdict",
    ]  # fmt: skip
    objective = plain(study.metric)
    records = [{**record, "kind": "arm", "metric": objective} for record in arms_table(study).records]
    if study.factorial:
        frames = {
            "main effect": study.results.main_effects(),
            "interaction": study.results.interactions(),
            "simple effect": study.results.simple_effects(),
        }
        for kind, frame in frames.items():
            about: Record = {"kind": kind, "metric": objective}
            records += [estimate(study, row) | about | _unjudged(row) for row in rows_of(frame)]
    for metric in study.plan["objective"].get("secondary", ()):
        rows = secondary_table(study, metric).records
        records += [{**record, "kind": "secondary", "metric": plain(metric)} for record in rows]
    return Table([Column(key, key) for key in keys], records).csv()


def effects_latex(study: Study) -> str:
    """The tables of effects for a paper; they need the package booktabs."""
    return "\n".join(
        # In one line, so that nothing gets out of the comment.
        f"% {' '.join(caption(study, name, title).split())}\n{table.latex()}"
        for name, title, table in tables(study)
        if table.records
    )


# --- columns --------------------------------------------------------------------------------------------------------


def _estimate_columns(study: Study, *, means: bool = True, unit: str | None = None) -> list[Column]:
    unit = study.unit if unit is None else unit
    of_arm = [Column("mean", "mean", unit=unit), Column("sd", "sd", unit=unit)] if means else []
    return [
        Column("pairs", "seeds", compose=lambda record: f"{record['pairs']}/{record['planned']}", optional=True),
        *of_arm,
        Column("effect", "Δ", unit=unit),
        Column("low", "95% CI", unit="simultaneous", compose=lambda record: interval(record["low"], record["high"])),
        Column("p_holm", "p", unit="t test, Holm"),
        Column("agree", "agree", unit="seeds", compose=_agree),
        Column("verdict", "verdict", numeric=False, adorn=lambda record, text: badge(text)),
        Column("diverged", "diverged", optional=True),
        Column("stuck", "stuck", optional=True),
        Column("settle", "to settle", unit="seeds", optional=True),
    ]


def _agree(record: Mapping[str, Any]) -> str:
    return f"{record['agree']}/{record['pairs']}" if record["agree"] and record["pairs"] not in ("", "0") else ""


def _speed(record: Mapping[str, Any]) -> str:
    """Whole per cents: the rest is the machine's."""
    return fixed(float(record["speed_delta"]), 0, sign=True) if record["speed_delta"] else ""


def _parameters(record: Mapping[str, Any], text: str) -> Markup:
    return Markup('<span title="{} parameters">{}</span>').format(big(float(record["parameters"])), text)


def _eta() -> Column:
    return Column("partial_eta2", "partial η²")


def _left_out() -> Column:
    return Column("left_out", "left out", numeric=False, optional=True)


# --- records: every value is text from here on ----------------------------------------------------------------------


def _baseline(study: Study, metric: str) -> Record:
    arm, values = study.baseline, study.values_of(metric)[study.baseline.id].dropna()
    plan = study.planned[arm.id]
    planned = study.trials[study.trials["arm"] == arm.id]
    record: Record = dict.fromkeys(
        ("effect", "low", "high", "low95", "high95", "p", "p_holm", "p_sign_flip", "agree", "correlation",
         "variance_ratio", "settle", "parameters_delta", "flops_delta", "tokens_delta", "speed_delta", "verdict",
         "baseline_mean"), ""
    )  # fmt: skip
    return record | {
        "arm": arm.id, "name": arm.name, "label": arm.label, "look": arm.look, **_levels(study, arm.levels),
        "pairs": whole(len(values)), "planned": whole(len(planned)),
        "mean": fixed(values.mean() if len(values) else None, study.places),
        "sd": fixed(values.std() if len(values) > 1 else None, study.places),
        "diverged": whole(study.diverged(arm)), "parameters": whole(arm.parameters), "flops": digits(plan["flops"], 6),
        "tuned": plain(in_words(plan.get("tuned", {}))), "hours": _hours(study, arm.id),
        "stuck": "",
    }  # fmt: skip


def _arm(study: Study, row: Mapping[str, Any]) -> Record:
    arm = study.by_id[row["arm"]]
    plan = study.planned[arm.id]
    changes = ("parameters_delta", "flops_delta", "tokens_delta", "speed_delta")
    deltas = {key: fixed(row[key], 1, sign=True) for key in changes}
    return estimate(study, row) | {
        "arm": arm.id, "label": arm.label, "look": arm.look, **_levels(study, arm.levels), **deltas,
        **{key: fixed(row[key], study.places) for key in ("mean", "sd", "baseline_mean")},
        **{key: digits(row[key], 2) for key in ("correlation", "variance_ratio")},
        **{key: fixed(row[key], 2) for key in ("diverged_low", "diverged_high")},
        "parameters": whole(arm.parameters), "flops": digits(plan["flops"], 6),
        "tuned": plain(in_words(plan.get("tuned", {}))), "hours": _hours(study, arm.id),
    }  # fmt: skip


def _device(study: Study) -> str:
    """What the hours of training are hours of."""
    return "CPU" if study.plan["device"] == "cpu" else "GPU"


def _hours(study: Study, arm: str) -> str:
    """The hours that an arm's sealed trials were in training, those that diverged among them."""
    seconds = study.seconds.get(arm)
    return "" if seconds is None else digits(seconds / 3600, 3)


def estimate(study: Study, row: Mapping[str, Any]) -> Record:
    """An effect's own columns. A bound is never rounded to zero, since the verdict turns on which side of it it is."""
    known = [row[key] for key in ("low", "high") if not missing(row[key])]
    places = study.places
    while places < 13 and any(bound != 0 and round(bound, places) == 0 for bound in known):
        places += 1
    return {
        "name": plain(row["name"]),
        "pairs": whole(row.get("pairs", row.get("seeds"))),
        "planned": whole(row["planned"]),
        **{key: fixed(row[key], places, sign=True) for key in ("effect", "low", "high", "low95", "high95")},
        **{key: probability(row.get(key)) for key in ("p", "p_holm", "p_sign_flip")},
        **{key: whole(row.get(key)) for key in ("agree", "diverged", "stuck", "settle")},
        "partial_eta2": fixed(row.get("partial_eta2"), 3),
        "left_out": plain(str(row.get("left_out", ""))),
        "verdict": row.get("verdict", ""),
    }


def _unjudged(row: Mapping[str, Any]) -> Record:
    """No verdict for a simple effect that gets none, since no large interaction involves it."""
    return {} if row.get("judged", True) else {"verdict": ""}


def _levels(study: Study, levels: Mapping[str, Any]) -> Record:
    return {
        f"factor.{plain(factor['name'])}": level(levels[factor["name"]]) if factor["name"] in levels else ""
        for factor in study.plan["factors"]
    }


def text_of(study: Study, row: Mapping[str, Any]) -> str:
    """An effect and its interval in the words of the table, for a figure."""
    record = estimate(study, row)
    return " ".join(part for part in (record["effect"], interval(record["low"], record["high"])) if part)


def rows_of(frame: pd.DataFrame) -> Sequence[Mapping[str, Any]]:
    """A frame's rows as mappings."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
