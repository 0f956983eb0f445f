"""One trial from its folder to its record."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ablate.errors import InputError
from ablate.model.keys import generator
from ablate.model.parameters import build, named_parameters, root_site
from ablate.records.layout import TrialFolder, read_json
from ablate.records.sealing import write_json
from ablate.records.series import read_series
from ablate.registry import Registry
from ablate.training.job import Job
from ablate.training.trial import train
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.optimizer import AdamW
from ablate_plugins.schedule import CosineSchedule
from ablate_plugins.task import Text
from tests.trial_maker import make_trial

REGISTRY = Registry.installed()
OPTIMIZERS = '''
from typing import Literal

import torch

from ablate.slots import Optimizer


class Careless(Optimizer):
    """Asks for gradients where torch makes none."""

    kind: Literal["careless"] = "careless"

    def build(self, parameters):
        """Plain steps."""
        return _Careless([value for _, value in parameters], {"lr": self.lr})


class Thorough(Optimizer):
    """Calls its closure several times in a step."""

    kind: Literal["thorough"] = "thorough"

    def build(self, parameters):
        """L-BFGS."""
        return torch.optim.LBFGS([value for _, value in parameters], lr=self.lr, max_iter=3)


class Deaf(Optimizer):
    """Does not call its closure."""

    kind: Literal["deaf"] = "deaf"

    def build(self, parameters):
        """Plain steps."""
        return _Deaf([value for _, value in parameters], lr=self.lr)


class Exhausted(Optimizer):
    """Comes to the end of an iterator of its own."""

    kind: Literal["exhausted"] = "exhausted"

    def build(self, parameters):
        """Plain steps, at two rates and no more."""
        return _Exhausted([value for _, value in parameters], lr=self.lr)


class _Exhausted(torch.optim.SGD):
    rates = iter([0.1, 0.01])

    def step(self, closure):
        self.param_groups[0]["lr"] = next(self.rates)
        return super().step(closure)


class _Deaf(torch.optim.SGD):
    def step(self, closure):
        super().step()


class _Careless(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure):
        loss = closure()
        for group in self.param_groups:
            for value in group["params"]:
                value.sub_(value.grad, alpha=group["lr"])
        return loss
'''


def test_lightning_computes_what_a_loop_written_by_hand_computes(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial", steps=40, seed=3)
    assert train(folder, 1, REGISTRY) == "complete"
    record = read_json(folder.result)

    job = Job.read(folder, REGISTRY)
    data = job.load()
    model = build(job.setup.model, root_site(data.interface), stream=(3,), initializer=LecunNormal())
    named = list(named_parameters(model))
    optimizer = AdamW(lr=1e-2).build(named)
    losses, norms = [], []
    for step in range(40):
        (inputs,), targets = data.batch(4, generator(3, "data", step))
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * CosineSchedule().factor(step, 40)
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        norms.append(float(nn.utils.clip_grad_norm_([value for _, value in named], 1.0)))
        optimizer.step()
        losses.append(float(loss.detach()))

    curves = read_series(folder.path / record["files"]["curves"]).to_pandas()
    assert curves.query("metric == 'train/loss'")["value"].tolist() == losses
    assert curves.query("metric == 'grad_norm/global'")["value"].tolist() == norms
    with torch.no_grad():
        batches = [
            (cross_entropy(model(x).flatten(0, 1), y.flatten()).item(), y.numel()) for (x,), y in data.evaluation(8)
        ]
    final = sum(loss * count for loss, count in batches) / sum(count for _, count in batches)
    assert record["metrics"]["val/loss"] == pytest.approx(final, abs=1e-6)
    assert record["metrics"]["val/bits_per_char"] == pytest.approx(final / math.log(2), abs=1e-6)


def test_a_record_says_what_happened(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial", steps=40)
    train(folder, 1, REGISTRY)
    record = read_json(folder.result)
    assert (record["end"], record["reason"], record["attempt"]) == ("complete", None, 1)
    assert (record["steps"], record["tokens"]) == (40, 40 * 4 * 16)
    assert record["peak_memory"] > 1e7
    assert record["seconds"] > 0
    assert record["tokens_per_second"] == pytest.approx(
        record["tokens"] / (record["seconds"] - record["evaluation_seconds"])
    )
    assert record["facts"]["initial_loss"] == pytest.approx(math.log(103) + 0.5, abs=0.6)
    assert {"python", "torch", "pytorch-lightning", "ablate-arch"} <= set(record["versions"])
    curves = read_series(folder.path / record["files"]["curves"]).to_pandas()
    assert curves.query("metric == 'val/loss'")["step"].tolist() == [13, 27, 40]
    assert curves.query("metric == 'lr'")["value"].max() == pytest.approx(1e-2)
    probes = read_series(folder.path / record["files"]["probes"]).to_pandas()
    assert sorted(probes["step"].unique()) == [0, 1, 2, 5, 10, 20, 39]
    norms = probes.query("metric == 'grad_norm' and step == 5")["value"]
    total = curves.query("metric == 'grad_norm/global' and step == 5")["value"].item()
    assert (norms**2).sum() ** 0.5 == pytest.approx(total, rel=1e-5)
    assert set(probes.query("metric == 'stream_rms'")["layer"]) == {0, 1, 2}


def test_probes_change_no_number(tmp_path: Path) -> None:
    results = []
    for name, probes in (("with", {"every": 1}), ("without", {"use": []})):
        folder = make_trial(tmp_path / name, steps=30, probes=probes)
        train(folder, 1, REGISTRY)
        results.append(read_json(folder.result)["metrics"])
    assert results[0] == results[1]


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_how_often_a_trial_is_evaluated_changes_no_number(tmp_path: Path, precision: str) -> None:
    results = []
    for evaluations in (1, 7, 30):  # Lightning goes around all steps between two of them at once
        folder = make_trial(
            tmp_path / str(evaluations), steps=30, evaluations=evaluations, training={"precision": precision}
        )
        train(folder, 1, REGISTRY)
        record = read_json(folder.result)
        curves = read_series(folder.path / record["files"]["curves"]).to_pandas()
        losses = curves.query("metric == 'train/loss'")["value"].tolist()
        results.append((losses, record["metrics"]))
        assert losses[-1] < losses[0] - 1
    assert results[0] == results[1] == results[2]


def test_clipping_is_counted_and_can_be_off(tmp_path: Path) -> None:
    tight = make_trial(tmp_path / "tight", steps=10, training={"clip": 1e-3})
    never = make_trial(tmp_path / "never", steps=10, training={"clip": None})
    for folder, rate in ((tight, 1.0), (never, 0.0)):
        train(folder, 1, REGISTRY)
        assert read_json(folder.result)["facts"]["clip_rate"] == rate


@pytest.mark.parametrize("lr", [1e20, 30.0])
def test_divergence_is_a_result(tmp_path: Path, lr: float) -> None:
    folder = make_trial(
        tmp_path / "trial",
        steps=100,
        training={"optimizer": {"kind": "adamw", "lr": lr}, "clip": None, "schedule": "constant"},
        model={"placement": "none", "norm": "none"},
        diverged={"patience": 5},
    )
    assert train(folder, 1, REGISTRY) == "diverged"
    record = read_json(folder.result)
    assert record["end"] == "diverged"
    assert record["metrics"] == dict.fromkeys(Text.units)
    assert record["reason"]["rule"] in ("nonfinite", "loss_above_initial")
    assert record["steps"] == record["reason"]["step"] + 1 < 100
    losses = read_series(folder.path / record["files"]["curves"]).to_pandas().query("metric == 'train/loss'")
    assert len(losses) == record["steps"]


def test_a_final_value_that_is_not_finite_is_divergence(tmp_path: Path) -> None:
    folder = make_trial(
        tmp_path / "trial",
        steps=1,
        training={"optimizer": {"kind": "adamw", "lr": 1e30}, "schedule": "constant", "clip": None},
        evaluations=1,
    )
    assert train(folder, 1, REGISTRY) == "diverged"
    assert read_json(folder.result)["reason"] == {"rule": "nonfinite", "step": 1}


def watching(folder: TrialFolder, objective: str) -> TrialFolder:
    """The trial with its objective named, as a driver writes it."""
    config = read_json(folder.config)
    write_json(folder.config, config | {"observe": config["observe"] | {"objective": objective}})
    return folder


def give(monkeypatch: pytest.MonkeyPatch, **metrics: float) -> None:
    """Let the task report these values beside its own loss, under ``val/NAME``."""
    extra = {f"val/{name}": value for name, value in metrics.items()}
    monkeypatch.setattr(Text, "units", {"val/loss": "nats/token", "val/bits_per_char": "bits/char"})
    monkeypatch.setattr(Text, "metrics", lambda self, totals: {"val/loss": totals["nats"] / totals["count"], **extra})


def test_a_secondary_metric_that_is_not_finite_is_missing_and_the_trial_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, bits_per_char=math.inf)
    folder = watching(make_trial(tmp_path / "trial", steps=5), "val/loss")
    assert train(folder, 1, REGISTRY) == "complete"
    record = read_json(folder.result)
    assert record["metrics"]["val/bits_per_char"] is None
    assert math.isfinite(record["metrics"]["val/loss"])
    assert record["reason"] is None


def test_an_objective_that_is_not_finite_is_divergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, bits_per_char=math.nan)
    folder = watching(make_trial(tmp_path / "trial", steps=5), "val/bits_per_char")
    assert train(folder, 1, REGISTRY) == "diverged"
    record = read_json(folder.result)
    assert record["reason"] == {"rule": "nonfinite", "step": 5}
    assert record["metrics"] == {"val/loss": None, "val/bits_per_char": None}


def test_a_trial_that_names_no_objective_goes_by_every_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, bits_per_char=math.inf)
    assert train(make_trial(tmp_path / "trial", steps=5), 1, REGISTRY) == "diverged"


def test_metrics_that_the_task_does_not_name_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, accuracy=0.5)
    folder = watching(make_trial(tmp_path / "trial", steps=5), "val/loss")
    with pytest.raises(InputError) as raised:
        train(folder, 1, REGISTRY)
    (found,) = raised.value.diagnostics
    assert (found.code, found.message) == (
        "S306",
        "the task `text` does not give `val/bits_per_char`, which is in its `units`, and gives `val/accuracy`, which "
        "is not in its `units`",
    )
    assert not folder.result.exists()


def test_a_task_without_the_objective_is_an_error_and_no_divergence(tmp_path: Path) -> None:
    folder = watching(make_trial(tmp_path / "trial", steps=5), "val/accuracy")
    with pytest.raises(InputError, match="the task `text` does not give `val/accuracy`, the objective"):
        train(folder, 1, REGISTRY)
    assert not folder.result.exists()


def test_an_exception_seals_nothing(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial", model={"mixer": {"kind": "attention", "heads": 3}})
    with pytest.raises(Exception, match="3 heads do not divide a width of 16"):
        train(folder, 1, REGISTRY)
    assert not folder.result.exists()


def test_changed_data_are_noticed(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial")
    write_json(folder.config, read_json(folder.config) | {"data": {"hash": "another"}})
    with pytest.raises(InputError, match="the task's data have changed since the plan was made"):
        train(folder, 1, REGISTRY)


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ablate.training.watching.PROGRESS_SECONDS", 0.0)
    told: list[tuple[int, int, float, float, int | None]] = []
    folder = make_trial(tmp_path / "trial", steps=45)
    train(folder, 1, REGISTRY, on_progress=lambda *news: told.append(news))
    assert [step for step, *_ in told] == list(range(1, 46))
    assert all(steps == 45 and speed > 0 for _, steps, _, speed, _ in told)
    assert math.isfinite(told[-1][2])


def with_optimizers(folder: Path) -> Registry:
    (folder / "optimizers.py").write_text(OPTIMIZERS, encoding="utf-8")
    registry = Registry.installed()
    registry.add_file(folder / "optimizers.py")
    return registry


def test_an_optimizer_may_call_its_closure_where_torch_makes_no_gradients(tmp_path: Path) -> None:
    registry = with_optimizers(tmp_path)
    losses = []
    for optimizer in (
        {"kind": "careless", "lr": 0.1},
        {"kind": "sgd", "lr": 0.1, "momentum": 0.0, "weight_decay": 0.0},
    ):
        folder = make_trial(tmp_path / str(optimizer["kind"]), steps=5, training={"optimizer": optimizer})
        assert train(folder, 1, registry) == "complete"
        curves = read_series(folder.path / read_json(folder.result)["files"]["curves"]).to_pandas()
        losses.append(curves.query("metric == 'train/loss'")["value"].tolist())
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_a_step_is_one_step_however_often_its_closure_is_called(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial", steps=5, training={"optimizer": {"kind": "thorough", "lr": 0.1}})
    assert train(folder, 1, with_optimizers(tmp_path)) == "complete"
    record = read_json(folder.result)
    assert record["steps"] == 5
    curves = read_series(folder.path / record["files"]["curves"]).to_pandas()
    assert curves.query("metric == 'grad_norm/global'")["step"].tolist() == [0, 1, 2, 3, 4]


def test_an_optimizer_that_does_not_call_its_closure_is_told_so(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial", steps=5, training={"optimizer": {"kind": "deaf", "lr": 0.1}})
    with pytest.raises(RuntimeError, match=r"_Deaf\.step does not call the closure"):
        train(folder, 1, with_optimizers(tmp_path))


def test_a_component_that_raises_stop_iteration_has_failed_and_is_not_the_end_of_the_data(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial", steps=5, training={"optimizer": {"kind": "exhausted", "lr": 0.1}})
    with pytest.raises(RuntimeError, match="a component raised StopIteration"):
        train(folder, 1, with_optimizers(tmp_path))
    assert not folder.result.exists()
