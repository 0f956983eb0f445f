"""A key that nothing reads is told from where it belongs, and from what other tools call it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.errors import InputError
from ablate.experiment import load
from tests.ablate.experiment.maker import write


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
         "`batch` belongs in `training`"),
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
