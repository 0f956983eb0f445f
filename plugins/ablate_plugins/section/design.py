"""What the kind of experiment adds: the factors of a factorial design."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.reporting import answers, cells
from ablate.reporting.figures import factorial
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
