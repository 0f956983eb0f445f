"""Calibrating: one arm of each distinct shape is trained for 20 steps, and nothing of it is kept."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from ablate.experiment import load
from ablate.planning import make_plan
from ablate.planning.price import price, shape_of
from ablate.slots import Pool
from ablate.sweep import calibrating
from tests.ablate.experiment.maker import write
from tests.ablate.planning.setups import plugin

BROKEN = """
class _Broken(nn.Module):
    def forward(self, x):
        if not x.is_meta and x.shape[0] == 4:
            raise RuntimeError("out of luck")
        return x

class Broken(FeedForward):
    'Fails in a step of training.'
    kind: Literal["broken"] = "broken"

    def build(self, at: Site) -> nn.Module:
        return _Broken()
"""


TELLS = """
from ablate.slots import Logger

class Tells(Logger):
    'Leaves a file where it is built.'
    kind: Literal["tells"] = "tells"

    def build(self, folder, name):
        open("PLACE", "a").close()
        raise RuntimeError("no service")
"""


def test_each_shape_is_trained_once_and_one_that_fails_is_not_there(tmp_path: Path) -> None:
    plugin(tmp_path, BROKEN + TELLS.replace("PLACE", str(tmp_path / "told.txt")))
    factors = (
        "lr: {path: training.optimizer.lr, levels: [1e-2, 1e-3]}\n"
        "  norm: {path: model.norm, levels: [layer, rms]}\n"
        "  ffn: {path: model.feed_forward, levels: [mlp, broken]}"
    )
    old = "placement: {path: model.placement, levels: [pre, post]}\n  residual: {switch: model.residual}"
    experiment = load(
        write(tmp_path, (old, factors), ("seeds: 6", "plugins: [./mine.py]\nloggers: [tells]\nseeds: [7, 8]"))
    )
    made = make_plan(experiment).data
    shapes = {arm["name"]: shape_of(arm) for arm in made["arms"]}
    assert shapes["baseline"] == shapes["lr=0.001"]
    assert len(set(shapes.values())) == 3

    submitted: list[str] = []

    class Watched:
        """The executor's own pool, with a list of what it was given."""

        def __init__(self, pool: Pool) -> None:
            self.pool = pool

        def __getattr__(self, name: str) -> object:
            return getattr(self.pool, name)

        def submit(self, job: object) -> None:
            submitted.append(job.trial)  # type: ignore[attr-defined]
            self.pool.submit(job)  # type: ignore[arg-type]

    with closing(experiment.settings.executor.open()) as pool:
        measured = calibrating.calibrate(made, Watched(pool))  # type: ignore[arg-type]
    assert sorted(submitted) == sorted(set(shapes.values()))
    assert measured.keys() == {shapes["baseline"], shapes["norm=rms"]}
    assert all(each.step_seconds > 0 for each in measured.values())
    assert all(each.memory is None or each.memory > 1_000_000 for each in measured.values())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py", "small.yaml"]  # loggers are told nothing

    cost = price(made, 1, measured)
    assert cost.basis == "partly measured"
    ids = {arm["name"]: arm["id"] for arm in made["arms"]}
    base = measured[shapes["baseline"]]
    looks = made["budget"]["evaluations"] * base.evaluation_seconds
    assert base.evaluation_seconds > 0
    assert cost.trial_seconds[ids["lr=0.001"]] == (20 + 6) * base.step_seconds + looks
