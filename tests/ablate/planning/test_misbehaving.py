"""A component whose own methods fail is one error that says so, whatever they raise or give."""

from __future__ import annotations

from pathlib import Path

import pytest

import ablate
from ablate.errors import InputError
from tests.ablate.planning.test_legality import DECODER, experiment

MINE = """
from typing import Literal
import torch
from torch import nn
from ablate.slots import Norm, Traits

class Mine(Norm):
    "Mine."
    kind: Literal["mine"] = "mine"

    def build(self, at):
        return nn.Identity()
"""
OF_EFFECTIVE = "it gives the same component, with options that have no effect at their defaults"


def plan(folder: Path, body: str) -> ablate.Experiment:
    (folder / "mine.py").write_text(MINE + body)
    factors = {"norm": {"path": "model.norm", "levels": ["layer", "mine"]}}
    return experiment(folder, DECODER, factors=factors, plugins=["mine.py"])


@pytest.mark.parametrize(
    ("body", "message", "help"),
    [
        ("    def build(self, at):\n        raise SystemExit(0)\n",
         "`norm=mine` cannot be built: SystemExit: 0", "it was raised at mine.py, line 14, in `build`"),
        ("    def traits(self):\n        raise RuntimeError('no')\n",
         "`norm=mine` cannot be built: RuntimeError: no", "it was raised at mine.py, line 14, in `traits`"),
        ("    def effective(self):\n        return self.effective()\n",
         "`effective` of norm `mine` fails: RecursionError: maximum recursion depth exceeded", OF_EFFECTIVE),
        ("    def effective(self):\n        raise SystemExit(0)\n",
         "`effective` of norm `mine` fails: SystemExit: 0", OF_EFFECTIVE),
        ("    def effective(self):\n        return None\n",
         "`effective` of norm `mine` gives NoneType, and no Mine", OF_EFFECTIVE),
    ],
)  # fmt: skip
def test_a_method_that_fails_is_one_error(tmp_path: Path, body: str, message: str, help: str) -> None:
    with pytest.raises(InputError) as caught:
        ablate.plan(plan(tmp_path, body))
    (found,) = caught.value.diagnostics
    assert (found.code, found.help) == ("G210", help)
    assert found.message.startswith(message)


def test_a_component_that_draws_in_evaluation_too_sees_no_later_token(tmp_path: Path) -> None:
    body = "    def build(self, at):\n        return Noisy()\n\nclass Noisy(nn.Module):\n    def forward(self, x):\n"
    made = ablate.plan(plan(tmp_path, body + "        return x + torch.rand(())\n"))
    assert [arm["name"] for arm in made.arms] == ["baseline", "norm=mine"]
