"""A component of a paper that is not in the catalogue: one class in one file, and no other edit."""

from __future__ import annotations

from pathlib import Path

import pytest

import ablate
from ablate.registry import Registry
from ablate.testing import Check, checks

FILE = Path(__file__).parent / "fixtures/papers/differential_attention.py"
REGISTRY = Registry.installed()
REGISTRY.add_file(FILE)
MIXER = REGISTRY.get("mixer", "differential_attention")


def test_the_catalogue_has_it_not() -> None:
    assert "differential_attention" not in Registry.installed().kinds("mixer")


@pytest.mark.parametrize("check", checks(MIXER, REGISTRY), ids=str)
def test_it_keeps_the_contract_of_its_slot(check: Check) -> None:
    check()


def test_it_is_a_level_like_any_other(tmp_path: Path) -> None:
    experiment = ablate.Experiment.of(
        {
            "name": "differential",
            "question": "Does the difference of two maps help?",
            "plugins": [str(FILE)],
            "task": {"kind": "text", "source": "python-docs", "context": 16, "windows": 8},
            "model": {"kind": "decoder", "width": 16, "depth": 2, "position": "rotary"},
            "training": {"optimizer": "adamw", "batch": 4},
            "factors": {"mixer": {"path": "model.mixer", "levels": ["attention", "differential_attention"]}},
            "seeds": 2,
            "objective": {"metric": "val/loss", "smallest_effect": 0.02},
            "budget": {"steps": 4},
        }
    )
    results = ablate.run(experiment, runs=tmp_path, parallel=1)
    assert results.counts()["complete"] == 4
    (effect,) = results.effects().to_dict("records")
    assert (effect["name"], effect["pairs"]) == ("mixer=differential_attention", 2)
    parts = {each["kind"]: each["origin"] for each in results.plan["components"]}
    assert parts["differential_attention"].endswith("differential_attention.py")
