"""What users of such tools ran into, as they would type it."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ablate as api
from ablate.records.layout import StudyFolder
from ablate.records.spelling import spelled
from tests.ablate.cli.conftest import Command
from tests.ablate.experiment.maker import write
from tests.ablate.planning.test_matching import BY_RATIO, experiment
from tests.study_maker import HOSTILE, make_study

FULL = ("objective:", "design: full\nobjective:")
SWITCH = "  residual: {switch: model.residual}\n"
LEVELS = "{path: model.placement, levels: [pre, post]}"


def planned(ablate: Command, *arguments: str) -> dict[str, Any]:
    shown = ablate("plan", "small.yaml", *arguments, "--json")
    assert shown.returncode == 0, shown.stderr
    plan: dict[str, Any] = json.loads(shown.stdout)
    return plan


def test_2_a_baseline_that_is_a_cell_of_the_grid_runs_once(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, FULL)
    plan = planned(ablate)
    assert len(plan["arms"]) == len({arm["id"] for arm in plan["arms"]}) == 4
    cells = [tuple(arm["levels"].values()) for arm in plan["arms"]]
    assert sorted(cells) == [("post", "off"), ("post", "on"), ("pre", "off"), ("pre", "on")]
    assert (plan["arms"][0]["name"], cells[0]) == ("baseline", ("pre", "on"))
    assert len({trial["id"] for trial in plan["trials"]}) == len(plan["trials"]) == 24


TIGHT = """\
import signal
from pathlib import Path
from typing import Literal
import torch
from torch import nn
from ablate.slots import Norm


class _Tight(nn.Module):
    def forward(self, x):
        in_a_worker = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # the plan can be made
        if in_a_worker and not Path({more!r}).exists():
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return x * 0.9


class Tight(Norm):
    "Wants more memory than there is."
    kind: Literal["tight"] = "tight"

    def build(self, at):
        return _Tight()
