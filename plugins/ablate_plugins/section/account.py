"""Every run, and how to run it again."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.analysis.course import STUCK
from ablate.reporting import flow, provenance, trials
from ablate.reporting.study import Study
from ablate.slots import Page, Section


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
        """The table with what it is filtered by."""
        table = trials.trials_table(page.study)
        shown = page.table(table, "trials-table", f"{len(table.records)} planned trials", tall=True)
        return page.template("trials.html", table=shown)


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
            unseen=provenance.extends_unseen(study),
            versions=provenance.versions(study),
            count=len(parts.records),
            components=page.table(parts, "components", "Every component, where it came from, and its source's hash"),
            arms=page.table(provenance.arms(study), "arm-sizes", "Size and identity of each arm"),
            baseline=provenance.baseline_config(study),
            plan="" if study.leaves_out("the resolved plan") else provenance.rest_of_plan(study),
            methods=page.template("methods.html", study=study, flow=flow.RULE, stuck=STUCK),
        )
