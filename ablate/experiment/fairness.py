"""What keeps a comparison fair: sizes that are matched, and options that every arm is tuned in alike."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from ablate.experiment.quantities import Share
from ablate.slots import Options


class Target(Options):
    """One thing that arms have in common with the baseline, and the option that is solved for it."""

    to: Literal["baseline"] = "baseline"
    """Whose count the others are brought to."""
    adjust: str
    """The numeric option that is solved, as `model.feed_forward.ratio`; `budget.steps` for training FLOPs."""
    within: Share = 0.01
    """How far off an arm may be, as `1%`; an arm that is within it already is left as it is."""
    multiple_of: float | int | None = Field(None, gt=0)
    """The option takes multiples of this alone."""


class Match(Options):
    """Which sizes are made equal before the run."""

    params: Target | None = None
    """All parameters of the model, counted exactly."""
    train_flops: Target | None = None
    """Floating-point operations of the whole training, forward and backward."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.params is None and self.train_flops is None:
            raise ValueError("`match` takes `params`, `train_flops` or both")
        return self


class Search(Options):
    """The values that a tuned option may take: a range, or a list."""

    log: list[float] | None = Field(None, min_length=2, max_length=2)
    """Lowest and highest value; evenly spaced in the logarithm."""
    linear: list[float] | None = Field(None, min_length=2, max_length=2)
    """Lowest and highest value; evenly spaced."""
    values: list[Any] | None = Field(None, min_length=1)
    """The values themselves."""
    n: int | None = Field(None, ge=2, le=10_000)
    """How many values a grid takes from a range."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [name for name in ("log", "linear", "values") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                "a tuned option is `{log: [LOW, HIGH], n: N}`, `{linear: [LOW, HIGH], n: N}` or `{values: [...]}`"
            )
        ends = self.log or self.linear
        if ends and not ends[0] < ends[1]:
            raise ValueError(f"the range {ends} is empty: the lowest value comes first")
        if self.log and self.log[0] <= 0:
            raise ValueError("a logarithmic range begins above 0")
        if self.values is not None and self.n is not None:
            raise ValueError("`n` belongs to a range; `values` are taken as they are")
        return self

    def points(self) -> list[Any] | None:
        """The values of a grid; None for a range without `n`."""
        if self.values is not None:
            return list(self.values)
        if self.n is None:
            return None
        low, high = self.log or self.linear or (0.0, 0.0)
        shares = [index / (self.n - 1) for index in range(self.n)]
        if self.log:
            return [float(f"{low ** (1 - share) * high**share:.6g}") for share in shares]
        return [float(f"{low * (1 - share) + high * share:.6g}") for share in shares]


class Halving(Options):
    """Synchronous successive halving: at each rung the better part of a batch of trials goes on."""

    reduction: int = Field(3, ge=2)
    """One in so many goes on."""
    rungs: int = Field(2, ge=1)
    """How often the batch is judged before the last step."""


class Tune(Options):
    """How each arm finds its own best values, with the same number of trials for all."""

    method: Literal["grid", "random", "tpe"] = "grid"
    """Every combination; drawn at random; or proposed by a tree-structured Parzen estimator."""
    params: dict[str, Search] = Field(min_length=1)
    """What is tuned, by path."""
    seeds: list[int] = Field(min_length=1)
    """Seeds of the tuning trials; none of them is reported."""
    trials: int | None = Field(None, ge=1)
    """How many combinations an arm tries, by `random` and `tpe`."""
    halving: Halving | None = None
    """Give up the worse combinations early; allowed in tuning alone."""
    batch: int = Field(8, ge=1)
    """How many combinations `tpe` proposes at once, from what those before them came to."""
    widen: bool = False
    """Whether a grid's range is widened, for all arms, where the best value of one lies at its edge."""
    at_baseline: bool = False
    """Whether every arm is also run at the values that are best for the baseline."""

    @property
    def combinations(self) -> int | None:
        """How many combinations each arm tries; None where the file does not say."""
        if self.method != "grid":
            return self.trials
        product = 1
        for search in self.params.values():
            points = search.points()
            if points is None:
                return None
            product *= len(points)
        return product
