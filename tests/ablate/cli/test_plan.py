"""`ablate plan`: what it prints, for people and for tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ablate.cli import main
from tests.ablate.cli.conftest import Command
from tests.ablate.experiment.maker import write
from tests.ablate.planning.test_matching import BY_RATIO, experiment

Planned = Callable[..., tuple[int, str, str]]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Planned:
    """Call the verb on `small.yaml`: the exit code, stdout and stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.argv", ["ablate", "plan", "small.yaml", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call


def test_json_has_the_plan_its_price_and_its_warnings(planned: Planned, tmp_path: Path) -> None:
    write(tmp_path, ("seeds: 6", "seeds: 3\nexecutor: {kind: local, parallel: 2}"))
    code, out, err = planned("--json")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    assert len(shown["trials"]) == 9
    assert (shown["price"]["basis"], shown["price"]["workers"]) == ("rough", 2)
    assert shown["room"] == {"places": 2, "limit": "as `parallel` says", "short": False}
    assert shown["price"]["trial_seconds"].keys() == {arm["id"] for arm in shown["arms"]}
    assert shown["warnings"] == [
        {
            "code": "W001",
            "message": "3 seeds: the exact sign-flip test cannot go below p = 0.25",
            "file": "small.yaml",
            "line": 14,
            "help": "6 seeds or more can reach p < 0.05",
        }
    ]


def test_people_read_the_sizes_the_sums_and_what_is_left_out(planned: Planned, tmp_path: Path) -> None:
    heads = ("path: model.placement, levels: [pre, post]", "path: model.mixer.heads, levels: [2, 3, 4]")
    rule = "exclude: [{residual: off, why: hopeless}]\n"
    rule += "expect: [{arm: {placement: 4}, effect: no_difference, source: a hunch}]\n"
    write(tmp_path, heads, ("objective:", rule + "objective:"))
    code, out, err = planned()
    assert "not matched" not in out
    lines = out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines[2:5]] == ["arm", "baseline", "placement=4"]
    assert lines[6] == "baseline: placement=2, residual=on"
    assert lines[7].startswith("2 arms x 6 seeds = 12 trials of 20 steps (15,360 tokens) on ")
    assert "excluded: `residual=off` by exclude[0]: hopeless" in lines
    assert "excluded: 1 cell that cannot be built" in lines
    assert "predicted: placement=4 no difference (a hunch)" in lines
    assert lines[-3].startswith("at once: ")
    assert lines[-2].startswith("price: about ")
    assert lines[-2].endswith("(rough: `--calibrate` measures it)")
    assert lines[-1].startswith("plan ")
    assert err.startswith("warning[W003]: `placement=3` is excluded: 3 heads do not divide a width of 16\n")


def test_what_matching_chose_has_a_column_and_a_line(planned: Planned, tmp_path: Path) -> None:
    experiment(tmp_path, "gated")
    lines = planned()[1].splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines[2:5]}
    assert rows["ffn=gated"][1] == "+18.6%"
    unlike = "1 arm differs by more than 1% in parameters or training FLOPs; `match` can make it equal"
    assert lines[5] == f"not matched: {unlike}"
    experiment(tmp_path, "gated", BY_RATIO)
    code, out, _ = planned()
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[2:5]}
    assert rows["arm"][-1] == "ratio"
    assert (rows["ffn=gated"][1], rows["ffn=gated"][-1]) == ("-0.3%", "2.78")
    assert rows["baseline"][-1] == "4"
    assert "not matched" not in out
    line = "matched: parameters within 1% of the baseline's, by model.feed_forward.ratio in 1 arm"
    assert line in out.splitlines()


def test_steps_that_differ_have_a_column_and_are_counted(planned: Planned, tmp_path: Path) -> None:
    write(tmp_path, ("{switch: model.residual}", "{path: budget.steps, levels: [20, 40]}"), ("seeds: 6", "seeds: 1"))
    lines = planned()[1].splitlines()
    assert [line.split()[-1] for line in lines[2:6]] == ["steps", "20", "20", "40"]
    assert lines[5].split()[:4] == ["residual=40", lines[3].split()[1], lines[3].split()[2], "+100.0%"]
    assert any(line.startswith("3 arms x 1 seed = 3 trials of 20 to 40 steps (5,120 tokens) on ") for line in lines)


def test_tuning_trials_are_counted_in_the_price(planned: Planned, tmp_path: Path) -> None:
    tune = "tune: {params: {training.optimizer.lr: {log: [1e-4, 1e-2], n: 3}}, seeds: [100, 101]%s}\nseeds: 6"
    write(tmp_path, ("seeds: 6", tune % ", at_baseline: true"))
    again = "every arm also runs at the values that are best for the baseline: at most 12 more trials"
    assert again in planned()[1].splitlines()
    write(tmp_path, ("seeds: 6", tune % ""))
    code, out, _ = planned()
    assert code == 0
    line = (
        "tuning first, by grid: training.optimizer.lr (3 values); 3 combinations x 2 seeds for each arm = 18 more "
        "trials"
    )
    assert line in out.splitlines()
    tuned = json.loads(planned("--json")[1])["price"]
    assert tuned["seconds"] == pytest.approx((6 + 6) * sum(tuned["trial_seconds"].values()))


def test_sizes_are_compared_within_a_task(planned: Planned, tmp_path: Path) -> None:
    """The other task has another vocabulary and context, and so another size in all of its arms."""
    tasks = "task: {path: task, levels: [associative_recall, induction]}\n  ratio: "
    ratio = "{path: model.feed_forward.ratio, levels: [4, %s]}"
    task = ("task: {kind: text, source: python-docs, context: 16}", "task: associative_recall")
    changes = [task, ("  residual: {switch: model.residual}\n", ""), ("objective:", "design: full\nobjective:")]
    factor = "placement: {path: model.placement, levels: [pre, post]}"
    write(tmp_path, *changes, (factor, tasks + "{path: model.placement, levels: [pre, post]}"))
    code, out, err = planned()
    assert code == 0, err
    assert "not matched" not in out
    (own,) = (line for line in out.splitlines() if line.startswith("task=induction, ratio=pre"))
    assert "7,712" in own
    assert "%" not in own
    write(tmp_path, *changes, (factor, tasks + ratio % 2))
    assert "not matched: 2 arms differ by more than 1%" in planned()[1]


def test_a_narrow_terminal_cuts_no_number_and_no_name(
    monkeypatch: pytest.MonkeyPatch, planned: Planned, tmp_path: Path
) -> None:
    write(tmp_path, ("residual: {switch", "a_factor_of_a_long_name: {switch"))
    plain = planned()[1]
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    shown = planned()[1]
    words = plain.splitlines()[3].split()
    assert words[:3] == ["baseline", "10,144", "3.39e+06"]
    assert all(word in shown for word in words)
    assert "…" not in shown
    assert "a_factor_of_a_long_n" in shown


def test_calibrating_measures_the_price(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, ("seeds: 6", "executor: {kind: local, parallel: 2}\nseeds: 6"))
    shown = ablate("plan", "small.yaml", "--calibrate")
    assert shown.returncode == 0, shown.stderr
    (line,) = (line for line in shown.stdout.splitlines() if line.startswith("price: "))
    assert line.endswith(" of memory (measured)")
    assert "about" not in line
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]
