"""What the kind of experiment adds: factors, the path of an ablation, learning-rate sweeps, trends over numbers."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.analysis import ablation, anova, tasks
from ablate.analysis.comparability import blocked
from ablate.analysis.trends import sentence
from ablate.reporting import answers, cells, sweeps, wholes
from ablate.reporting import tasks as task_tables
from ablate.reporting.effects import rows_of
from ablate.reporting.figures import factorial, learning_rate, trends
from ablate.reporting.figures import tasks as task_figures
from ablate.reporting.figures.waterfall import waterfall
from ablate.reporting.study import Study
from ablate.slots import Page, Section

APART = "The tasks have the objective in different units, so nothing is averaged over them."


class Factors(Section):
    """Main effects, interactions, Shapley shares, analysis of variance and all cells of a factorial design."""

    kind: Literal["factors"] = "factors"
    order: ClassVar[float] = 3
    title: ClassVar[str] = "Factors"

    def render(self, page: Page) -> str:
        """Nothing in any other design."""
        study: Study = page.study
        if not study.factorial or not study.plan["factors"]:
            return ""
        pairs, shares = study.results.interactions(), study.results.shapley()
        falls = wholes.share_falls(study, shares)
        how = anova.how(study.plan, study.trials)
        return page.template(
            "factors.html",
            metric=study.metric_and_unit,
            grid=None if study.apart_in_units else cells.grid(study),
            apart=study.apart_in_units,
            simple=answers.sentences(study, "simple effect"),
            shares=page.table(wholes.shares_table(study, shares), "shapley", "Each with its interval")
            if len(shares)
            else "",
            shares_note=wholes.shares_note(study, shares),
            falls=page.figure(
                waterfall(study, falls, f"Δ {study.metric_and_unit}"),
                name="shares",
                alt="The Shapley share of each factor, one after the other, and the whole",
                caption=wholes.SHARES,
            )
            if falls
            else "",
            anova=page.table(wholes.anova_table(study), "anova", "The sum of squares of each term") if how else "",
            anova_how=how,
            main=page.template("nothing.html", text=APART)
            if study.apart_in_units
            else page.figure(
                factorial.main_effects(study),
                name="main-effects",
                alt=f"Mean {study.metric} of each level of each factor",
                caption="Mean of each level over the cells of all other factors, with a faint line for each seed.",
            ),
            interactions=page.template("nothing.html", text=APART)
            if study.apart_in_units
            else page.figure(
                factorial.interactions(study, pairs),
                name="interactions",
                alt=f"Mean {study.metric} by the levels of each pair of factors",
                caption=factorial.CAPTION,
            )
            if len(pairs)
            else "",
        )


class Tasks(Section):
    """Every effect at each task, and what the architectures come to over ten tasks or more."""

    kind: Literal["tasks"] = "tasks"
    order: ClassVar[float] = 3.5
    title: ClassVar[str] = "Tasks"

    def render(self, page: Page) -> str:
        """Nothing where all arms are on one task, or no one factor says which they are on."""
        study: Study = page.study
        found = tasks.Tasks.of(study.plan)
        effects = study.results.task_effects()
        if found is None or effects.empty:
            return ""
        summary = study.results.tasks()
        looks = task_figures.looks_of(effects, summary)
        return page.template(
            "tasks.html",
            how=next(blocked(study.plan, found.factor)),
            figure=page.figure(
                task_figures.by_task(study, effects, looks),
                name="by-task",
                alt=f"Effects on {study.metric} at each of {len(found.names)} tasks; the table below has the numbers",
                caption=task_figures.caption(effects),
            ),
            table=page.table(task_tables.effects_by_task(study), "task-effects", "Effects within each task"),
            why=found.unsummarised() or ("" if len(summary) else "No architecture has a score on every task yet."),
            summary=page.figure(
                task_figures.summary(summary, looks),
                name="iqm",
                alt=f"Interquartile mean score of {len(summary)} architectures",
                caption=f"Interquartile mean over {len(found.names)} tasks and all seeds, with its bootstrap interval.",
            )
            if len(summary)
            else "",
            summary_table=page.table(task_tables.summary(study), "task-summary", "Scores over all tasks")
            if len(summary)
            else "",
            profiles=page.figure(
                task_figures.profiles(study.results.profiles(), looks),
                name="profiles",
                alt="Performance profiles: the share of runs above each score, a line an architecture",
                caption="Performance profiles: a line that is higher is better; bands hold at each score alone.",
            )
            if len(summary)
            else "",
        )


class AblationPath(Section):
    """What each part changes when it is removed or added alone, and whether the parts add up to the whole."""

    kind: Literal["ablation_path"] = "ablation_path"
    order: ClassVar[float] = 2.5
    title: ClassVar[str] = "Ablation path"

    def render(self, page: Page) -> str:
        """A sentence and a waterfall; nothing in other designs, or where there is one part."""
        study: Study = page.study
        path = study.results.ablation()
        if path.empty:
            return ""
        fall = wholes.path_fall(study, path)
        return page.template(
            "ablation_path.html",
            sentence=ablation.sentence(study.plan, path),
            figure=page.figure(
                waterfall(study, [fall], wholes.path_label(study)),
                name="path",
                alt=f"Waterfall of {len(fall.bars) - 3} parts, their sum, and all of them at once",
                caption=wholes.path_caption(study, path),
            ),
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
