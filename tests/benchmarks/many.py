"""What the engine costs a trial in a large study: 10,000 trials of a trainer that computes next to nothing.

Run as ``python -m tests.benchmarks.many TRIALS``. The plan is a real one, so that the command line can be timed on the
study: ``ablate status``, and an ``ablate run`` that finds nothing to do. With ``--profile`` the driver's functions are
listed by the time in them, which costs time itself.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import ablate
from ablate.records.layout import StudyFolder
from ablate.sweep.driver import sweep
from ablate.sweep.events import Event, TrialEnded
from ablate_plugins.executor import Local
from tests.ablate.sweep.stub_study import STUB
from tests.benchmarks.ways.ablate_run import COMMAND

ARMS = 500
EXPERIMENT = """\
schema: 1
name: many
task: {{kind: text, source: python-docs, context: 16, windows: 8}}
model: {{kind: decoder, width: 16, depth: 1}}
training:
  optimizer: {{kind: adamw, lr: 1e-2}}
  batch: 4
design: full
factors:
  lr: {{path: training.optimizer.lr, levels: {rates}}}
  decay: {{path: training.optimizer.weight_decay, levels: {decays}}}
seeds: {seeds}
objective: {{metric: val/loss, smallest_effect: 0.02}}
budget: {{steps: 1}}
"""
PART = 1000
"""How many trials at the start, and at the end, are told apart."""


def experiment(trials: int) -> str:
    """An experiment of about so many trials, of one step and one shape."""
    rates = [round(0.01 * (1 + number), 2) for number in range(20)]
    decays = [round(0.01 * (1 + number), 2) for number in range(ARMS // 20)]
    return EXPERIMENT.format(rates=rates, decays=decays, seeds=max(1, trials // ARMS))


def drive(folder: Path, profile: bool) -> None:
    """Run the study in this process, and print as JSON what it took."""
    file = folder / "many.yaml"
    plan = ablate.plan(file)
    wall, cpu = [time.perf_counter()], [time.process_time()]

    def note(event: Event) -> None:
        if isinstance(event, TrialEnded):
            wall.append(time.perf_counter())
            cpu.append(time.process_time())

    watched = cProfile.Profile()
    with closing(Local().open(STUB)) as pool:
        if profile:
            watched.enable()
        sweep(
            StudyFolder(folder / "runs" / "many"),
            plan.data,
            pool,
            source=file.read_text(),
            on_event=note,
            trainer=STUB,
        )
        watched.disable()
    if profile:
        pstats.Stats(watched, stream=sys.stderr).sort_stats("tottime").print_stats(40)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"wall": wall, "cpu": cpu, "memory": memory}))


def timed(folder: Path, *words: str) -> float:
    """Seconds that a command takes there."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", COMMAND, *words], cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("trials", nargs="?", type=int, default=10_000)
    options.add_argument("--profile", action="store_true", help="list the driver's functions by the time in them")
    options.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.drive:
        drive(asked.drive, asked.profile)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "many.yaml").write_text(experiment(asked.trials))
        command = [sys.executable, "-m", "tests.benchmarks.many", "--drive", name]
        said = subprocess.run(
            [*command, *(["--profile"] if asked.profile else [])], stdout=subprocess.PIPE, check=True, text=True
        )
        told = json.loads(said.stdout.splitlines()[-1])
        wall, cpu = told["wall"], told["cpu"]
        trials = len(wall) - 1
        part = min(PART, trials // 2)
        print(f"{trials} trials of one step in {wall[-1] - wall[0]:.1f} s on {len(os.sched_getaffinity(0))} cores")
        for which, first in (("first", 0), ("last", trials - part)):
            each = [(times[first + part] - times[first]) / part * 1e3 for times in (wall, cpu)]
            print(f"the {which:5} {part:5}   {each[0]:6.1f} ms a trial, of which the driver computes {each[1]:5.1f} ms")
        print(f"memory of the driver  {told['memory'] / 1024:6.0f} MiB at its peak")
        print(f"ablate status         {timed(folder, 'status', 'many.yaml'):6.2f} s")
        print(f"ablate run, all done  {timed(folder, 'run', 'many.yaml'):6.2f} s")


if __name__ == "__main__":
    main()