"""


def test_an_arm_whose_tuning_failed_is_gone_on_with_by_a_retry(ablate: Command, tmp_path: Path) -> None:
    (tmp_path / "tight.py").write_text(TIGHT.format(more="nowhere"))
    tune = "tune: {params: {training.optimizer.lr: {values: [1e-3]}}, seeds: [9]}"
    write(tmp_path, (LEVELS, "{path: model.norm, levels: [layer, tight]}"), (SWITCH, ""), ("placement:", "norm:"),
          ("depth: 2", "depth: 1\n  norm: layer"), ("steps: 20", "steps: 2"),
          ("seeds: 6", f"seeds: 1\n{tune}\nplugins: [./tight.py]"))  # fmt: skip
    shown = ablate("run", "small.yaml")
    assert shown.stdout == (
        "2 of 4 trials have a result, 1 failed, 1 waiting: runs/small\nnext: ablate run small.yaml --retry oom\n"
    )


def test_3_what_runs_out_of_memory_waits_and_is_retried_alone(ablate: Command, tmp_path: Path) -> None:
    more = tmp_path / "more"
    (tmp_path / "tight.py").write_text(TIGHT.format(more=str(more)))
    write(tmp_path, (LEVELS, "{path: model.norm, levels: [layer, tight]}"), (SWITCH, ""), ("placement:", "norm:"),
          ("depth: 2", "depth: 1\n  norm: layer"), ("steps: 20", "steps: 2"),
          ("seeds: 6", "seeds: 1\nplugins: [./tight.py]"))  # fmt: skip
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 1, shown.stderr
    said = "OutOfMemoryError: even with a micro-batch of 1: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert f"  failed: norm=tight, seed 0: {said}\n" in shown.stderr
    remedy = "  = help: `--retry oom` runs those that ran out of memory again; every attempt is kept\n"
    assert shown.stderr.endswith(remedy)
    assert shown.stdout.endswith("\nnext: ablate run small.yaml --retry oom\n")
    told = json.loads(ablate("status", "small.yaml", "--json").stdout)
    assert told["next"] == "ablate run small.yaml --retry oom"
    assert told["failures"] == [{"arm": "norm=tight", "seed": 0, "reason": said, "cause": "oom"}]

    more.touch()
    again = ablate("run", "small.yaml")
    assert again.returncode == 1
    assert "2 trials: 1 complete, 0 diverged, 1 failed; 0 to run, " in again.stderr
    assert again.stderr.endswith(remedy)
    retried = ablate("run", "small.yaml", "--retry", "oom")
    assert retried.returncode == 0, retried.stderr
    assert "; 1 to run, " in retried.stderr
    shown = ablate("show", "small.yaml", "norm=tight", "--seed", "0")
    lines = shown.stdout.splitlines()
    assert "end: complete, attempts: 2" in lines
    assert f"attempt 1: failed (out of memory): {said}" in lines
    assert "attempt 2: complete" in lines


def test_5_a_grid_that_grows_keeps_its_trials(ablate: Command, tmp_path: Path) -> None:
    def trials(*changes: tuple[str, str]) -> set[str]:
        write(tmp_path, FULL, (SWITCH, ""), *changes)
        return {trial["id"] for trial in planned(ablate)["trials"]}

    first = trials()
    level = (LEVELS, LEVELS.replace("post", "post, sandwich"))
    second = trials(level)
    ratio = ("seeds: 6", "  ratio: {path: model.feed_forward.ratio, levels: [2, 4]}\nseeds: 6")
    third = trials(level, ratio)
    assert (len(first), len(second), len(third)) == (12, 18, 36)
    assert first < second < third


def test_5_a_finished_grid_that_grows_runs_new_cells_alone(ablate: Command, tmp_path: Path) -> None:
    short = (("seeds: 6", "seeds: 1"), ("steps: 20", "steps: 2"))

    def started(*changes: tuple[str, str]) -> set[str]:
        write(tmp_path, FULL, (SWITCH, ""), *short, *changes)
        shown = ablate("run", "small.yaml", "--json")
        assert shown.returncode == 0, shown.stderr
        events = [json.loads(line) for line in shown.stderr.splitlines()]
        return {event["arm"] for event in events if event["event"] == "trial_started"}

    level = (LEVELS, LEVELS.replace("post", "post, sandwich"))
    ratio = ("seeds: 1", "  ratio: {path: model.feed_forward.ratio, levels: [2, 4]}\nseeds: 1")
    assert started() == {"baseline", "placement=post"}
    assert started(level) == {"placement=sandwich"}
    assert started(level, ratio) == {
        "placement=pre, ratio=2", "placement=post, ratio=2", "placement=sandwich, ratio=2",
    }  # fmt: skip
    assert started(level, ratio) == set()


def test_6_thirty_factors_are_refused_at_once_with_their_number(tmp_path: Path) -> None:
    options = "".join(f"    f{index}: bool = False\n" for index in range(30))
    (tmp_path / "many.py").write_text(
        "from typing import Literal\nfrom ablate.slots import Norm\n\n"
        f"class Many(Norm):\n    'Thirty options.'\n    kind: Literal['many'] = 'many'\n{options}\n"
        "    def build(self, at):\n        raise AssertionError\n"
    )
    factors = "".join(f"  f{index}: {{path: model.norm.f{index}, levels: [false, true]}}\n" for index in range(30))
    norm = ("depth: 2", "depth: 2\n  norm: many")
    write(
        tmp_path,
        FULL,
        norm,
        (f"  placement: {LEVELS}\n{SWITCH}", factors),
        ("seeds: 6", "seeds: 1\nplugins: [./many.py]"),
    )
    code = (
        "import resource, sys; from ablate.cli import main; sys.argv = ['ablate', 'plan', 'small.yaml']\n"
        "from ablate.experiment import load\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: main()\n"
        "except SystemExit as end: code = end.code\n"
        "assert 'ablate.planning' not in sys.modules\n"
        "assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 500_000\n"
        "sys.exit(code)"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert shown.returncode == 3, shown.stderr
    assert shown.stdout == ""
    assert shown.stderr == (
        "refused: the design `full` makes 1,073,741,824 arms, with 1 seed each 1,073,741,824 trials, and "
        "`budget.max_trials` is 10,000\n"
        "  = help: smaller designs: `one_at_a_time` 31, `pairs` 466, `fractional` 64 trials\n"
    )


def test_7_and_8_a_study_of_trials_that_all_diverge_is_reported(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, (SWITCH, ""), ("lr: 1e-2}", "lr: 1e30}, clip: null"), ("seeds: 6", "seeds: 1"))
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 0, shown.stderr
    assert "\n2 trials: 0 complete, 2 diverged, 0 failed\n" in shown.stderr
    assert ablate("report", "small.yaml").returncode == 0
    results = api.results(tmp_path / "runs/small")
    assert results.trials()["end"].tolist() == ["diverged"] * 2
    assert results.trials()["val/loss"].isna().all()
    assert set(results.effects()["verdict"]) == {"diverged"}
    assert (
        "<strong>placement=post</strong> diverged in 1 of 1 seeds" in (tmp_path / "runs/small/report.html").read_text()
    )
    trials, effects = (pd.read_csv(tmp_path / f"runs/small/{name}.csv") for name in ("trials", "effects"))
    assert trials["end"].tolist() == ["diverged"] * 2
    assert trials["val/loss"].isna().all()
    assert effects[["mean", "effect", "low", "high"]].isna().all(axis=None)


LOUD = """\
from typing import Literal
from torch import nn
from ablate.slots import Norm


