"""Whatever is done to an experiment, it loads or is refused with places: never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.errors import InputError, RefusedError
from ablate.experiment import load
from tests.ablate.experiment.maker import EXPERIMENT, write
from tests.ablate.experiment.mutations import OF_DATA, OF_TEXT, Mutation

ROOT = Path(__file__).parents[3]
EVERY_SECTION = """\
schema: 1
name: every-section
question: Does every section hold?
task: {kind: text, source: python-docs, context: 16}
model:
  kind: decoder
  width: 16
  depth: 2
  norm: layer
  placement: pre
  residual: add
  mixer: {kind: attention, heads: 2, scale: inverse_sqrt}
  feed_forward: {kind: mlp, ratio: 4, activation: gelu}
  layers: [{range: [0, 1], placement: post}]
training: {optimizer: {kind: adamw, lr: 1e-2}, schedule: {kind: cosine, warmup: 0.1}, batch: 4, clip: null}
factors:
  placement:
    levels:
      pre: {model.placement: pre}
      bare: {model.placement: none, model.residual: none}
  scale: {switch: model.mixer.scale}
  heads: {path: model.mixer.heads, levels: [2, 4], when: {model.mixer.kind: attention}}
  norm: {path: model.norm, levels: [layer, {kind: rms, eps: 1e-6}]}
baseline: {placement: pre, scale: on}
design: full
exclude: [{placement: bare, heads: 4, why: it has no norm}]
allow_noop: true
seeds: {range: [0, 3]}
tune:
  method: grid
  params: {training.optimizer.lr: {log: [1e-4, 3e-2], n: 3}}
  seeds: [100, 101]
match: {params: {to: baseline, adjust: model.feed_forward.ratio, within: 1%}}
objective: {metric: val/loss, goal: min, smallest_effect: 0.02, secondary: [val/bits_per_char]}
diverged: {nonfinite: true, loss_above_initial: 2.0, patience: 20}
probes: {every: 50}
budget: {steps: 20, max_trials: 1000, trial_timeout: 20m, gpu_hours: 30, disk: 20GiB, retries: 1}
expect:
  - {arm: {placement: bare}, versus: baseline, effect: worse, source: "Xiong et al. 2020, Fig. 2"}
executor: {kind: local, parallel: auto}
"""
SPELLED_OUT = EVERY_SECTION.replace("design: full\n", "design: list\narms: [{placement: bare}, {heads: 4}]\n").replace(
    "exclude: [{placement: bare, heads: 4, why: it has no norm}]\n", ""
)
SHIPPED = sorted((ROOT / "experiments").glob("*.yaml"))
SOURCES = [EXPERIMENT, EVERY_SECTION, SPELLED_OUT, *(path.read_text() for path in SHIPPED)]
BEYOND = [
    ("levels: [pre, post]", "levels: [pre, .nan]"),
    ("path: model.placement, levels: [pre, post]", "path: training.clip, levels: [1.0, .inf]"),
    ("path: model.placement, levels: [pre, post]", "path: model.norm, levels: [layer, {kind: rms, eps: .nan}]"),
    ("switch: model.residual", "switch: model.residual, when: {model.depth: .nan}"),
    ("depth: 2", f"depth: {10**18}"),
    ("depth: 2", f"depth: {10**18}\n  layers: [{{range: [0, 1], norm: rms}}]"),
    ("depth: 2", f"depth: 2\n  layers: [{{range: [0, {10**18}], norm: rms}}]"),
    ("seeds: 6", f"seeds: {{range: [0, {10**18}]}}"),
    ("seeds: 6", f"tune: {{params: {{training.optimizer.lr: {{log: [1e-4, 1], n: {10**18}}}}}, seeds: [100]}}"),
    ("seeds: 6", "tune: {params: {training.optimizer.lr: {linear: [-1e308, 1e308], n: 3}}, seeds: [100]}"),
    ("seeds: 6", "tune: {params: {training.optimizer.lr: {values: [.nan, .inf]}}, seeds: [100]}"),
    ("steps: 20", f"steps: 20, disk: {'1' * 400}GiB"),
    ("steps: 20", f"steps: 20, trial_timeout: {'1' * 400}h"),
    ("seeds: 6", 'plugins: ["\\0"]'),
    ("seeds: 6", f"plugins: [{'x' * 300}]"),
    ("seeds: 6", 'extends: "\\0"'),
    ("seeds: 6", f"extends: {'x' * 300}"),
    ("name: small", f"name: {'x' * 300}"),
    ("  placement:", f"  {'x' * 300}:"),
]


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """An experiment that was changed a few times; as values first, since a text that is spoiled has none."""

    def pick(below: int) -> int:
        return draw(st.integers(0, max(0, below - 1)))

    text = draw(st.sampled_from(SOURCES))
    changes: list[Mutation] = [*draw(st.lists(st.sampled_from(OF_DATA), max_size=3))]
    changes += draw(st.lists(st.sampled_from(OF_TEXT), min_size=not changes, max_size=3))
    for change in changes:
        if text.strip():
            text = change(text, pick)
    return text


def check(text: str, folder: Path) -> None:
    """Load the text; every error says where it is, in one line that a terminal can show."""
    path = folder / "fuzzed.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load(path)
    except RefusedError as refused:
        assert str(refused).startswith("refused: ")
    except InputError as error:
        assert error.diagnostics
        for each in error.diagnostics:
            assert each.message.isprintable() and (each.help or "").isprintable(), each
            if each.file == str(path) and each.code != "Y007":  # an empty file has no lines
                assert each.span and 1 <= each.span.line <= text.count("\n") + text.count("\r") + 1, each


@pytest.mark.parametrize("text", SOURCES)
def test_what_is_spoiled_was_whole(text: str, tmp_path: Path) -> None:
    path = tmp_path / "whole.yaml"
    path.write_text(text)
    assert load(path).grid.arms


@pytest.mark.parametrize(("old", "new"), BEYOND)
def test_values_beyond_all_bounds_load_or_are_refused(tmp_path: Path, old: str, new: str) -> None:
    check(write(tmp_path, (old, new)).read_text(), tmp_path)


@settings(deadline=5000, max_examples=200, derandomize=True)
@given(spoiled())
def test_a_spoiled_experiment_loads_or_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    check(text, tmp_path_factory.getbasetemp())


@pytest.mark.slow
@settings(deadline=5000, max_examples=2000)
@given(spoiled())
def test_thousands_of_spoiled_experiments_load_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    check(text, tmp_path_factory.getbasetemp())
