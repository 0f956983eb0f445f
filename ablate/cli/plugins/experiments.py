"""The experiment that a new component is begun with: it, beside the baseline."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import NamedTuple


class Use(NamedTuple):
    """How an experiment uses a component of a slot; what is not given is as in every other slot's."""

    factor: str = "norm: {path: model.norm, levels: [layer, rms]}"
    rest: str = ""
    """Keys of the experiment beside the baseline's."""
    task: str = "{kind: text, source: python-docs, context: 32, windows: 64}"
    question: str = "Does my_component do better than what the baseline has?"


def _levels(path: str, baseline: str, other: str = "my_component") -> Use:
    return Use(f"{path.rpartition('.')[2]}: {{path: {path}, levels: [{baseline}, {other}]}}")


BESIDE = "What does my_component show of these arms?"
USES: Mapping[str, Use] = {
    "model": Use("""model:
    levels: # bundles, by names of your own
      decoder: {model.kind: decoder}
      mine: {model: {kind: my_component, width: 32, depth: 2}}"""),
    "norm": _levels("model.norm", "layer"),
    "placement": _levels("model.placement", "pre"),
    "residual": _levels("model.residual", "add"),
    "mixer": _levels("model.mixer", "{kind: attention, heads: 2}"),
    "scale": _levels("model.mixer.scale", "inverse_sqrt"),
    "feed_forward": _levels("model.feed_forward", "mlp"),
    "position": _levels("model.position", "learned"),
    "output": _levels("model.output", "untied"),
    "initializer": _levels("training.initializer", "lecun_normal"),
    "optimizer": _levels("training.optimizer", "{kind: adamw, lr: 1e-2}"),
    "schedule": _levels("training.schedule", "{kind: cosine, warmup: 0.1}"),
    "loss": _levels("training.loss", "cross_entropy"),
    "task": Use(task="my_component", question="Which of these arms is better at my_component?"),
    "decoding": Use(question="Which of these arms is better?"),
    "probe": Use(rest="probes: {use: [gradient_flow, my_component]}\n", question=BESIDE),
    "logger": Use(rest="loggers: [my_component]\n", question=BESIDE),
    "executor": Use(
        rest="executor: my_component\n", question="Which of these arms is better, as my_component runs them?"
    ),
    "section": Use(question=BESIDE),
}
"""By slot. Where nothing is compared in the slot, the arms are two norms."""


def experiment_of(slot: str, name: str, plugin: str | None) -> str:
    """The text of an experiment that uses the component ``name``.

    Args:
        slot: the component's slot.
        name: its kind.
        plugin: its file, relative to the experiment's folder; None if it is installed.
    """
    use = USES[slot]
    text = files("ablate").joinpath("starter", "slots", "experiment.yaml").read_text(encoding="utf-8")
    if plugin is None:
        text = re.sub(r"plugins: .*\n\n", "", text)
    words = {"QUESTION": use.question, "TASK": use.task, "REST\n": use.rest + "\n", "FACTOR": use.factor}
    for word, meant in words.items():
        text = text.replace(f"THE_{word}", meant)
    return text.replace("my_component", name)
