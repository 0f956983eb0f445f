"""The shape of an experiment file."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, Field, WithJsonSchema, field_validator, model_validator

from ablate.experiment.fairness import Match, Tune
from ablate.experiment.settings import Budget, Diverged, Expectation, Objective, Probes, Training
from ablate.slots import Executor, Logger, Model, Options, Task

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""A name is a folder's name, so it has no slash and does not start with a dot."""


MOST_SEEDS = 100_000


class SeedRange(Options):
    """Seeds from the first number up to, and without, the second."""

    range: list[int] = Field(min_length=2, max_length=2)
    """First seed, and the one after the last."""


class Factor(Options):
    """An axis that is varied: a path with levels, a switch, or bundles of settings by name."""

    path: str | None = None
    """What the levels are values of, as `model.norm`; with `budget.steps` each arm trains for its own steps."""
    switch: str | None = None
    """A component or a yes-or-no option, as `model.residual`; the levels are `on` and `off`, spelled or not."""
    levels: list[Any] | dict[str, dict[str, Any]] | None = None
    """The values of `path`; or, without a path, bundles by name: `{deepnorm: {model.placement: post, …}}`."""
    when: dict[str, Any] | None = None
    """Values by path that an arm must have for the factor to be part of it, as `{model.mixer.kind: attention}`."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        switch = self.switch is not None and self.path is None and not isinstance(self.levels, dict)
        values = self.path is not None and self.switch is None and isinstance(self.levels, list)
        bundles = self.path is None and self.switch is None and isinstance(self.levels, dict)
        if not (switch or values or bundles):
            raise ValueError(
                "a factor is `{path, levels: [...]}`, `{switch: PATH}` or `{levels: {NAME: {PATH: VALUE}}}`"
            )
        if self.levels is not None and not self.levels:
            raise ValueError("a factor needs at least one level")
        return self


class Fractional(Options):
    """A balanced fraction of all combinations of two-level factors."""

    kind: Literal["fractional"] = "fractional"
    resolution: Literal[3, 4, 5] = 4
    """At 3 main effects are mixed up with two-way interactions, at 4 with three-way ones, at 5 with four-way ones."""


Rule = Annotated[dict[str, Any], WithJsonSchema({
    "type": "object", "required": ["why"], "minProperties": 2,
    "properties": {"why": {"type": "string", "description": "The reason, which the report gives."}},
})]  # fmt: skip
"""Levels by factor that make a cell not an arm, and `why`."""
Designs = Literal["one_at_a_time", "full", "leave_one_out", "add_one", "pairs", "fractional", "list"]


class Settings(Options):
    """One experiment: a question, a baseline, factors, a budget."""

    schema_version: Literal[1] = Field(1, validation_alias=AliasChoices("schema"), serialization_alias="schema")
    """Version of this format."""
    name: str = Field(json_schema_extra={"pattern": NAME})
    """What the experiment is called; its runs lie in a folder of this name."""
    question: str = ""
    """The question in a sentence; it heads the report."""
    extends: str | None = None
    """A file that holds what this one does not say, relative to this file; it extends no other."""
    plugins: list[str] = Field(default_factory=list)
    """Python files that bring components, relative to this file."""
    task: Task
    """What models are trained and judged on."""
    model: Model
    """The baseline's network."""
    training: Training
    """How the baseline is trained."""
    factors: dict[str, Factor] = Field(default_factory=dict)
    """What is varied."""
    baseline: dict[str, Any] | None = None
    """The baseline's level of each factor; by default what equals `model`, `task` and `training` (`add_one`: the
    others)."""
    design: Designs | Fractional = "one_at_a_time"
    """Which combinations of levels are arms: `one_at_a_time` (each level alone against the baseline), `full` (all),
    `leave_one_out` (the complete model, minus each thing in turn), `add_one` (the bare model, plus each thing in turn),
    `pairs` (every pair of changes), `fractional` (a balanced fraction of all), `list` (as `arms` spells them)."""
    arms: list[dict[str, Any]] | None = None
    """For `design: list`: each arm's levels by factor; a factor that is not named has the baseline's level."""
    exclude: list[Rule] = Field(default_factory=list)
    """Cells that are not run: levels by factor, and `why`."""
    allow_noop: bool = False
    """Whether an arm may compute what the baseline computes."""
    seeds: int | list[int] | SeedRange = 6
    """How many replicates, or which seeds."""
    noise_floor: bool = False
    """Whether the baseline runs once more with the first seed: by how much that differs is no effect of anything."""
    tune: Tune | None = None
    """What each arm is tuned in before it is reported."""
    match: Match | None = None
    """Which sizes are made equal before the run."""
    objective: Objective
    """What arms are compared by."""
    diverged: Diverged = Diverged()
    """When a trial is given up as diverged."""
    probes: Probes = Probes()
    """What is measured during training."""
    loggers: list[Logger] = Field(default_factory=list)
    """Where a trial's course is shown beside Ablate's own records: any of Lightning's loggers."""
    budget: Budget
    """What the experiment may cost."""
    expect: list[Expectation] = Field(default_factory=list)
    """Predictions, which the report holds against the intervals."""
    executor: Executor = Field(default_factory=lambda: Executor.default, validate_default=True)
    """What runs the trials."""
    storage: str | None = None
    """A database for the Optuna study, as `postgresql+psycopg://USER:${PASSWORD}@HOST/DATABASE`; variables of the
    environment stand as `${NAME}`. By default it is a file in the study's folder."""

    @property
    def design_name(self) -> str:
        """The design without its options."""
        return self.design.kind if isinstance(self.design, Fractional) else self.design

    @field_validator("name")
    @classmethod
    def _a_folder(cls, name: str) -> str:
        if not re.fullmatch(NAME, name):
            raise ValueError(
                "`name` must be letters, digits, `.`, `-` and `_`, begin with a letter or digit, and have at most 100"
            )
        return name

    @field_validator("factors")
    @classmethod
    def _plain_names(cls, factors: dict[str, Factor]) -> dict[str, Factor]:
        for name in factors:
            if (
                not name.isprintable()
                or name != name.strip()
                or not 0 < len(name) <= 100
                or any(sign in name for sign in "=,")
            ):
                shown = ascii(name[:40])[1:-1]
                raise ValueError(
                    f"a factor cannot be called `{shown}`: no `=`, no comma, nothing that cannot be seen, and 1 to "
                    "100 characters"
                )
            if name in ("why", "baseline"):
                raise ValueError(f"a factor cannot be called `{name}`, which means something else in a rule")
        return factors

    @field_validator("seeds")
    @classmethod
    def _some_seeds(cls, seeds: int | list[int] | SeedRange) -> int | list[int] | SeedRange:
        ends = seeds.range if isinstance(seeds, SeedRange) else [0, seeds if isinstance(seeds, int) else len(seeds)]
        many = ends[1] - ends[0]
        if many > MOST_SEEDS:
            raise ValueError(f"{many:,} seeds are more than {MOST_SEEDS:,}")
        listed = seed_list(seeds)
        if not listed:
            raise ValueError("an experiment needs at least one seed")
        if len(set(listed)) != len(listed):
            raise ValueError("a seed is named twice")
        if min(listed) < 0 or max(listed) >= 2**63:
            raise ValueError("a seed is at least 0 and less than 2^63")
        return seeds


def seed_list(seeds: int | list[int] | SeedRange) -> list[int]:
    """The seeds, spelled out."""
    if isinstance(seeds, int):
        return list(range(seeds))
    if isinstance(seeds, SeedRange):
        return list(range(*seeds.range))
    return seeds