class _Loud(nn.Module):
    def forward(self, x):
        return x if self.training else x * 1e38


class Loud(Norm):
    "Trains as any, and its value at the end is beyond all numbers."
    kind: Literal["loud"] = "loud"

    def build(self, at):
        return _Loud()
"""


def test_8_an_infinite_value_at_the_end_is_divergence_down_to_the_tables(ablate: Command, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    write(tmp_path, (LEVELS, "{path: model.norm, levels: [layer, loud]}"), (SWITCH, ""), ("placement:", "norm:"),
          ("depth: 2", "depth: 1\n  norm: layer"), ("steps: 20", "steps: 2"),
          ("seeds: 6", "seeds: 2\nplugins: [./loud.py]"))  # fmt: skip
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 0, shown.stderr
    assert "norm=loud, seed 1: diverged, nonfinite at step 2\n" in shown.stderr
    assert ablate("report", "small.yaml").stdout.startswith("norm=loud diverged in 2 of 2 seeds [95% Wilson CI")
    trials, effects = (pd.read_csv(tmp_path / f"runs/small/{name}.csv") for name in ("trials", "effects"))
    assert trials["end"].tolist() == ["complete", "diverged"] * 2
    base, loud = (trials[trials["name"] == name]["val/loss"] for name in ("baseline", "norm=loud"))
    assert np.isfinite(base).all()
    assert loud.isna().all()
    mean, none = effects["mean"]
    assert mean == pytest.approx(base.mean(), abs=1e-3)
    assert np.isnan(none)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("steps: 20", "steps: 20, pruning: true"), "error[S101]: unknown key `pruning` in `budget`\n"),
        (("seeds: 6", "seeds: 6\npruner: median"), "error[S101]: unknown key `pruner`\n"),
        (("batch: 4}", "batch: 4, halving: {reduction: 2}}"), "error[S101]: unknown key `halving` in `training`\n"),
    ],
)
def test_9_pruning_is_refused_outside_tuning(
    ablate: Command, tmp_path: Path, change: tuple[str, str], text: str
) -> None:
    write(tmp_path, change)
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 2
    assert shown.stderr.startswith(text)
    assert (
        "  = help: trials are pruned by `halving: {reduction: 3, rungs: 2}` in `tune`, and nowhere else" in shown.stderr
    )
    assert not (tmp_path / "runs").exists()


def test_9_an_arm_that_starts_slow_is_pruned_against_itself_alone(ablate: Command, tmp_path: Path) -> None:
    # With so long a warmup the second arm is behind the first at every rung.
    lr = "{training.optimizer.lr: {values: [1e-3, 1e-2]}}"
    tune = f"tune: {{params: {lr}, seeds: [9], halving: {{reduction: 2, rungs: 1}}}}"
    warmup = "{path: training.schedule.warmup, levels: [0, 8]}"
    write(tmp_path, (LEVELS, warmup), (SWITCH, ""), ("placement:", "warmup:"), ("steps: 20", "steps: 8"),
          ("batch: 4}", "batch: 4, schedule: constant}"), ("seeds: 6", f"seeds: 2\n{tune}"))  # fmt: skip
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 0, shown.stderr
    assert ablate("report", "small.yaml").returncode == 0
    results = api.results(tmp_path / "runs/small")
    ends = results.tuning().groupby("name", sort=False)["end"].agg(sorted).to_dict()
    assert ends == {"baseline": ["complete", "pruned"], "warmup=8": ["complete", "pruned"]}
    trials = pd.read_csv(tmp_path / "runs/small/trials.csv")
    assert trials["end"].tolist() == ["complete"] * 4
    effects = pd.read_csv(tmp_path / "runs/small/effects.csv").set_index("name")
    assert effects["mean"].to_dict() == pytest.approx(trials.groupby("name")["val/loss"].mean().to_dict(), abs=1e-3)


def test_9_a_pruned_trial_enters_no_mean(tmp_path: Path) -> None:
    def effect(folder: Path) -> dict[str, Any]:
        frame = api.results(folder).effects().set_index("name")
        row = frame.loc["placement=post"]
        return {key: row[key] for key in ("effect", "low", "high", "pairs")}

    factors = {"placement": ["pre", "post"]}
    without = make_study(tmp_path / "without", factors=factors, failed=[("placement=post", 2)])
    pruned = make_study(tmp_path / "pruned", factors=factors)
    study = StudyFolder(pruned)
    plan = json.loads(study.plan.read_text())
    (trial,) = (each for each in plan["trials"] if each["arm"] == plan["arms"][1]["id"] and each["seed"] == 2)
    result = study.trial(trial["id"]).result
    record = json.loads(result.read_text())
    complete = effect(pruned)
    record |= {"end": "pruned", "metrics": record["metrics"] | {"val/loss": 0.0}}
    result.write_text(json.dumps(record))
    assert effect(pruned) == effect(without)
    assert effect(pruned)["pairs"] == 5
    assert effect(pruned) != complete


TEXTS = ["null", "a/../../b", "x" * 300, HOSTILE]
"""Levels beside null itself, which change nothing but the streams of random numbers."""


@pytest.fixture(scope="module")
def levelled(ablate_in: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which an experiment of such levels was run and reported."""
    folder = tmp_path_factory.mktemp("levelled")
    levels = ", ".join(["null", *(json.dumps(text) for text in TEXTS)])
    write(folder, (LEVELS, f"{{path: training.stream, levels: [{levels}]}}"), (SWITCH, ""), ("seeds: 6", "seeds: 3"),
          ("steps: 20", "steps: 2"), ("smallest_effect: 0.02", "smallest_effect: 1e-6"))  # fmt: skip
    for verb in ("run", "report"):
        ablate_in(folder, verb, "small.yaml").check_returncode()
    return folder


