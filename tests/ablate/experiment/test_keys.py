"""A key that nothing reads is told from where it belongs, and from what other tools call it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.errors import InputError
from ablate.experiment import load
from ablate.registry import Registry
from tests.ablate.experiment.maker import problems, write

TASKS, MODELS, OPTIMIZERS = (Registry.installed().kinds(slot) for slot in ("task", "model", "optimizer"))


@pytest.mark.parametrize(
    ("old", "new", "message", "help"),
    [
        ("steps: 20", "stpes: 20", "unknown key `stpes` in `budget`", "did you mean `steps`?"),
        ("goal: min", "direction: maximize", "unknown key `direction` in `objective`", "did you mean `goal`?"),
        ("heads: 2", "n_heads: 2", "unknown key `n_heads` in `model.mixer`", "did you mean `heads`?"),
        ("steps: 20", "steps: 20, goal: max", "unknown key `goal` in `budget`", "`goal` belongs in `objective`"),
        ("steps: 20", "steps: 20, direction: max", "unknown key `direction` in `budget`",
         "`goal` belongs in `objective`"),
        ("lr: 1e-2", "lr: 1e-2, batch: 2", "unknown key `batch` in `training.optimizer`",
         "`batch` belongs in `training` or in `tune`"),
        ("batch: 4", "batch: 4, learning_rate: 1", "unknown key `learning_rate` in `training`",
         "`lr` belongs in `training.optimizer`"),
        ("steps: 20", "steps: 20, seeds: 3", "unknown key `seeds` in `budget`",
         "`seeds` belongs at the top of the file or in `tune`"),
        ("seeds: 6", "patience: 3", "unknown key `patience`", "`patience` belongs in `diverged`"),
        ("goal: min", "kind: x", "unknown key `kind` in `objective`",
         "there is: metric, goal, smallest_effect, secondary"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_spelled_placed_or_told_what_there_is(
    tmp_path: Path, old: str, new: str, message: str, help: str
) -> None:
    path = write(tmp_path, ("smallest_effect", "goal: min, smallest_effect"), (old, new))
    with pytest.raises(InputError) as caught:
        load(path)
    assert [(each.code, each.message, each.help) for each in caught.value.diagnostics] == [("S101", message, help)]


TUNE = "tune: {params: {training.optimizer.lr: {values: [1e-3, 1e-2]}}, seeds: [100]"
ELSEWHERE = (
    "trials are pruned by `halving: {reduction: 3, rungs: 2}` in `tune`, and nowhere else: those that are reported "
    "train to their end"
)
IN_TUNE = "trials are pruned by `halving: {reduction: 3, rungs: 2}`, whatever the method"


@pytest.mark.parametrize(
    ("old", "new", "message", "help"),
    [
        ("seeds: 6", "seeds: 6\npruner: median", "unknown key `pruner`", ELSEWHERE),
        ("seeds: 6", "seeds: 6\nMedianPruner: {}", "unknown key `MedianPruner`", ELSEWHERE),
        ("steps: 20", "steps: 20, pruner: hyperband", "unknown key `pruner` in `budget`", ELSEWHERE),
        ("steps: 20", "steps: 20, early_stopping: 3", "unknown key `early_stopping` in `budget`", ELSEWHERE),
        ("batch: 4", "batch: 4, EarlyStopping: {}", "unknown key `EarlyStopping` in `training`", ELSEWHERE),
        ("goal: min", "goal: min, halving: {}", "unknown key `halving` in `objective`", ELSEWHERE),
        ("seeds: 6", "seeds: 6\nexecutor: {kind: local, pruning: true}", "unknown key `pruning` in `executor`",
         ELSEWHERE),
        ("seeds: 6", f"seeds: 6\n{TUNE}, pruner: median}}", "unknown key `pruner` in `tune`", IN_TUNE),
        ("seeds: 6", f"seeds: 6\n{TUNE}, HalvingPruner: {{}}}}", "unknown key `HalvingPruner` in `tune`", IN_TUNE),
        ("seeds: 6", f"seeds: 6\n{TUNE}, method: hyperband}}",
         "`method` must be one of grid, random, tpe, not the text `hyperband`", IN_TUNE),
        ("depth: 2", "depth: 2\n  pruning: 0.5", "unknown key `pruning` in `model`", None),
    ],
)  # fmt: skip
def test_pruning_is_told_where_it_is_allowed(
    tmp_path: Path, old: str, new: str, message: str, help: str | None
) -> None:
    path = write(tmp_path, ("smallest_effect", "goal: min, smallest_effect"), (old, new))
    with pytest.raises(InputError) as caught:
        load(path)
    (problem,) = caught.value.diagnostics
    assert problem.message == message
    assert problem.help == help if help else "prun" not in str(problem.help)


@pytest.mark.parametrize(
    ("old", "new", "message", "help"),
    [
        ("steps: 20", "steps: 1000000000", "`steps` must be at most 100,000,000, not 1000000000", None),
        ("lr: 1e-2", "lr: .inf", "`lr` must be a finite number, not inf", None),
        ("lr: 1e-2", "lr: 1_0", "`lr` must be a number, not the text `1_0`", "write `10`"),
        ("seeds: 6", "diverged: {nonfinite: yes}", "`nonfinite` must be true or false, not the text `yes`",
         "write `true`"),
        ("seeds: 6", "diverged: {nonfinite: Off}", "`nonfinite` must be true or false, not the text `Off`",
         "write `false`"),
        ("seeds: 6", "diverged: {nonfinite: 0}", "`nonfinite` must be true or false, not 0", "write `false`"),
        ("seeds: 6", "diverged: {nonfinite: 2}", "`nonfinite` must be true or false, not 2", None),
        ("seeds: 6", "seeds: 0-5", "`seeds` must be a whole number or a list or a mapping, not the text `0-5`",
         "write `{range: [0, 6]}`"),
        ("seeds: 6", "seeds: 3..3", "`seeds` must be a whole number or a list or a mapping, not the text `3..3`",
         "write `{range: [3, 4]}`"),
        ("seeds: 6", "seeds: 5-0", "`seeds` must be a whole number or a list or a mapping, not the text `5-0`", None),
        ("schema: 1", "schema: 2", "`schema` must be 1, not 2", "this version of Ablate reads version 1 of the format"),
        ("schema: 1", "schema: '1'", "`schema` must be 1, not the text `1`", "write `1` without quotes"),
        ("kind: adamw", "kind: AdamW", "no optimizer is called `AdamW`", "did you mean `adamw`?"),
        ("depth: 2", "depth: 2\n  norm: RMSNorm", "no norm is called `RMSNorm`", "did you mean `rms`?"),
        ("depth: 2", "depth: 2\n  norm: layernorm", "no norm is called `layernorm`", "did you mean `layer`?"),
        ("seeds: 6", "seeds: {range: [1]}", "`range` must have at least 2 items, not 1", None),
        ("seeds: 6", "seeds: {range: [0, 1, 2]}", "`range` must have at most 2 items, not 3", None),
        ("seeds: 6", 'seeds: 6\n"\\e[31mname": x', "unknown key `\\x1b[31mname`", "did you mean `name`?"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_in_the_words_of_the_file(
    tmp_path: Path, old: str, new: str, message: str, help: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, (old, new)))
    assert [(each.message, each.help) for each in caught.value.diagnostics] == [(message, help)]


@pytest.mark.parametrize(
    ("word", "help"),
    [
        ("factorial", "did you mean `full`?"),
        ("Full factorial", "did you mean `full`?"),
        ("grid", "did you mean `full`?"),
        ("cartesian", "did you mean `full`?"),
        ("OFAT", "did you mean `one_at_a_time`?"),
        ("oat", "did you mean `one_at_a_time`?"),
        ("single", "did you mean `one_at_a_time`?"),
        ("ablation", "did you mean `leave_one_out`?"),
        ("loo", "did you mean `leave_one_out`?"),
        ("one-at-a-time", "did you mean `one_at_a_time`?"),
        ("fractoinal", "did you mean `fractional`?"),
        ("nonsense", None),
    ],
)
def test_a_design_may_be_meant_by_the_word_of_another_tool(tmp_path: Path, word: str, help: str | None) -> None:
    choices = "one_at_a_time, full, leave_one_out, add_one, pairs, fractional, list"
    assert problems(write(tmp_path, ("seeds: 6", f"design: {word}"))) == [
        f"S103 14:9 `design` must be one of {choices}, not the text `{word}` | {help}"
    ]


def test_the_word_of_another_tool_is_no_guess_where_it_means_nothing(tmp_path: Path) -> None:
    tune = "tune: {method: loo, params: {training.optimizer.lr: {values: [1]}}, seeds: [100]}"
    assert problems(write(tmp_path, ("seeds: 6", tune))) == [
        "S103 14:16 `method` must be one of grid, random, tpe, not the text `loo` | None"
    ]


@pytest.mark.parametrize(
    ("without", "message", "help"),
    [
        ("task: {kind: text, source: python-docs, context: 16}\n", "`task` is missing",
         f"write `task: {{kind: text, …}}`; there is: {', '.join(TASKS)}"),
        ("model:\n  kind: decoder\n  width: 16\n  depth: 2\n  mixer: {kind: attention, heads: 2}\n",
         "`model` is missing", f"write `model: {{kind: decoder, …}}`; there is: {', '.join(MODELS)}"),
        ("optimizer: {kind: adamw, lr: 1e-2}, ", "`optimizer` is missing in `training`",
         f"write `optimizer: {{kind: adamw, …}}`; there is: {', '.join(OPTIMIZERS)}"),
        ("training: {optimizer: {kind: adamw, lr: 1e-2}, batch: 4}\n", "`training` is missing",
         "write `training: {optimizer: {kind: adamw, …}}`"),
        ("objective: {metric: val/loss, smallest_effect: 0.02}\n", "`objective` is missing",
         "write `objective: {smallest_effect: …}`"),
        ("budget: {steps: 20}\n", "`budget` is missing", "write `budget: {steps: …}`"),
        ("steps: 20", "`steps` is missing in `budget`", "Training steps of a trial."),
    ],
)  # fmt: skip
def test_how_a_missing_key_is_written(tmp_path: Path, without: str, message: str, help: str) -> None:
    (problem,) = problems(write(tmp_path, (without, "")))
    assert problem.split(" ", 2)[::2] == ["S104", f"{message} | {help}"]


STARTS = ": a path starts with model, task or training, or is `budget.steps`"
SEEDS = "seeds are replicates and no factor: every arm is trained with each of them"
STEPS = "did you mean `budget.steps`?"
BUDGET = "of the budget, arms differ in `budget.steps` alone"


@pytest.mark.parametrize(
    ("path", "said", "help"),
    [
        ("model.scale", "", "did you mean `model.mixer.scale`?"),
        ("model.heads", "", "did you mean `model.mixer.heads`?"),
        ("model.n_heads", "", "did you mean `model.mixer.heads`?"),
        ("model.d_model", "", "did you mean `model.width`?"),
        ("training.weight_decay", "", "did you mean `training.optimizer.weight_decay`?"),
        ("model.learning_rate", "", "did you mean `training.optimizer.lr`?"),
        ("mixer.scale", STARTS, "did you mean `model.mixer.scale`?"),
        ("lr", STARTS, "did you mean `training.optimizer.lr`?"),
        ("eps", STARTS, "did you mean `model.norm.eps` or `training.optimizer.eps`?"),
        ("modle.norm", STARTS, "did you mean `model.norm`?"),
        ("residual", STARTS, "did you mean `model.residual`?"),
        ("mine", STARTS, "did you mean `model.depth`?"),  # a factor's name
        ("my.own", STARTS, "did you mean `model.norm`?"),
        ("both", STARTS, "`both` is a factor, and a path is wanted: its levels set `training.clip`, `model.output`"),
        ("seeds", STARTS, SEEDS),
        ("seed", STARTS, f"{SEEDS}, as in `seeds: 6`"),
        ("budget", STARTS, BUDGET),
        ("budget.retries", STARTS, BUDGET),
        ("budget.stesp", STARTS, STEPS),
        ("budget.max_steps", STARTS, STEPS),
        ("steps", STARTS, STEPS),
        ("epochs", STARTS, STEPS),
        ("training.max_steps", "", STEPS),
        ("nonsense", STARTS, None),
    ],
)
def test_a_path_that_nothing_reads_may_be_told_from_one_that_something_does(
    tmp_path: Path, path: str, said: str, help: str | None
) -> None:
    more = """
  mine: {path: model.depth, levels: [2, 1]}
  my.own: {switch: model.norm}
  both: {levels: {a: {}, b: {training.clip: 0.5}, c: {training.clip: 2.0, model.output: tied}}}
"""
    factor = (", levels: [pre, post]}\n", f", levels: [pre, post]}}{more}")
    found = problems(write(tmp_path, ("model.placement", path), factor))
    assert found == [f"G201 12:21 nothing reads `{path}`{said} | {help}"]
