"""What the engine costs: ``ablate run`` against a loop written by hand, side by side in one run.

Run as ``make bench`` (or ``python -m tests.benchmarks.overhead ROUNDS``). Both train the same 24 trials of 300 steps to
the same numbers on the same cores: the loop in plain processes with the trials packed perfectly, the other with all
default probes on and its storage. Printed are the medians of several rounds, taken in turn, and where the difference
goes.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPERIMENT = """\
schema: 1
name: overhead
task: {kind: text, source: python-docs, context: 64}
model: {kind: decoder, width: 64, depth: 2}
training:
  optimizer: {kind: adamw, lr: 1e-2}
  schedule: {kind: cosine, warmup: 0.1}
  batch: 8
factors:
  placement: {path: model.placement, levels: [pre, post, res_post, sandwich]}
seeds: 6
objective: {metric: val/loss, smallest_effect: 0.02}
budget: {steps: 300}
"""

BY_HAND = """
import json, sys, time
began = time.perf_counter()
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from ablate.model.keys import generator
from ablate.model.parameters import build, named_parameters, root_site
from ablate.registry import Registry
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.model import Decoder
from ablate_plugins.optimizer import AdamW
from ablate_plugins.schedule import CosineSchedule
from ablate_plugins.task import Text

torch.set_num_threads(1)
imported = time.perf_counter()
task = Text(source="python-docs", context=64)
registry = Registry.installed()
results = {}
for placement, seed in json.loads(sys.argv[1]):
    data = task.load(".")
    model = Decoder.model_validate({"width": 64, "depth": 2, "placement": placement}, context={"registry": registry})
    network = build(model, root_site(data.interface), stream=(seed,), initializer=LecunNormal())
    named = list(named_parameters(network))
    values = [value for _, value in named]
    optimizer, schedule = AdamW(lr=1e-2).build(named), CosineSchedule(warmup=0.1)
    evaluation = data.evaluation(32)
    for step in range(300):
        (inputs,), targets = data.batch(8, generator(seed, "data", step))
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * schedule.factor(step, 300)
        optimizer.zero_grad()
        cross_entropy(network(inputs).flatten(0, 1), targets.flatten()).backward()
        nn.utils.clip_grad_norm_(values, 1.0)
        optimizer.step()
        if (step + 1) % 30 == 0:
            with torch.no_grad():
                parts = [(network(x).flatten(0, 1), y.flatten()) for (x,), y in evaluation]
                total = sum(float(cross_entropy(logits, y, reduction="sum")) for logits, y in parts)
                results[f"{placement}/{seed}"] = total / sum(y.numel() for _, y in parts)
print(json.dumps({"results": results, "import": imported - began, "train": time.perf_counter() - imported}))
"""

PLACEMENTS = ("pre", "post", "res_post", "sandwich")
ROUNDS = 3


def by_hand(cores: int) -> tuple[float, dict[str, float], dict[str, float]]:
    """Seconds, final losses, and the split, of the loop written by hand."""
    trials = [(placement, seed) for seed in range(6) for placement in PLACEMENTS]
    began = time.perf_counter()
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", BY_HAND, json.dumps(trials[core::cores])], stdout=subprocess.PIPE, text=True
        )
        for core in range(cores)
    ]
    said = [json.loads(worker.communicate()[0]) for worker in workers]
    seconds = time.perf_counter() - began
    losses = {name: loss for each in said for name, loss in each["results"].items()}
    split = {key: statistics.mean(each[key] for each in said) for key in ("import", "train")}
    return seconds, losses, split


def by_ablate(folder: Path, probes: str = "") -> tuple[float, dict[str, float], dict[str, float]]:
    """The same of ``ablate run``."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "overhead.yaml").write_text(EXPERIMENT + probes)
    command = [str(Path(sys.executable).with_name("ablate")), "run", "overhead.yaml"]
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    seconds = time.perf_counter() - began
    records = [json.loads(path.read_text()) for path in folder.glob("runs/overhead/trials/*/result.json")]
    losses = {f"{record['levels']['placement']}/{record['seed']}": record["metrics"]["val/loss"] for record in records}
    return seconds, losses, {"train": sum(record["seconds"] for record in records)}


def main() -> None:
    """Measure and print."""
    cores = len(os.sched_getaffinity(0))
    os.environ["OMP_NUM_THREADS"] = "1"
    hand, whole, bare, splits, trained, untapped = [], [], [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        for _ in range(int(sys.argv[1]) if sys.argv[1:] else ROUNDS):
            seconds, expected, split = by_hand(cores)
            hand.append(seconds)
            splits.append(split)
            seconds, found, parts = by_ablate(Path(name) / "x")
            assert found.keys() == expected.keys()
            assert all(abs(found[key] - expected[key]) < 1e-5 for key in expected), "other numbers than by hand"
            whole.append(seconds)
            trained.append(parts["train"] / cores)
            seconds, _, parts = by_ablate(Path(name) / "x", "probes: {use: []}\n")
            bare.append(seconds)
            untapped.append(parts["train"] / cores)
    a, b, c = (statistics.median(each) for each in (hand, whole, bare))
    ratios = sorted(w / h for w, h in zip(whole, hand, strict=True))
    hand_train = statistics.median(split["train"] for split in splits)
    hand_import = statistics.median(split["import"] for split in splits)
    in_trials, without_probes = statistics.median(trained), statistics.median(untapped)
    print(f"by hand, {cores} processes      {a:7.1f} s   (imports {hand_import:.1f}, training {hand_train:.1f})")
    spread = f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
    print(f"ablate run                {b:7.1f} s   ratio {spread}")
    print(f"ablate run without probes {c:7.1f} s   ratio {c / a:.3f}")
    print("where the difference goes, in seconds of the whole run:")
    print(f"  Lightning, steps        {without_probes - hand_train:+7.1f}")
    print(f"  probes                  {in_trials - without_probes:+7.1f}")
    print(f"  start-up, storage, idle {(b - in_trials) - (a - hand_train):+7.1f}")


if __name__ == "__main__":
    main()
