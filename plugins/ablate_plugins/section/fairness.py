"""Whether the comparison is a fair one."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.reporting import tuning
from ablate.reporting.study import Study
from ablate.slots import Page, Section


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
