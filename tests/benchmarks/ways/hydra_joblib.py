"""Hydra's joblib launcher driving Lightning: a script started with ``--multirun`` over arms and seeds."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.ways.trials import PLACEMENTS, SEEDS, Measured, missing, name

LACKING = missing("hydra", "hydra_plugins.hydra_joblib_launcher", "joblib")


def measure(steps: int, cores: int) -> Measured:
    """Train all trials."""
    with tempfile.TemporaryDirectory() as folder:
        words = [
            "--multirun",
            "hydra/launcher=joblib",
            f"hydra.launcher.n_jobs={cores}",
            f"hydra.sweep.dir={folder}/multirun",
            f"placement={','.join(PLACEMENTS)}",
            f"seed={','.join(map(str, SEEDS))}",
            f"steps={steps}",
            f"out={folder}",
        ]
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", __name__, *words], capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        if done.returncode:
            raise RuntimeError(f"hydra failed:\n{done.stderr[-4000:]}")
        told = [json.loads(path.read_text()) for path in Path(folder).glob("*.json")]
    return Measured(seconds, {each["name"]: each["loss"] for each in told})


def job(config: Any) -> float:
    """One trial, as Hydra calls it."""
    from tests.benchmarks.ways.bare_lightning import train

    loss = train(config.placement, config.seed, config.steps)
    told = {"name": name(config.placement, config.seed), "loss": loss}
    (Path(config.out) / f"{config.placement}-{config.seed}.json").write_text(json.dumps(told))
    return loss


def main() -> None:
    """Hand over to Hydra, which reads the words of the command."""
    import hydra
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store("trial", {"placement": "pre", "seed": 0, "steps": 300, "out": "."})
    hydra.main(version_base=None, config_path=None, config_name="trial")(job)()


if __name__ == "__main__":
    main()
