"""Sections of the report, in the order in which it is read; what they draw and list lives in ``ablate.reporting``."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.reporting import answers, cells, effects, flow, provenance, series, stability, trials, tuning
from ablate.reporting.figures import curves, factorial, forest, gradients, inside, seeds
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
        rows, sentences = answers.forest_rows(study), answers.sentences(study, "arm", "main effect")
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
                caption=answers.forest_caption(study, rows),
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
                "title": title if study.factorial or "secondary" in name else "",
                "table": page.table(table, name, effects.caption(study, name, title)),
                "exports": [("LaTeX", table.latex()), ("CSV", table.csv()), ("Markdown", table.markdown())],
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
        shown, empty = seeds.with_pairs(study, [arm for arm in arms if not arm.baseline])
        if not shown:
            return page.template("nothing.html", text="No seed has completed both an arm and the baseline.")
        return page.figure(
            seeds.seed_lines(study, shown),
            name="seeds",
            alt=f"For each arm, a line for each seed from the baseline's {study.metric} to the arm's",
            caption=f"{seeds.caption(empty)} {cut}".strip(),
        )


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


class GradientFlow(Section):
    """How large gradients and updates are, by layer and step, and whether they vanish or explode."""

    kind: Literal["gradient_flow"] = "gradient_flow"
    order: ClassVar[float] = 4
    title: ClassVar[str] = "Gradient flow"

    def render(self, page: Page) -> str:
        """Heat maps, profiles by depth, update ratios, and the flags with their rule."""
        study: Study = page.study
        if series.block_gradients(study.probes).empty:
            return page.template("nothing.html", text="No gradients were recorded.")
        arms, cut = study.chosen(study.probe("grad_norm"))
        judged = flow.ratios(study)
        flagged = [ratio for ratio in judged if ratio.flag]
        return page.template(
            "gradient_flow.html",
            flagged=flagged,
            table=page.table(flow.table(flagged), "flagged", "Flagged arms") if len(flagged) > 4 else "",
            judged=len(judged),
            unjudged=flow.unjudged(study),
            rule=flow.RULE,
            cut=cut,
            maps=page.figure(
                gradients.heat_maps(study, arms),
                name="gradient-maps",
                alt=f"For each of {len(arms)} arms, the gradient norm by layer and step as colour",
                caption=gradients.MAPS,
            ),
            profiles=page.figure(
                gradients.profiles(study, arms),
                name="gradient-profiles",
                alt="Gradient norms by depth at the first and at the last probed step, of weights and of the stream",
                caption=gradients.PROFILES,
            ),
            updates=page.figure(
                gradients.updates(study, arms),
                name="updates",
                alt="Update-to-weight ratio by step, and the first block's gradient norm over the last block's",
                caption=gradients.UPDATES,
            ),
        )


class Stability(Section):
    """What the runs were like inside, which losses spiked, and which runs diverged."""

    kind: Literal["stability"] = "stability"
    order: ClassVar[float] = 5
    title: ClassVar[str] = "Stability"

    def render(self, page: Page) -> str:
        """A table by arm, the insides, the spikes, and the diverged runs."""
        study: Study = page.study
        arms, cut = study.chosen(study.curves)
        spiked, diverged = stability.spikes(study), stability.diverged(study)
        return page.template(
            "stability.html",
            table=page.table(stability.by_arm(study), "stability-arms", "How the runs of each arm went"),
            cut=cut,
            rule=stability.spike_rule(study),
            ended=len(study.results.courses()),
            diverged=page.table(diverged, "diverged-runs", "Every run that diverged") if diverged.records else "",
            insides=page.figure(
                inside.insides(study, arms),
                name="insides",
                alt="Gradient norm, stream RMS, attention logits and entropy, zeros and dead units of every arm",
                caption=inside.caption(study),
            ),
            spikes=page.figure(
                inside.spikes(study, study.measured(spiked), spiked),
                name="spikes",
                alt=f"The steps at which training losses spiked: {len(spiked)} in all",
                caption="A mark for each step that spiked, each seed at its own height. Arms without are left out.",
            )
            if len(spiked)
            else "",
        )


class Curves(Section):
    """The objective along the run."""

    kind: Literal["curves"] = "curves"
    order: ClassVar[float] = 6
    title: ClassVar[str] = "Curves"

    def render(self, page: Page) -> str:
        """Means with their bands, against tokens."""
        study: Study = page.study
        arms, cut = study.chosen(study.curve(study.metric))
        if not arms:
            return page.template("nothing.html", text="No run was evaluated.")
        return page.figure(
            curves.objective(study, arms),
            name="curves",
            alt=f"{study.metric} of {len(arms)} arms against training tokens",
            caption=f"{curves.caption(study, arms)} {cut}",
        )


class Tuning(Section):
    """What each arm was tuned to, of how many combinations, and whether the best one lies at an edge."""

    kind: Literal["tuning"] = "tuning"
    order: ClassVar[float] = 7
    title: ClassVar[str] = "Tuning"

    def render(self, page: Page) -> str:
        """A table; nothing where nothing was tuned."""
        study: Study = page.study
        if not study.plan.get("tuning"):
            return ""
        table = page.table(tuning.tuning_table(study), "tuning", "The tuned values of each arm")
        tried = page.table(tuning.tried_table(study), "tried", "The combinations that each arm has tried")
        return page.template("tuning.html", how=tuning.how(study), table=table, tried=tried)


class Unfinished(Section):
    """Every run that did not finish, why, and what the analysis did about it."""

    kind: Literal["unfinished"] = "unfinished"
    order: ClassVar[float] = 8
    title: ClassVar[str] = "Runs that did not finish"

    def render(self, page: Page) -> str:
        """Counts by arm and end, then the runs with the ends of their logs; one sentence where all completed."""
        groups = trials.groups(page.study)
        if not groups:
            return page.template("nothing.html", text="Every planned trial completed.")
        counts = page.table(trials.counts_table(page.study), "ends", "Trials of each arm by how they ended")
        return page.template("unfinished.html", groups=groups, counts=counts)


class Trials(Section):
    """Every trial, to filter and sort."""

    kind: Literal["trials"] = "trials"
    order: ClassVar[float] = 9
    title: ClassVar[str] = "All trials"

    def render(self, page: Page) -> str:
        """The table, or its first rows where there are many."""
        table, total = trials.trials_table(page.study, trials.MOST_SHOWN), len(page.study.trials)
        shown = page.table(table, "trials-table", f"{total} planned trials", tall=True)
        return page.template("trials.html", table=shown, shown=len(table.records), total=total)


class Reproduce(Section):
    """How to run it again, and by which formulas and rules the figures were made."""

    kind: Literal["reproduce"] = "reproduce"
    order: ClassVar[float] = 10
    title: ClassVar[str] = "Reproduce"

    def render(self, page: Page) -> str:
        """Command, experiment, versions, components, plan and methods."""
        study: Study = page.study
        parts = provenance.components(study)
        return page.template(
            "reproduce.html",
            command=provenance.command(study),
            needed=provenance.needed(study),
            facts=provenance.facts(study),
            yaml=provenance.yaml(study),
            versions=provenance.versions(study),
            count=len(parts.records),
            components=page.table(parts, "components", "Every component, where it came from, and its source's hash"),
            arms=page.table(provenance.arms(study), "arm-sizes", "Size and identity of each arm"),
            baseline=provenance.baseline_config(study),
            plan=provenance.rest_of_plan(study),
            methods=page.template("methods.html", study=study, flow=flow.RULE),
        )
