"""Makes the folder of a small trial, as a driver would before the first attempt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ablate.records.layout import TrialFolder
from ablate.records.sealing import write_json
from ablate_plugins.task import Text

TASK = {"kind": "text", "source": "python-docs", "context": 16, "windows": 8}
MODEL = {"kind": "decoder", "width": 16, "depth": 2, "mixer": {"kind": "attention", "heads": 2}}
TRAINING = {
    "optimizer": {"kind": "adamw", "lr": 1e-2},
    "schedule": "cosine",
    "batch": 4,
    "precision": "32-true",
}


def make_trial(
    path: Path,
    *,
    model: dict[str, Any] | None = None,
    training: dict[str, Any] | None = None,
    task: dict[str, Any] | None = None,
    steps: int = 60,
    seed: int = 0,
    checkpoint_seconds: float = 3600.0,
    diverged: dict[str, Any] | None = None,
    probes: dict[str, Any] | None = None,
    evaluations: int = 3,
    continues: str | None = None,
    keep_checkpoints: bool = True,
) -> TrialFolder:
    folder = TrialFolder(path)
    path.mkdir(parents=True)
    config = {
        "model": MODEL | (model or {}),
        "task": TASK | (task or {}),
        "training": TRAINING | (training or {}),
        "steps": steps,
        "diverged": diverged or {},
    }
    write_json(
        folder.config,
        {
            "trial": path.name,
            "arm": "arm",
            "arm_name": "baseline",
            "levels": {},
            "seed": seed,
            "config": config,
            "observe": {
                "evaluations": evaluations,
                "checkpoint_seconds": checkpoint_seconds,
                "probes": probes or {"every": 20},
                "keep_checkpoints": keep_checkpoints,
            },
            **({"continues": continues} if continues else {}),
            "components": [],
            "data": {"hash": Text.model_validate(config["task"]).load(".").digest},
            "folder": ".",
        },
    )
    return folder
