"""A section of my own: a part of the report."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.slots import Page, Section
from markupsafe import Markup
from pydantic import Field


class MyComponent(Section):
    """The trials that ended with the best values of the objective.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    most: int = Field(5, ge=1)
    """How many trials are named."""
    order: ClassVar[float] = 7.5
    title: ClassVar[str] = "My component"

    def render(self, page: Page) -> str:
        """A list; what is put into the text is escaped."""
        objective = page.results.plan["objective"]
        trials = page.results.trials().dropna(subset=[objective["metric"]])
        trials = trials.sort_values(objective["metric"], ascending=objective["goal"] == "min")
        item = Markup("<li>{}, seed {}: {:.4g}</li>")
        columns = trials[["name", "seed", objective["metric"]]].head(self.most)
        rows = [item.format(*row) for row in columns.itertuples(index=False)]
        return Markup("<ol>{}</ol>").format(Markup("").join(rows)) if rows else ""