def test_14_and_21_any_text_is_a_level_and_null_is_its_own(ablate: Command, levelled: Path) -> None:
    shown = ablate("plan", "small.yaml", "--json", folder=levelled)
    plan = json.loads(shown.stdout)
    assert [arm["levels"]["placement"] for arm in plan["arms"]] == [None, *TEXTS]
    assert [arm["config"]["training"]["stream"] for arm in plan["arms"]] == [None, *TEXTS]
    text = ablate("plan", "small.yaml", folder=levelled).stdout
    assert "baseline: placement=null\n" in text
    assert 'placement="null"' in text
    assert "\u202e" not in text
    made = sorted(path.name for path in (levelled / "runs/small/trials").iterdir())
    assert made == sorted(trial["id"] for trial in plan["trials"])
    assert all(len(name) == 16 and set(name) <= set("0123456789abcdef") for name in made)
    assert {path.name for path in levelled.iterdir()} == {"small.yaml", "runs"}


def test_21_null_stays_apart_in_every_frame_table_and_file(levelled: Path) -> None:
    study = levelled / "runs/small"
    frame = api.results(study).trials()
    assert frame.groupby("factor.placement", dropna=False).size().tolist() == [3] * 5
    assert frame.groupby(frame["factor.placement"].map(spelled)).size().to_dict()["null"] == 3
    # As pandas reads them, where "null" and "None" would be missing values and fall out of a groupby.
    trials, effects = (pd.read_csv(study / f"{name}.csv") for name in ("trials", "effects"))
    for table, rows in ((trials, 3), (effects, 1)):
        levels = table.groupby("factor.placement")["name"].agg(["size", "first"])
        assert levels["size"].tolist() == [rows] * 5
        assert levels.loc["(null)", "first"] == "baseline"
        assert levels.loc['"null"', "first"] == 'placement="null"'
    assert trials.groupby("factor.placement")["val/loss"].mean().notna().all()
    page = html.unescape((study / "report.html").read_text())
    assert '>placement="null"</strong>' in page
    assert ">(null)<" in page
    assert "\u202e" not in page
    tex = (study / "effects.tex").read_text().splitlines()
    assert len([line for line in tex if line.startswith("placement=") and "null" in line]) == 1


