"""A valid experiment, and a way to change it."""

from __future__ import annotations

from pathlib import Path

EXPERIMENT = """\
schema: 1
name: small
question: Does it matter?
task: {kind: text, source: python-docs, context: 16}
model:
  kind: decoder
  width: 16
  depth: 2
  mixer: {kind: attention, heads: 2}
training: {optimizer: {kind: adamw, lr: 1e-2}, batch: 4}
factors:
  placement: {path: model.placement, levels: [pre, post]}
  residual: {switch: model.residual}
seeds: 6
objective: {metric: val/loss, smallest_effect: 0.02}
budget: {steps: 20}
"""


def write(folder: Path, *changes: tuple[str, str], text: str = EXPERIMENT) -> Path:
    """Write the experiment with each first text replaced by the second, which must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "small.yaml"
    path.write_text(text)
    return path
