"""The first sections: the answer, the tables behind it, and each seed's own."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.reporting import answers, effects
from ablate.reporting.figures import forest, seeds
from ablate.reporting.study import Study
from ablate.slots import Page, Section


class Verdict(Section):
    """The answer: a sentence for each effect, worst first, the caveats, and a forest plot."""

    kind: Literal["verdict"] = "verdict"
    order: ClassVar[float] = 1
    title: ClassVar[str] = "Verdict"

    def render(self, page: Page) -> str:
        """The sentences beside the forest plot."""
        study: Study = page.study
        rows, cut = answers.largest(answers.forest_rows(study))
        sentences = answers.sentences(study, "arm", "main effect")
        foretold = answers.predictions(study)
        return page.template(
            "verdict.html",
            sentences=sentences,
            shown=answers.shown(sentences),
            predictions=foretold,
            most=answers.shown(foretold),
            refined=len(answers.sentences(study, "simple effect")),
            caveats=study.results.caveats(),
            beside=len(rows) > 8,
            forest=page.figure(
                forest.forest(study, rows),
                name="forest",
                alt=f"Forest plot of {len(rows)} effects on {study.metric}; the table of effects has its numbers",
                caption=answers.forest_caption(study, rows) + cut,
            ),
        )


class Effects(Section):
    """The tables of effects, which sort, and copy as LaTeX, CSV and Markdown."""

    kind: Literal["effects"] = "effects"
    order: ClassVar[float] = 2
    title: ClassVar[str] = "Effects"

    def render(self, page: Page) -> str:
        """Arms against the baseline; in a factorial design main effects and interactions too."""
        study: Study = page.study
        parts = [
            {
                "name": name,
                "table": page.table(table, name, effects.caption(study, name, title)),
                "exports": effects.as_text(study, table),
            }
            for name, title, table in effects.tables(study)
        ]
        return page.template("effects.html", parts=parts, note=effects.note(study))


class Seeds(Section):
    """What each arm did to each seed, where arms differ from the baseline in one thing."""

    kind: Literal["seeds"] = "seeds"
    order: ClassVar[float] = 3
    title: ClassVar[str] = "Seed by seed"

    def render(self, page: Page) -> str:
        """A panel an arm; nothing in a factorial design."""
        study: Study = page.study
        arms, cut = study.chosen()
        if study.factorial or len(arms) < 2:
            return ""
        if study.leaves_out("seed marks"):
            return page.template("nothing.html", text="Left out, to keep the page small: it has a line for each seed.")
        shown, empty = seeds.with_pairs(study, [arm for arm in arms if not arm.baseline])
        if not shown:
            return page.template("nothing.html", text="No seed has completed both an arm and the baseline.")
        return page.figure(
            seeds.seed_lines(study, shown),
            name="seeds",
            alt=f"For each arm, a line for each seed from the baseline's {study.metric} to the arm's",
            caption=f"{seeds.caption(empty)} {cut}".strip(),
        )
