"""A valid experiment, and a way to change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ablate.errors import Diagnostic, InputError
from ablate.experiment import load

EXPERIMENT = """\
schema: 1
name: small
question: Does it matter?
task: {kind: text, source: python-docs, context: 16}
model:
  kind: decoder
  width: 16
  depth: 2
  mixer: {kind: attention, heads: 2}
training: {optimizer: {kind: adamw, lr: 1e-2}, batch: 4}
factors:
  placement: {path: model.placement, levels: [pre, post]}
  residual: {switch: model.residual}
seeds: 6
objective: {metric: val/loss, smallest_effect: 0.02}
budget: {steps: 20}
"""


MANY = """\
from typing import Literal
from torch import nn
from ablate.slots import Norm, Site


class Many(Norm):
    '''A norm of many options.'''

    kind: Literal["many"] = "many"
{options}
    def build(self, at: Site) -> nn.Module:
        return nn.Identity()
"""


def write_many(folder: Path, factors: Mapping[str, int], *more: str) -> Path:
    """Write an experiment with a factor of so many levels for each name, and further lines."""
    options = "".join(f"    {name}: int = 0\n" for name in factors)
    (folder / "many.py").write_text(MANY.format(options=options))
    lines = "".join(f"  {name}: {{path: model.norm.{name}, levels: {list(range(n))}}}\n" for name, n in factors.items())
    return write(
        folder,
        ("  placement: {path: model.placement, levels: [pre, post]}\n", ""),
        ("  residual: {switch: model.residual}\n", ""),
        ("factors:\n", f"factors:\n{lines}" if lines else "factors: {}\n"),
        ("depth: 2", "depth: 2\n  norm: many"),
        ("seeds: 6", "\n".join(["plugins: [many.py]", *more, "seeds: 6"])),
    )


def names(path: Path) -> list[str]:
    """The names of an experiment's arms, in their order."""
    return [arm.name for arm in load(path).grid.arms]


def levels(path: Path, *, sets: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Every arm's levels by its name."""
    return {arm.name: arm.levels for arm in load(path, sets=sets).grid.arms}


def problems(path: Path, *, sets: Sequence[str] = ()) -> list[str]:
    """Everything wrong with an experiment, as ``code line:column message | help``."""
    with pytest.raises(InputError) as caught:
        load(path, sets=sets)
    return [told(each) for each in caught.value.diagnostics]


def told(each: Diagnostic) -> str:
    """A diagnostic in one line."""
    place = f" {each.span.line}:{each.span.column}" if each.span else ""
    return f"{each.code}{place} {each.message} | {each.help}"


def write(folder: Path, *changes: tuple[str, str], text: str = EXPERIMENT) -> Path:
    """Write the experiment with each first text replaced by the second, which must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "small.yaml"
    path.write_text(text)
    return path
