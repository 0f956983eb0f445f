"""A model that sees the tokens that it is to predict is told before it is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ablate
from ablate.errors import InputError
from tests.ablate.planning.test_legality import ATTENTION, COPY, DECODER, TEXT, TRANSLATOR, experiment

LEAKING = """
from typing import Literal
import torch
from torch import nn
from ablate.slots import Mixer, Traits

class _Next(nn.Module):
    def __init__(self, in_training):
        super().__init__()
        self.o = nn.Linear(8, 8)
        self.in_training = in_training

    def forward(self, x, given):
        later = nn.functional.pad(x, (0, 0, 0, 1))[:, 1:]
        return self.o(later if self.training == self.in_training else x)

class Next(Mixer):
    "The next token."
    kind: Literal["next"] = "next"
    in_training: bool = True
    said: bool = False

    def build(self, at):
        return _Next(self.in_training)

    def traits(self):
        return Traits(causal=not self.said)
"""


def plan(folder: Path, mixer: dict[str, Any], task: dict[str, Any] = TEXT) -> ablate.Experiment:
    (folder / "leaking.py").write_text(LEAKING)
    factors = {"mixer": {"path": "model.mixer", "levels": [ATTENTION, {"kind": "next"} | mixer]}}
    model = DECODER if task is TEXT else TRANSLATOR
    return experiment(folder, model, task, factors=factors, plugins=["leaking.py"])


@pytest.mark.parametrize("in_training", [True, False])
@pytest.mark.parametrize("task", [TEXT, COPY], ids=["decoder", "encoder_decoder"])
def test_an_arm_that_sees_later_tokens_is_refused(tmp_path: Path, task: dict[str, Any], in_training: bool) -> None:
    with pytest.raises(InputError) as caught:
        ablate.plan(plan(tmp_path, {"in_training": in_training}, task))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.help) == (
        "G220",
        f"`mixer=next(in_training={'true' if in_training else 'false'})` sees later tokens, "
        "which it would not have when it writes",
        "mend the component (`ablate plugins check` shows it), or declare it: `Traits(causal=False)`",
    )


def test_an_arm_that_says_so_runs_and_is_warned_of(tmp_path: Path) -> None:
    made = ablate.plan(plan(tmp_path, {"said": True}))
    told = [warning.message for warning in made.warnings if warning.code == "W015"]
    assert told == ["`mixer=next(said=true)`: mixer `next`: a token sees later ones of its sequence"]


def test_a_classifier_may_see_all_of_its_sequence(tmp_path: Path) -> None:
    model = {"kind": "encoder", "width": 8, "depth": 1, "mixer": ATTENTION}
    factors = {"norm": {"path": "model.norm", "levels": ["layer", "rms"]}}
    made = ablate.plan(experiment(tmp_path, model, {"kind": "parity", "samples": 8}, factors=factors))
    assert [arm["name"] for arm in made.arms] == ["baseline", "norm=rms"]
