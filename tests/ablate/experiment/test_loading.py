"""An experiment file: what is right is understood, what is wrong is said at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ablate.errors import InputError
from ablate.experiment import executor_of, load
from tests.ablate.experiment.maker import write


def problems(path: Path) -> list[str]:
    """Each problem as ``code line:column message | help``."""
    with pytest.raises(InputError) as caught:
        load(path)
    return [
        f"{each.code} {each.span.line}:{each.span.column} {each.message} | {each.help}"
        for each in caught.value.diagnostics
        if each.span
    ]


def test_a_valid_file_is_an_experiment(tmp_path: Path) -> None:
    experiment = load(write(tmp_path))
    assert repr(experiment) == "Experiment('small': 3 arms x 6 seeds, one_at_a_time)"
    assert experiment.seeds == [0, 1, 2, 3, 4, 5]
    assert experiment.settings.training.schedule.kind == "constant"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("line", "sets", "expected"),
    [
        ("", [], {"kind": "local", "parallel": "auto", "per_gpu": 1}),
        ("executor: local", [], {"kind": "local", "parallel": "auto", "per_gpu": 1}),
        ("executor: {kind: local, parallel: 3}", [], {"kind": "local", "parallel": 3, "per_gpu": 1}),
        ("executor: {kind: local}", ["executor.parallel=5"], {"kind": "local", "parallel": 5, "per_gpu": 1}),
        ("executor: {kind: local, parallel: 0}", [], None),
        ("executor: brought_by_a_plugin", [], None),
        ("executor: {", [], None),
    ],
)
def test_the_executor_is_known_ahead_of_the_rest(
    tmp_path: Path, line: str, sets: list[str], expected: dict[str, object] | None
) -> None:
    path = write(tmp_path, ("heads: 2", "heads: 0"), ("seeds: 6", f"seeds: 6\n{line}"))
    found = executor_of(path, sets)
    assert (found and found.model_dump()) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("smallest_effect", "smalest_effect", [
            "S101 15:31 unknown key `smalest_effect` in `objective` | did you mean `smallest_effect`?",
        ]),
        ("kind: attention", "kind: atention", ["S102 9:10 no mixer is called `atention` | did you mean `attention`?"]),
        ("heads: 2", "heads: two", ["S103 9:35 `heads` must be a whole number, not the text `two` | None"]),
        ("heads: 2", "heads: 2.0", ["S103 9:35 `heads` must be a whole number, not 2.0 | write `2`"]),
        ("heads: 2", "heads: true", ["S103 9:35 `heads` must be a whole number, not true | None"]),
        ("heads: 2", "heads: 0", ["S103 9:35 `heads` must be at least 1, not 0 | None"]),
        ("batch: 4", "batch: 1_000", [
            "S103 10:55 `batch` must be a whole number, not the text `1_000` | write `1000`"
        ]),
        ("name: small", "name: a/b", [
            "S103 2:7 `name` must be letters, digits, `.`, `-` and `_`, begin with a letter or digit, "
            "and have at most 100 | None"
        ]),
        ("metric: val/loss", "metric: val/los", [
            "S111 15:21 the task reports no `val/los` | did you mean `val/loss`?"
        ]),
        ("seeds: 6", "seeds: [0.5, 1]", ["S103 14:9 `seeds[0]` must be a whole number, not 0.5 | None"]),
        ("seeds: 6", "seeds: {rnage: [0, 3]}", ["S101 14:9 unknown key `rnage` in `seeds` | did you mean `range`?"]),
        ("objective:", "objectve:", ["S101 15:1 unknown key `objectve` | did you mean `objective`?"]),
        ("seeds: 6", "seeds: 10000000000", ["S103 14:8 10,000,000,000 seeds are more than 100,000 | None"]),
        ("seeds: 6", "seeds: [1, 1]", ["S103 14:8 a seed is named twice | None"]),
        ("seeds: 6", "seeds: 0", ["S103 14:8 an experiment needs at least one seed | None"]),
        ("task: {kind: text", "task: {kind: txt", ["S102 4:7 no task is called `txt` | did you mean `text`?"]),
        ("path: model.placement", "path: model.plcement", [
            "G201 12:21 nothing reads `model.plcement` | did you mean `model.placement`?"
        ]),
        ("switch: model.residual", "switch: model.output", [
            "G206 13:22 `model.output` cannot be switched off: no output is neutral | None"
        ]),
        ("switch: model.residual", "switch: model.width", [
            "G206 13:22 `model.width` is neither a component nor a yes-or-no option | None"
        ]),
        ("levels: [pre, post]", "levels: [pre, psot]", [
            "S102 12:52 no placement is called `psot` | did you mean `post`?"
        ]),
        ("levels: [pre, post]", "levels: [post, sandwich]", [
            "G204 12:3 no level of `placement` equals what the baseline has, `pre` | add that level, or say which "
            "level is the baseline's: `baseline: {placement: LEVEL}`"
        ]),
        ("levels: [pre, post]", "levels: [pre, {kind: pre}]", [
            "G202 12:52 two levels of `placement` are the same: pre and pre | None"
        ]),
        ("{path: model.placement, levels: [pre, post]}", "{path: training.optimizer.lr, levels: [1e-2, 1.0e-2]}", [
            "G202 12:59 two levels of `placement` are the same: 0.01 and 0.01 | None"
        ]),
        ("seeds: 6", "baseline: {residual: yes, plcement: pre}", [
            "G203 14:22 `residual` has no level `yes` | did you mean `on`?",
            "G205 14:27 no factor is called `plcement` | did you mean `placement`?",
        ]),
        ("switch: model.residual", "path: model.placement, levels: [pre, none]", [
            "G208 13:3 `placement` and `residual` both set `model.placement` | None"
        ]),
        ("seeds: 6", "plugins: [./nowhere.py]", [
            "S106 14:11 there is no plugin file `./nowhere.py` | give a path to a Python file"
        ]),
        ("depth: 2", "depth: 2\n  residual: none", [
            "G207 14:22 `model.residual` is already off in the baseline, so its switch has one level | None"
        ]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_at_its_place(tmp_path: Path, old: str, new: str, expected: list[str]) -> None:
    assert problems(write(tmp_path, (old, new))) == expected


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, ("heads: 2", "heads: two"), ("width: 16", "widht: 16"), ("steps: 20", "steps: -1"))
    assert [problem.split()[0] for problem in problems(path)] == ["S101", "S103", "S103"]


def test_an_error_shows_the_line_with_a_caret(tmp_path: Path) -> None:
    path = write(tmp_path, ("smallest_effect: 0.02", "smallest_effect: 0.02, gaol: min"))
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value) == (
        "error[S101]: unknown key `gaol` in `objective`\n"
        f"  --> {path}:15:54\n"
        "15 | objective: {metric: val/loss, smallest_effect: 0.02, gaol: min}\n"
        "   |                                                      ^^^^\n"
        "   = help: did you mean `goal`?"
    )


def test_a_plugin_file_is_found_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from typing import Literal\n"
        "from torch import nn\n"
        "from ablate.slots import Norm, Site\n\n"
        "class Mine(Norm):\n"
        "    '''A norm of mine.'''\n"
        "    kind: Literal['mine'] = 'mine'\n\n"
        "    def build(self, at: Site) -> nn.Module:\n"
        "        return nn.Identity()\n"
    )
    path = write(
        tmp_path,
        ("seeds: 6", "plugins: [./mine.py]"),
        ("[pre, post]", "[pre, post]}\n  norm: {path: model.norm, levels: [layer, mine]"),
    )
    assert [arm.name for arm in load(path).grid.arms] == ["baseline", "placement=post", "norm=mine", "residual=off"]


@pytest.mark.parametrize(
    "storage",
    ["postgresql://ada:hush@host/x", "postgresql://ada:hu${MORE}@host/x", "postgresql://host/x?password=hush"],
)
def test_a_password_in_the_file_is_refused_and_its_line_not_shown(tmp_path: Path, storage: str) -> None:
    path = write(tmp_path, ("seeds: 6", f"storage: {storage}\nseeds: 6"))
    with pytest.raises(InputError) as refused:
        load(path)
    (problem,) = refused.value.diagnostics
    assert (problem.code, problem.source) == ("S406", None)
    assert "hu" not in str(refused.value).replace("such", "").replace(str(path), "")


@pytest.mark.parametrize("storage", ["postgresql://ada:${WORD}@host:5432/x", "${URL}", "sqlite:///a.db"])
def test_a_storage_may_name_variables_of_the_environment(tmp_path: Path, storage: str) -> None:
    assert load(write(tmp_path, ("seeds: 6", f"storage: {storage}\nseeds: 6"))).settings.storage == storage