def test_22_an_interval_that_includes_0_is_undecided_with_the_number_of_seeds(ablate: Command, levelled: Path) -> None:
    effects = pd.read_csv(levelled / "runs/small/effects.csv").set_index("name")
    within = effects[(effects["low"] < 0) & (effects["high"] > 0)]
    # The arms differ in nothing but their random numbers, so that by chance alone next to all of them include 0.
    assert len(within)
    assert set(within["verdict"]) == {"undecided"}
    said = ablate("report", "small.yaml", folder=levelled).stdout
    page = html.unescape((levelled / "runs/small/report.html").read_text())
    assert [sentence for sentence in said.splitlines() if " is undecided against baseline: " in sentence]
    for settle in within["settle"].dropna():
        assert f"about {settle:.0f} seeds would settle it" in said
        assert f"about {settle:.0f} seeds would settle it" in page


def test_22_a_better_mean_is_undecided_all_the_same(ablate: Command, tmp_path: Path) -> None:
    def outcome(arm: str, levels: Mapping[str, Any], seed: int) -> float:
        return 1.0 - (0.3 if seed == 0 else -0.06) * (arm == "placement=post")

    make_study(tmp_path / "study", factors={"placement": ["pre", "post"]}, seeds=4, steps=20, outcomes=outcome)
    shown = ablate("report", "study").stdout
    # -0.30 and three times 0.06: the mean is -0.03, its standard error 0.09, and t of 3 degrees of freedom 3.182.
    assert shown.startswith(
        "placement=post is undecided against baseline: -0.030 nats val/loss [95% simultaneous CI -0.316, +0.256]; "
        "1 of 4 seeds agree; about "
    )
    _, row = (row for row in pd.read_csv(tmp_path / "study/effects.csv").to_dict("records") if row["kind"] == "arm")
    assert row["verdict"] == "undecided"
    assert f"about {row['settle']:.0f} seeds would settle it" in shown


def test_14_a_name_of_300_characters_is_an_error(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, ("name: small", f"name: {'x' * 300}"))
    shown = ablate("run", "small.yaml")
    assert shown.returncode == 2
    assert "error[S103]: `name` must be letters, digits" in shown.stderr
    assert not (tmp_path / "runs").exists()


def test_20_a_gate_at_the_same_ratio_carries_its_parameters_and_matching_removes_them(
    ablate: Command, tmp_path: Path
) -> None:
    short = (("seeds: 6", "seeds: 2"), ("steps: 20", "steps: 2"))
    experiment(tmp_path, "gated", None, *short)
    assert ablate("run", "small.yaml").returncode == 0
    assert ablate("report", "small.yaml").returncode == 0
    assert "+19% parameters" in (tmp_path / "runs/small/report.html").read_text()
    (caveat,) = (text for text in api.results(tmp_path / "runs/small").caveats() if "not matched" in text)
    assert caveat.startswith(
        "ffn=gated is not matched to the baseline: +19% parameters and +23% training FLOPs (+44% in feed_forward)."
    )

    experiment(tmp_path, "gated", BY_RATIO, *short)
    assert ablate("run", "small.yaml", "--runs", "matched").returncode == 0
    results = api.results(tmp_path / "matched/small")
    assert not [text for text in results.caveats() if "parameters" in text and "not matched" in text]
    assert "Matching chose `model.feed_forward.ratio`: 2.78 for ffn=gated." in results.caveats()
    study = StudyFolder(tmp_path / "matched/small")
    ratios = {
        json.loads(trial.config.read_text())["config"]["model"]["feed_forward"]["ratio"] for trial in study.trials()
    }
    assert ratios == {4.0, 2.78}
