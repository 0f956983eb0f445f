"""The Python way: each stage takes the value that the stage before made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ablate
from ablate.errors import AblateError, InputError, RefusedError
from ablate.records.tuning import at_baseline
from ablate.sweep.events import Event, TrialEnded, TrialStarted
from tests.ablate.experiment.maker import write
from tests.study_maker import make_study


def test_the_public_names_are_these() -> None:
    assert dir(ablate) == ["Experiment", "compare", "load", "load_model", "network", "plan", "report", "results", "run"]
    with pytest.raises(AttributeError, match="module 'ablate' has no attribute 'nonsense'"):
        ablate.nonsense  # noqa: B018


def test_importing_ablate_imports_nothing_heavy() -> None:
    heavy = ("torch", "pydantic", "pandas", "optuna")
    code = f"import ablate, sys; print([name for name in {heavy} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"


def test_from_a_file_to_a_report(tmp_path: Path) -> None:
    path = write(tmp_path, ("seeds: 6", "seeds: 2\nnoise_floor: true"), ("steps: 20", "steps: 12"))
    experiment = ablate.load(path)
    plan = ablate.plan(experiment)
    events: list[object] = []
    results = ablate.run(plan, runs=tmp_path / "runs", parallel=1, on_event=events.append)
    assert sum(isinstance(event, TrialEnded) for event in events) == 7
    assert results.counts()["planned"] == results.counts()["complete"] == 6
    assert results.noise_floor()[["seed", "difference", "identical"]].values.tolist() == [[0, 0.0, True]]
    assert list(results.effects()["name"]) == ["placement=post", "residual=off"]
    assert results.trials()["val/loss"].notna().all()
    assert {verdict.name for verdict in results.verdicts()} == {"placement=post", "residual=off"}
    report = ablate.report(results, out=tmp_path / "out")
    assert report == tmp_path / "out/report.html"
    assert ablate.report(path, runs=tmp_path / "runs") == tmp_path / "runs/small/report.html"
    assert ablate.results(tmp_path / "runs/small").counts() == results.counts()


def test_the_network_of_an_arm_is_as_its_trial_begins(tmp_path: Path) -> None:
    import torch

    from ablate.model.generation import generate
    from ablate_plugins.decoding import Greedy

    made = ablate.plan(write(tmp_path))
    one, same, other = (ablate.network(made, "placement=post", seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.state_dict()["stack.embed.weight"], same.state_dict()["stack.embed.weight"])
    assert not torch.equal(one.state_dict()["stack.embed.weight"], other.state_dict()["stack.embed.weight"])
    prompt = torch.tensor([[3, 4]])
    assert generate(one, (), prompt=prompt, decoding=Greedy(), most=5).tokens.shape == (1, 5)
    with pytest.raises(ValueError, match=r"^18 tokens would be read, and the context is 16: take a smaller `most`$"):
        generate(one, (), prompt=prompt, decoding=Greedy(), most=17)
    with pytest.raises(ValueError, match=r"^`prompt` must be whole numbers, and it is float32$"):
        generate(one, (), prompt=prompt.float(), decoding=Greedy(), most=5)
    with pytest.raises(InputError, match="the experiment has no arm `pots`"):
        ablate.network(made, "pots")
    for seed, shown in (("x", "'x'"), (1.0, "1.0"), (True, "True"), (-1, "-1"), (1 << 63, str(1 << 63))):
        with pytest.raises(InputError) as caught:
            ablate.network(made, seed=seed)  # type: ignore[arg-type]
        assert str(caught.value) == (
            f"error[S115]: {shown} is no seed\n  = help: give a whole number that is at least 0, as `seed=1`"
        )
    numpy = ablate.network(made, "placement=post", seed=np.int64(1))  # type: ignore[arg-type]
    assert torch.equal(numpy.state_dict()["stack.embed.weight"], same.state_dict()["stack.embed.weight"])


def test_a_notebook_without_a_main_guard_can_run(tmp_path: Path) -> None:
    write(tmp_path, ("seeds: 6", "seeds: 1"), ("steps: 20", "steps: 5"))
    (tmp_path / "cells.py").write_text("import ablate\nprint(ablate.run('small.yaml').counts()['complete'])\n")
    shown = subprocess.run([sys.executable, "cells.py"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert shown.stdout == "3\n"


def test_results_of_nothing_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no study in"):
        ablate.results(write(tmp_path), runs=tmp_path / "runs")


@pytest.mark.slow
def test_data_that_change_stop_the_sweep_once_and_fail_no_trial(tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("to be or not to be\n" * 60)
    task = "task: {kind: text, path: mine.txt, context: 16}"
    path = write(
        tmp_path,
        ("task: {kind: text, source: python-docs, context: 16}", task),
        ("seeds: 6", "seeds: 3"),
        ("steps: 20", "steps: 4"),
    )
    events: list[object] = []

    def change_after_the_first(event: Event) -> None:
        events.append(event)
        if isinstance(event, TrialEnded):
            text.write_text("that is the question\n" * 60)

    runs = tmp_path / "runs"
    with pytest.raises(AblateError) as stopped:
        ablate.run(path, runs=runs, parallel=1, on_event=change_after_the_first)
    assert str(stopped.value) == (
        "error[S305]: the task's data have changed since the plan was made\n"
        "  = help: bring the old data back and run the same command; or give the experiment a new name"
    )
    ended = [event for event in events if isinstance(event, TrialEnded)]
    assert {event.end for event in ended} == {"complete"}
    with pytest.raises(RefusedError, match="data: the task's data changed"):
        ablate.run(path, runs=runs, parallel=1)
    text.write_text("to be or not to be\n" * 60)
    assert ablate.run(path, runs=runs, parallel=1).counts()["complete"] == 9


def test_an_executor_without_parallel_says_so(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text(
        "from typing import Literal\nfrom ablate.slots import Executor\n\n\n"
        'class Elsewhere(Executor):\n    """Runs nothing."""\n\n    kind: Literal["elsewhere"] = "elsewhere"\n\n'
        '    def open(self, trainer=""):\n        """No pool."""\n'
    )
    path = write(tmp_path, ("seeds: 6", "seeds: 6\nexecutor: elsewhere\nplugins: [elsewhere.py]"))
    with pytest.raises(InputError, match=r"S115.*`parallel` is not for executor `elsewhere`"):
        ablate.run(path, runs=tmp_path / "runs", parallel=2)


def test_each_arm_is_tuned_before_it_is_judged(tmp_path: Path) -> None:
    tune = (
        "tune: {params: {training.optimizer.lr: {log: [1e-3, 1e-1], n: 2}}, seeds: [9], at_baseline: true, "
        "halving: {reduction: 2, rungs: 1}}\nnoise_floor: true"
    )
    residual = ("  residual: {switch: model.residual}\n", "")
    path = write(tmp_path, ("seeds: 6", f"seeds: 2\n{tune}"), residual, ("steps: 20", "steps: 6"))
    results = ablate.run(path, runs=tmp_path / "runs")
    tuning = results.tuning()
    assert list(tuning.groupby("name", sort=False)["end"].agg(sorted).map(tuple)) == [("complete", "pruned")] * 2
    chosen = tuning[tuning["chosen"]]
    assert list(chosen["end"]) == ["complete", "complete"]
    tuned = {arm["name"]: arm["tuned"]["training.optimizer.lr"] for arm in results.plan["arms"]}
    assert list(chosen["tuned.training.optimizer.lr"]) == list(tuned.values())
    trials = results.trials()
    assert (len(trials), set(trials["seed"]), set(trials["end"])) == (4, {0, 1}, {"complete"})
    again = results.at_baseline()
    assert list(again["name"]) == ["placement=post"]
    same = at_baseline(results.folder, results.plan).pivot(index="seed", columns="name", values="val/loss")
    assert again["effect"].tolist() == pytest.approx([(same["placement=post"] - same["baseline"]).mean()])
    assert results.noise_floor()["identical"].tolist() == [True]
    assert [caveat for caveat in results.caveats() if caveat.startswith("The best training.optimizer.lr of baseline")]
    text = ablate.report(results).read_text()
    how = "2 combinations on 1 seed that no effect uses; at each of 1 rung one in 2 goes on."
    assert f"Each arm was tuned by grid: {how}" in text
    rerun: list[object] = []
    ablate.run(path, runs=tmp_path / "runs", on_event=rerun.append)
    assert not [event for event in rerun if isinstance(event, TrialStarted)]


def test_a_budget_that_is_used_up_is_an_error_and_no_half_of_the_results(tmp_path: Path) -> None:
    path = write(tmp_path, ("seeds: 6", "seeds: 1"), ("steps: 20", "steps: 4, disk: 1kB"))
    with pytest.raises(RefusedError) as raised:
        ablate.run(path, runs=tmp_path / "runs")
    assert str(raised.value).startswith("stopped: the budget of 1,000 B `disk` is used up (")


@pytest.mark.parametrize(
    ("inside", "help"),
    [
        ("runs/small/plan.json", "it is inside of a study: give `runs/small`"),
        ("runs/small/trials", "it is inside of a study: give `runs/small`"),
        ("notes.txt", "give a study's folder or an experiment's file"),
        ("small.yaml", "there is one in `runs/small`: give that folder, or `--runs runs`"),
        ("other.yaml", "run it first: ablate run other.yaml --runs 'no where'"),
        ("an other.yaml", "run it first: ablate run 'an other.yaml' --runs 'no where'"),
        ("no/such", "give a study's folder or an experiment's file"),
    ],
)
def test_what_is_no_study_is_told_with_what_may_be_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str, help: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make_study(Path("runs/small"), seeds=1)
    Path("notes.txt").touch()
    for name in ("small", "other", "an other"):
        Path(f"{name}.yaml").write_text(f"name: {name}\n")
    with pytest.raises(InputError) as raised:
        ablate.results(inside, runs="no where")
    (problem,) = raised.value.diagnostics
    assert (problem.code, problem.help) == ("S401", help)
