"""Ray Tune driving Lightning: its own start-up, one CPU a trial, and what a user gets without further settings."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

from tests.benchmarks.ways.trials import PLACEMENTS, SEEDS, Measured, cores, missing, name, printed

LACKING = missing("ray")


def measure(steps: int, cores: int) -> Measured:
    """Train all trials."""
    seconds, told = printed([sys.executable, "-m", "tests.benchmarks.ways.ray_tune", str(steps)])
    return Measured(seconds, told["losses"], {"start": seconds - told["fit"], "fit": told["fit"]})


def trainable(config: dict[str, Any]) -> None:
    """One trial, as Ray Tune calls it."""
    from ray import tune

    from tests.benchmarks.ways.bare_lightning import train

    tune.report({"loss": train(config["placement"], config["seed"], config["steps"])})


def main() -> None:
    """Tune over the grid, and print what the trials came to."""
    import ray
    from ray import tune

    # A short folder: Ray keeps its sockets there, whose names may not be long.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        ray.init(num_cpus=cores(), include_dashboard=False, log_to_driver=False, _temp_dir=folder)
        tuner = tune.Tuner(
            tune.with_resources(trainable, {"cpu": 1}),
            param_space={
                "placement": tune.grid_search(list(PLACEMENTS)),
                "seed": tune.grid_search(list(SEEDS)),
                "steps": int(sys.argv[1]),
            },
            run_config=tune.RunConfig(storage_path=f"{folder}/results", verbose=0),
        )
        began = time.perf_counter()
        results = tuner.fit()
        fit = time.perf_counter() - began
        losses = {name(each.config["placement"], each.config["seed"]): each.metrics["loss"] for each in results}
        ray.shutdown()
    print(json.dumps({"losses": losses, "fit": fit}))


if __name__ == "__main__":
    main()
