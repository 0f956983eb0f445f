"""Setups for what is counted and checked before a plan, with components of plugin files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ablate.experiment.settings import Setup
from ablate.registry import Registry

BASE: dict[str, Any] = {"kind": "decoder", "width": 16, "depth": 2, "mixer": {"kind": "attention", "heads": 2}}

IMPORTS = """
from typing import Literal
import torch
from torch import nn
from ablate.slots import FeedForward, Mixer, Model, Norm, Residual, Site
"""


def plugin(folder: Path, body: str, name: str = "mine") -> Path:
    """Write a plugin file."""
    path = folder / f"{name}.py"
    path.write_text(f"{IMPORTS}\n{body}")
    return path


def installed(*plugins: Path) -> Registry:
    """The registry of what is installed and of these files, each of which is run."""
    registry = Registry.installed()
    for file in plugins:
        registry.add_file(file)
    return registry


def setup(
    *plugins: Path, registry: Registry | None = None, batch: int = 4, model: str | None = None, **options: Any
) -> Setup:
    """A small decoder on the text task, with these options in place of the base's; or another model altogether."""
    registry = registry or installed(*plugins)
    value = {
        "model": model or BASE | options,
        "task": {"kind": "text", "source": "python-docs", "context": 16},
        "training": {"optimizer": {"kind": "adamw", "lr": 0.01}, "batch": batch},
    }
    return Setup.model_validate(value, context={"registry": registry})
