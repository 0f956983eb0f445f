"""Whether the comparison is a fair one."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.reporting import fairness, tuning
from ablate.reporting.figures import forest
from ablate.reporting.study import Study
from ablate.slots import Page, Section


class Fairness(Section):
    """What each arm had: parameters, FLOPs, tokens, time, tuning, what was matched and how, best values at an edge."""

    kind: Literal["fairness"] = "fairness"
    order: ClassVar[float] = 7
    title: ClassVar[str] = "Fairness"

    def render(self, page: Page) -> str:
        """Sentences that hold for all arms, and a table by arm; the tuned values follow in their own section."""
        study: Study = page.study
        shown = page.table(fairness.table(study), "fairness-arms", "What each arm had, against the baseline")
        return page.template("fairness.html", sentences=list(fairness.sentences(study)), table=shown)


class Tuning(Section):
    """What each arm was tuned to, of how many combinations, and whether the best one lies at an edge."""

    kind: Literal["tuning"] = "tuning"
    order: ClassVar[float] = 7
    title: ClassVar[str] = "Tuning"

    def render(self, page: Page) -> str:
        """A table, and both comparisons where arms were run at the baseline's values too; nothing without tuning."""
        study: Study = page.study
        if not study.plan.get("tuning"):
            return ""
        table = page.table(tuning.tuning_table(study), "tuning-arms", "The tuned values of each arm")
        tried = page.table(tuning.tried_table(study), "tried", "The combinations that each arm has tried")
        rows = tuning.forest_rows(study)
        both = rows and page.figure(
            forest.forest(study, rows, width=860),
            name="both-comparisons",
            alt=f"Effects on {study.metric} at each arm's own best values and at those best for the baseline",
            caption=tuning.comparison(study),
        )
        return page.template("tuning.html", how=tuning.how(study), table=table, tried=tried, both=both)
