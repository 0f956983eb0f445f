"""The shape of an experiment file."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import AliasChoices, Field, field_validator, model_validator

from ablate.experiment.settings import Budget, Diverged, Objective, Probes, Training
from ablate.slots import Executor, Model, Options, Task

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
    """What the levels are values of, as `model.norm`."""
    switch: str | None = None
    """A component or a yes-or-no option, as `model.residual`; the levels are `on` and `off`."""
    levels: list[Any] | dict[str, dict[str, Any]] | None = None
    """The values of `path`; or, without a path, bundles by name: `{deepnorm: {model.placement: post, …}}`."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        switch = self.switch is not None and self.path is None and self.levels is None
        values = self.path is not None and self.switch is None and isinstance(self.levels, list)
        bundles = self.path is None and self.switch is None and isinstance(self.levels, dict)
        if not (switch or values or bundles):
            raise ValueError(
                "a factor is `{path, levels: [...]}`, `{switch: PATH}` or `{levels: {NAME: {PATH: VALUE}}}`"
            )
        if self.levels is not None and not self.levels:
            raise ValueError("a factor needs at least one level")
        return self


class Settings(Options):
    """One experiment: a question, a baseline, factors, a budget."""

    schema_version: Literal[1] = Field(1, validation_alias=AliasChoices("schema"), serialization_alias="schema")
    """Version of this format."""
    name: str = Field(json_schema_extra={"pattern": NAME})
    """What the experiment is called; its runs lie in a folder of this name."""
    question: str = ""
    """The question in a sentence; it heads the report."""
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
    """The baseline's level of each factor; by default the levels that equal `model`, `task` and `training`."""
    design: Literal["one_at_a_time", "full"] = "one_at_a_time"
    """Which combinations of levels are arms: each level alone against the baseline, or all."""
    seeds: int | list[int] | SeedRange = 6
    """How many replicates, or which seeds."""
    objective: Objective
    """What arms are compared by."""
    diverged: Diverged = Diverged()
    """When a trial is given up as diverged."""
    probes: Probes = Probes()
    """What is measured during training."""
    budget: Budget
    """What the experiment may cost."""
    executor: Executor = Field(default_factory=lambda: Executor.default, validate_default=True)
    """What runs the trials."""

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
            if not name or len(name) > 100 or any(sign in name for sign in "=,\n"):
                raise ValueError(
                    f"a factor cannot be called `{name[:40]}`: no `=`, comma or line break, 100 characters at most"
                )
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
