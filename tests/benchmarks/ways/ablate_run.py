"""``ablate run``, as a user starts it, and where its time goes by what it leaves on disk."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from ablate.records.layout import StudyFolder, TrialFolder, read_json
from tests.benchmarks.ways.trials import BATCH, EVALUATIONS, PLACEMENTS, RATE, SEEDS, Measured, name

EXPERIMENT = f"""\
schema: 1
name: overhead
task: {{kind: text, source: python-docs, context: 64}}
model: {{kind: decoder, width: 64, depth: 2}}
training:
  optimizer: {{kind: adamw, lr: {RATE}}}
  schedule: {{kind: cosine, warmup: 0.1}}
  batch: {BATCH}
factors:
  placement: {{path: model.placement, levels: {json.dumps(PLACEMENTS)}}}
seeds: {len(SEEDS)}
objective: {{metric: val/loss, smallest_effect: 0.02}}
budget: {{steps: STEPS, evaluations: {EVALUATIONS}}}
executor: {{kind: local, parallel: CORES}}
"""
COMMAND = "from ablate.cli import main; main()"
"""What the command `ablate` runs, wherever it is installed."""
WITHOUT_PROBES = "probes: {use: []}\n"


def measure(folder: Path, steps: int, cores: int, more: str = "") -> Measured:
    """Train all trials, in a folder of their own, with ``more`` in the experiment's file."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    text = EXPERIMENT.replace("STEPS", str(steps)).replace("CORES", str(cores))
    (folder / "overhead.yaml").write_text(text + more)
    command = [sys.executable, "-c", COMMAND, "run", "overhead.yaml"]
    since = time.time()
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"ablate run failed:\n{done.stderr[-4000:]}")
    trials = list(StudyFolder(folder / "runs" / "overhead").trials())
    records = [read_json(trial.result) for trial in trials]
    losses = {name(record["levels"]["placement"], record["seed"]): record["metrics"]["val/loss"] for record in records}
    return Measured(seconds, losses, _split(trials, since, seconds, cores))


def _split(trials: list[TrialFolder], since: float, seconds: float, cores: int) -> dict[str, float]:
    """Seconds of the whole run by what they went into; together they are the whole.

    A worker opens a trial's log when it begins and seals the result when it ends, so the times of these files are
    those of the trial.
    """
    spans = [(trial.attempt(1).log.stat().st_mtime, trial.result.stat().st_mtime) for trial in trials]
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    inside = sum(end - begin for begin, end in spans) / cores
    steps = sum(read_json(trial.result)["seconds"] for trial in trials) / cores
    return {
        "start": first - since,
        "steps": steps,
        "around": inside - steps,
        "idle": (last - first) - inside,
        "end": since + seconds - last,
        "checkpoints": float(sum(trial.attempt(1).checkpoint.exists() for trial in trials)),
    }
