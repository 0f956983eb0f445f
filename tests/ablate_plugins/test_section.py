"""The sections that ship."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ablate.registry import Registry, kind_of
from ablate.slots import Section

SHIPPED = sorted(Registry.installed().all("section"), key=lambda component: component().order)  # type: ignore[attr-defined]
ROOT = Path(__file__).parents[2]


def test_every_part_of_the_report_is_a_component() -> None:
    assert [kind_of(component) for component in SHIPPED] == [
        "verdict", "effects", "ablation_path", "factors", "seeds", "learning_rate", "tasks", "trends",
        "gradient_flow", "stability", "curves", "fairness", "tuning", "unfinished", "trials", "reproduce",
    ]  # fmt: skip


@pytest.mark.parametrize("component", SHIPPED, ids=kind_of)
def test_each_is_built_without_options_and_says_what_it_is(component: type[Section]) -> None:
    built = component()
    assert isinstance(built, Section)
    assert built.title
    assert component.describe().endswith(".")


def test_importing_them_needs_no_torch() -> None:
    code = (
        "import sys; from ablate.registry import Registry; Registry.installed().all('section'); "
        "sys.exit('torch' in sys.modules)"
    )
    path = f"{ROOT}:{ROOT / 'plugins'}"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": path, "PATH": ""}, timeout=120)
