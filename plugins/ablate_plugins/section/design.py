"""What the kind of experiment adds: the factors of a factorial design, learning-rate sweeps, trends over numbers."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.analysis.trends import sentence
from ablate.reporting import answers, cells, sweeps
from ablate.reporting.effects import rows_of
from ablate.reporting.figures import factorial, learning_rate, trends
from ablate.reporting.study import Study
from ablate.slots import Page, Section


class Factors(Section):
    """Main effects, interactions, simple effects and all cells of a factorial design."""

    kind: Literal["factors"] = "factors"
    order: ClassVar[float] = 3
    title: ClassVar[str] = "Factors"

    def render(self, page: Page) -> str:
        """Nothing in any other design."""
        study: Study = page.study
        if not study.factorial or not study.plan["factors"]:
            return ""
        pairs = study.results.interactions()
        return page.template(
            "factors.html",
            metric=study.metric_and_unit,
            grid=cells.grid(study),
            simple=answers.sentences(study, "simple effect"),
            main=page.figure(
                factorial.main_effects(study),
                name="main-effects",
                alt=f"Mean {study.metric} of each level of each factor",
                caption="Mean of each level over the cells of all other factors, with a faint line for each seed.",
            ),
            interactions=page.figure(
                factorial.interactions(study, pairs),
                name="interactions",
                alt=f"Mean {study.metric} by the levels of each pair of factors",
                caption=factorial.CAPTION,
            )
            if len(pairs)
            else "",
        )


class LearningRate(Section):
    """What other learning rates than the best cost each architecture, where rates were swept."""

    kind: Literal["learning_rate"] = "learning_rate"
    order: ClassVar[float] = 3.4
    title: ClassVar[str] = "Learning rate"

    def render(self, page: Page) -> str:
        """A curve and a row an architecture; nothing where no rate was swept."""
        study: Study = page.study
        rows = rows_of(study.results.sensitivity())
        if not rows:
            why = sweeps.absent(study)
            return page.template("nothing.html", text=why) if why else ""
        return page.template(
            "learning_rate.html",
            curves=page.figure(
                learning_rate.curves(study, rows, sweeps.looks(study, rows)),
                name="learning-rates",
                alt=f"{study.metric} over the learning rate, for each architecture; the table has the numbers",
                caption=learning_rate.caption(study, rows),
            ),
            table=page.table(sweeps.rates_table(study), "rates", "What each architecture makes of learning rates"),
            how=sweeps.how(study),
        )


class Trends(Section):
    """How the objective moves with each numeric factor, as depth, width or steps."""

    kind: Literal["trends"] = "trends"
    order: ClassVar[float] = 3.6
    title: ClassVar[str] = "Trends"

    def render(self, page: Page) -> str:
        """A sentence and a panel a factor; nothing where no factor has three positive numbers as levels."""
        study: Study = page.study
        found = study.results.fitted()
        if not found:
            return ""
        drawn = [trend for trend in found if len(trend.values)]
        return page.template(
            "trends.html",
            sentences=[sentence(row, study.results.objective) for row in rows_of(study.results.trends())],
            slopes=page.figure(
                trends.slopes(study, drawn),
                name="trends",
                alt=f"{study.metric} over the level of each numeric factor, with the line that is fitted",
                caption=trends.CAPTION,
            )
            if drawn
            else "",
        )
