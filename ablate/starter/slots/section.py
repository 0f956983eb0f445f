"""A section of my own: a part of the report."""

from __future__ import annotations

from typing import ClassVar, Literal

from ablate.reporting.tables import Column, Table
from ablate.slots import Page, Section
from markupsafe import Markup
from matplotlib.figure import Figure
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
        """A figure and a table; nothing where no trial has a value."""
        metric = page.results.plan["objective"]["metric"]
        trials = page.results.trials().dropna(subset=[metric])
        best = trials.sort_values(metric, ascending=page.results.plan["objective"]["goal"] == "min").head(self.most)
        if best.empty:
            return ""
        figure = Figure(figsize=(6, 2.5))
        axes = figure.subplots()
        axes.plot(best[metric], best["name"] + ", seed " + best["seed"].astype(str), "o")
        axes.set_xlabel(page.study.metric_and_unit)
        axes.invert_yaxis()
        columns = [
            Column("name", "arm", numeric=False),
            Column("seed", "seed"),
            Column(metric, metric, unit=page.study.unit, write="{:.4g}".format),
        ]
        table = Table(columns, best.to_dict("records"))
        return Markup("").join(
            [
                page.figure(figure, name="my-component", alt=f"The best trials by {metric}", caption="Best on top."),
                page.table(table, name="my-component-table", caption=f"The {len(best)} best trials"),
            ]
        )
