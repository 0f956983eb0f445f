"""What users of such tools ran into in their YAML, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.errors import InputError
from ablate.experiment import load
from tests.ablate.cli.conftest import Command
from tests.ablate.experiment.maker import write

PLACEMENT = "{path: model.placement, levels: [pre, post]}"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("metric: val/loss", "metric: {name: val/loss, direction: maximize}"), """\
error[S103]: `metric` must be text, not a mapping
  --> small.yaml:15:21
15 | objective: {metric: {name: val/loss, direction: maximize}, smallest_effect: 0.02}
   |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""),
        (("lr: 1e-2", "lr: 1e-2, direction: maximize"), """\
error[S101]: unknown key `direction` in `training.optimizer`
  --> small.yaml:10:47
10 | training: {optimizer: {kind: adamw, lr: 1e-2, direction: maximize}, batch: 4}
   |                                               ^^^^^^^^^
   = help: `goal` belongs in `objective`
"""),
        (("metric: val/loss", "metric: val/loss, direction: maximize"), """\
error[S101]: unknown key `direction` in `objective`
  --> small.yaml:15:31
15 | objective: {metric: val/loss, direction: maximize, smallest_effect: 0.02}
   |                               ^^^^^^^^^
   = help: did you mean `goal`?
"""),
        (("residual: {switch: model.residual}", "resdual: {switch: model.resdual}"), """\
error[G201]: nothing reads `model.resdual`
  --> small.yaml:13:21
13 |   resdual: {switch: model.resdual}
   |                     ^^^^^^^^^^^^^
   = help: did you mean `model.residual`?
"""),
        (("switch: model.residual", "levels: {a: {model.residual: add}, b: {model.resdual: none}}"), """\
error[G201]: nothing reads `model.resdual`
  --> small.yaml:13:53
13 |   residual: {levels: {a: {model.residual: add}, b: {model.resdual: none}}}
   |                                                     ^^^^^^^^^^^^^
   = help: did you mean `model.residual`?
"""),
        ((PLACEMENT, "{path: training.optimizer.lr, levels: [1e-2, 1.0e-2]}"), """\
error[G202]: two levels of `placement` are the same: 0.01 and 0.01
  --> small.yaml:12:59
12 |   placement: {path: training.optimizer.lr, levels: [1e-2, 1.0e-2]}
   |                                                           ^^^^^^
"""),
        (("seeds: 6", "baseline: {residual: yes}"), """\
error[G203]: `residual` has no level `yes`
  --> small.yaml:14:22
14 | baseline: {residual: yes}
   |                      ^^^
   = help: did you mean `on`?
"""),
        (("  width: 16", "  width: 16\n  norm: no"), """\
error[S102]: no norm is called `no`
 --> small.yaml:8:9
8 |   norm: no
  |         ^^
  = help: did you mean `none`?
"""),
        (("[pre, post]", "[pre, no]"), """\
error[S102]: no placement is called `no`
  --> small.yaml:12:52
12 |   placement: {path: model.placement, levels: [pre, no]}
   |                                                    ^^
   = help: did you mean `none`?
"""),
        (("seeds: 6", "seeds: 6\ndesign: full\nseeds: 3"), """\
error[Y012]: the key `seeds` is given twice, on lines 14 and 16
  --> small.yaml:16:1
16 | seeds: 3
   | ^^^^^
   = help: keep one of the two
"""),
        (("heads: 2", "heads: 2, heads: 4"), """\
error[Y012]: the key `heads` is given twice, on line 9, at columns 28 and 38
 --> small.yaml:9:38
9 |   mixer: {kind: attention, heads: 2, heads: 4}
  |                                      ^^^^^
  = help: keep one of the two
"""),
    ],
)  # fmt: skip
def test_a_slip_is_told_with_its_line_and_the_remedy(
    ablate: Command, tmp_path: Path, change: tuple[str, str], expected: str
) -> None:
    write(tmp_path, change)
    shown = ablate("plan", "small.yaml")
    assert shown.returncode == 2
    assert shown.stdout == ""
    # What follows, if anything does, says where to read more about the code.
    assert shown.stderr == expected or shown.stderr.startswith(expected + "\n")
    assert "error[" not in shown.stderr.removeprefix("error[")


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize(
    ("word", "level"), [("on", "on"), ("off", "off"), ("true", "on"), ("false", "off"), ("On", "on"), ("FALSE", "off")]
)
def test_a_switch_takes_on_and_off_and_true_and_false(tmp_path: Path, word: str, level: str, quote: str) -> None:
    experiment = load(write(tmp_path, ("seeds: 6", f"baseline: {{residual: {quote}{word}{quote}}}")))
    assert experiment.grid.arms[0].levels["residual"] == level


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize(
    ("word", "meant"),
    [("yes", "on"), ("no", "off"), ("y", "on"), ("n", "off"), ("1", "on"), ("0", "off"), ("Yes", "on"), ("NO", "off")],
)
def test_other_words_for_it_are_errors_with_the_right_spelling(
    tmp_path: Path, word: str, meant: str, quote: str
) -> None:
    path = write(tmp_path, ("seeds: 6", f"baseline: {{residual: {quote}{word}{quote}}}"))
    with pytest.raises(InputError) as caught:
        load(path)
    (problem,) = caught.value.diagnostics
    assert problem.code == "G203"
    assert problem.help == f"did you mean `{meant}`?"
    assert problem.span and problem.span.line == 14


def test_a_quoted_off_is_the_level_off_on_the_command_line(ablate: Command, tmp_path: Path) -> None:
    write(tmp_path, ("seeds: 6", 'baseline: {residual: "off"}'))
    shown = ablate("plan", "small.yaml")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\nresidual=on " in shown.stdout and "\nresidual=off " not in shown.stdout
