"""A file over the one that it extends, and the command line over both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.errors import InputError
from ablate.experiment import load
from ablate.experiment.layering import read_layered
from tests.ablate.experiment.maker import EXPERIMENT, MANY, levels, problems, write

BASE = """\
task: {kind: text, source: python-docs, context: 16}
model:
  kind: decoder
  width: 16
  norm: {kind: layer, eps: 1e-3}
  mixer: {kind: attention, heads: 2}
  feed_forward: mlp
training: {optimizer: {kind: adamw, lr: 1e-2}, batch: 4}
factors:
  placement: {path: model.placement, levels: [pre, post]}
objective: {metric: val/loss, smallest_effect: 0.02}
budget: {steps: 20}
"""


def layered(folder: Path, upper: str, base: str = BASE) -> Path:
    (folder / "base.yaml").write_text(base)
    path = folder / "upper.yaml"
    path.write_text(f"extends: base.yaml\n{upper}")
    return path


def data(folder: Path, upper: str, *sets: str, base: str = BASE) -> Any:
    return read_layered(layered(folder, upper, base), sets).data


def test_a_file_says_what_its_base_does_not(tmp_path: Path) -> None:
    path = layered(tmp_path, "name: upper\nmodel: {depth: 1}\nbudget: {steps: 30}\n")
    experiment = load(path)
    model = experiment.settings.model
    assert (experiment.name, experiment.settings.budget.steps) == ("upper", 30)
    assert (model.width, model.depth, model.norm.eps) == (16, 1, 1e-3)  # type: ignore[attr-defined]
    assert list(levels(path)) == ["baseline", "placement=post"]


def test_the_text_of_what_is_extended_is_kept(tmp_path: Path) -> None:
    path = layered(tmp_path, "name: upper\n")
    assert load(path).document.extended == BASE
    assert load(path, sets=["budget.steps=30"]).document.extended == BASE
    assert read_layered(tmp_path / "base.yaml", ["name=base"]).extended is None


def test_mappings_are_merged_by_key_and_all_else_is_replaced(tmp_path: Path) -> None:
    found = data(tmp_path, "a: {b: {x: 1}, c: [1]}\nd: 1\n", base="a: {b: {y: 2}, c: [2, 3], e: null}\nd: {f: 1}\n")
    assert found == {"a": {"b": {"y": 2, "x": 1}, "c": [1], "e": None}, "d": 1, "extends": "base.yaml"}


@pytest.mark.parametrize(
    ("upper", "norm"),
    [
        ("rms", "rms"),
        ("{kind: rms}", {"kind": "rms"}),  # options of another kind would mean nothing
        ("{kind: layer, eps: 1e-6}", {"kind": "layer", "eps": 1e-6}),
        ("{eps: 1e-6}", {"kind": "layer", "eps": 1e-6}),
        ("{}", {"kind": "layer", "eps": 1e-3}),
        ("layer", "layer"),
    ],
)
def test_a_component_of_another_kind_replaces_the_base_whole(tmp_path: Path, upper: str, norm: object) -> None:
    assert data(tmp_path, f"model: {{norm: {upper}}}\n")["model"]["norm"] == norm


def test_options_of_a_base_that_names_no_kind_are_kept(tmp_path: Path) -> None:
    merged = data(tmp_path, "model: {norm: {kind: rms}}\n", base="model: {norm: {eps: 1e-3}}\n")
    assert merged["model"]["norm"] == {"kind": "rms", "eps": 1e-3}


def test_a_component_that_is_named_alone_gains_options(tmp_path: Path) -> None:
    merged = data(tmp_path, "model: {feed_forward: {ratio: 2}}\n")
    assert merged["model"]["feed_forward"] == {"kind": "mlp", "ratio": 2}


def test_a_factor_is_replaced_whole_and_others_stay(tmp_path: Path) -> None:
    factors = "factors: {placement: {switch: model.placement}, depth: {path: model.depth, levels: [4, 2]}}\n"
    assert data(tmp_path, factors)["factors"] == {
        "placement": {"switch": "model.placement"},
        "depth": {"path": "model.depth", "levels": [4, 2]},
    }


def test_what_is_wrong_in_a_base_is_said_of_the_base(tmp_path: Path) -> None:
    path = layered(tmp_path, "name: upper\nmodel: {depth: two}\n", BASE.replace("batch: 4", "bach: 4"))
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value) == (
        "error[S103]: `depth` must be a whole number, not the text `two`\n"
        f" --> {path}:3:16\n"
        "3 | model: {depth: two}\n"
        "  |                ^^^\n"
        "\n"
        "error[S101]: unknown key `bach` in `training`\n"
        f" --> {tmp_path / 'base.yaml'}:8:48\n"
        "8 | training: {optimizer: {kind: adamw, lr: 1e-2}, bach: 4}\n"
        "  |                                                ^^^^\n"
        "  = help: did you mean `batch`?"
    )


def test_a_problem_with_a_level_of_the_base_is_at_its_place(tmp_path: Path) -> None:
    path = layered(tmp_path, "name: upper\n", BASE.replace("post]", "psot]"))
    with pytest.raises(InputError) as caught:
        load(path)
    [problem] = caught.value.diagnostics
    assert (problem.code, problem.file, problem.span and problem.span.line) == ("S102", str(tmp_path / "base.yaml"), 10)


def test_warnings_of_both_files_are_kept(tmp_path: Path) -> None:
    path = layered(tmp_path, "name: upper\nmodel: {depth: 02}\n", BASE.replace("width: 16", "width: 016"))
    warnings = load(path).document.warnings
    assert [(each.code, each.file) for each in warnings] == [
        ("W010", str(tmp_path / "base.yaml")),
        ("W010", str(path)),
    ]


def test_one_level_of_bases_is_all_there_is(tmp_path: Path) -> None:
    assert problems(layered(tmp_path, "name: upper\n", f"extends: other.yaml\n{BASE}")) == [
        "S114 1:10 `base.yaml` has an `extends` of its own, and one level is all there is | "
        "put what both need into one base file"
    ]
    itself = tmp_path / "itself.yaml"
    itself.write_text("extends: itself.yaml\n")
    assert problems(itself)[0].startswith("S114 1:10 `itself.yaml` has an `extends` of its own")


def test_a_base_that_cannot_be_read(tmp_path: Path) -> None:
    path = layered(tmp_path, "name: upper\n")
    path.write_text("extends: bsae.yaml\nname: upper\n")
    assert problems(path) == ["S114 1:10 `bsae.yaml` cannot be read: there is no such file | did you mean `base.yaml`?"]
    path.write_text("extends: 3\n")
    assert "S103 1:10 `extends` must be text, not 3 | None" in problems(path)
    broken = layered(tmp_path, "name: upper\n", "a: [1\n")
    with pytest.raises(InputError) as caught:
        load(broken)
    assert [each.file for each in caught.value.diagnostics] == [str(tmp_path / "base.yaml")]


@pytest.mark.parametrize(
    ("base", "what", "help"),
    [
        ("nope.yaml", "there is no such file", "there is: `nobase.yaml`"),
        ("nobas", "there is no such file", "did you mean `nobase.yaml`?"),
        ("below/bas.yml", "there is no such file", "did you mean `below/base.yml`?"),
        ("below/upper.yaml", "there is no such file",
         "there is: `below/a1.yaml`, `below/a2.yaml`, `below/a3.yaml`, `below/a4.yaml`, `below/base.yml` and more"),
        ("below", "this is a folder, not a file",
         "there is: `below/a1.yaml`, `below/a2.yaml`, `below/a3.yaml`, `below/a4.yaml`, `below/base.yml` and more"),
        ("empty/base.yaml", "there is no such file", None),
        ("bleow/base.yaml", "there is no such file", "there is no folder `bleow` beside this file"),
    ],
)  # fmt: skip
def test_a_base_that_is_not_there_is_told_from_what_is(tmp_path: Path, base: str, what: str, help: str | None) -> None:
    for name in ("nobase.yaml", *(f"below/{each}" for each in ("a1.yaml", "a2.yaml", "a3.yaml", "a4.yaml")),
                 "below/base.yml", "below/c.yaml", "below/notes.txt", "empty/notes.txt"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    path = tmp_path / "upper.yaml"
    path.write_text(f"extends: {base}\n")
    assert problems(path) == [f"S114 1:10 `{base}` cannot be read: {what} | {help}"]


def test_a_plugin_is_found_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "many.py").write_text(MANY.format(options=""))
    (tmp_path / "below" / "base.yaml").write_text(BASE + "plugins: [./many.py]\n")
    path = tmp_path / "upper.yaml"
    path.write_text("extends: below/base.yaml\nname: upper\nmodel: {norm: many}\n")
    assert load(path).settings.model.norm.kind == "many"  # type: ignore[attr-defined]
    path.write_text("extends: below/base.yaml\nname: upper\nplugins: [./many.py]\n")
    assert problems(path) == ["S106 3:11 there is no plugin file `./many.py` | give a path to a Python file"]


def test_where_a_value_was_written(tmp_path: Path) -> None:
    document = read_layered(layered(tmp_path, "name: upper\nmodel: {depth: 1}\n"), ["budget.steps=5"])
    where = {place: document.located(place) for place in [("model", "depth"), ("model", "width"), ("budget", "steps")]}
    assert where == {
        ("model", "depth"): f"{tmp_path / 'upper.yaml'}:3",
        ("model", "width"): f"{tmp_path / 'base.yaml'}:4",
        ("budget", "steps"): "--set",
    }


@pytest.mark.parametrize(
    ("setting", "place", "value"),
    [
        ("model.width=8", ("model", "width"), 8),
        (" model.width =8", ("model", "width"), 8),
        ("model.width=8.0", ("model", "width"), 8.0),
        ("question=on", ("question",), "on"),
        ('question="8"', ("question",), "8"),
        ("question=a=b", ("question",), "a=b"),
        ("training.clip=null", ("training", "clip"), None),
        ("training.clip=", ("training", "clip"), None),
        ("seeds=[3, 4]", ("seeds",), [3, 4]),
        ("a.b.c=1", ("a",), {"b": {"c": 1}}),
        ("model.norm=rms", ("model", "norm"), "rms"),
        ("model.norm.kind=rms", ("model", "norm"), {"kind": "rms"}),
        ("model.norm.eps=1e-6", ("model", "norm"), {"kind": "layer", "eps": 1e-6}),
        ("model.feed_forward.ratio=2", ("model", "feed_forward"), {"kind": "mlp", "ratio": 2}),
        ("factors.placement.levels=[pre]", ("factors", "placement"), {"path": "model.placement", "levels": ["pre"]}),
        # A mapping is the whole of what is set.
        ("factors={}", ("factors",), {}),
        ("model.mixer={kind: attention}", ("model", "mixer"), {"kind": "attention"}),
        ("training={batch: 2}", ("training",), {"batch": 2}),
    ],
)  # fmt: skip
def test_a_setting_is_a_path_and_a_value(tmp_path: Path, setting: str, place: tuple[str, ...], value: object) -> None:
    found: Any = data(tmp_path, "name: upper\n", setting)
    for step in place:
        found = found[step]
    assert (found, type(found)) == (value, type(value))


def test_settings_are_laid_one_over_the_other(tmp_path: Path) -> None:
    assert data(tmp_path, "", "model.norm=rms", "model.norm.eps=1e-3")["model"]["norm"] == {"kind": "rms", "eps": 1e-3}
    assert data(tmp_path, "", "model.norm.eps=1e-6", "model.norm=rms")["model"]["norm"] == "rms"
    with pytest.raises(InputError, match=r"`--set seeds=…` is given twice"):
        data(tmp_path, "", "seeds=2", "seeds=3")


def test_an_experiment_with_settings(tmp_path: Path) -> None:
    experiment = load(write(tmp_path), sets=["seeds=2", "name=other", "model.width=8", "baseline.placement=post"])
    assert (experiment.name, experiment.seeds) == ("other", [0, 1])
    assert experiment.settings.model.width == 8  # type: ignore[attr-defined]
    assert experiment.grid.arms[0].levels == {"placement": "post", "residual": "on"}
    assert experiment.command.endswith(
        "small.yaml --set=seeds=2 --set=name=other --set=model.width=8 --set=baseline.placement=post"
    )


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("a", "S115 `--set a` sets nothing | write `--set path=value`, as `--set training.optimizer.lr=3e-3`"),
        ("=1", "S115 `--set =1` sets nothing | write `--set path=value`, as `--set training.optimizer.lr=3e-3`"),
        ("model..x=1",
         "S115 `--set model..x=1` sets nothing | write `--set path=value`, as `--set training.optimizer.lr=3e-3`"),
        ("extends=x.yaml",
         "S115 `--set extends=x.yaml` cannot be: the file that is extended is read first | write it into the file"),
        ("training.batch.x=1",
         "S115 `--set training.batch.x=1` cannot be: `training.batch` has no parts with a name | set the whole of it"),
        ("seeds.range=[0, 2]",
         "S115 `--set seeds.range=[0, 2]` cannot be: `seeds` has no parts with a name | set the whole of it"),
        ('"a"=3', 'S115 `--set "a"=3` is not one path and one value | put the value in quotes'),
        ("seeds=1\nname: x", "S115 `--set seeds=1\nname: x` is not one path and one value | put the value in quotes"),
        ("model.width=eight", "S103 1:14 `width` must be a whole number, not the text `eight` | None"),
        ("model.widht=8", "S101 1:1 unknown key `widht` in `model` | did you mean `width`?"),
        ("seeds=[1,", "Y010 1:10 a value is missing before this `,` | write the value, or put the text in quotes"),
        ("seeds=*a", "Y016 1:8 no anchor `&a` stands before this alias | put a text that begins with `*` in quotes"),
        ("model.placement=post",
         "G218 1:18 `--set` sets `model.placement`, which the factor `placement` varies | "
         "leave the factor out, or change its levels in the file"),
        ("model.residual.kind=none",
         "G207 13:22 `model.residual` is already off in the baseline, so its switch has one level | None"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be(tmp_path: Path, setting: str, expected: str) -> None:
    assert problems(write(tmp_path), sets=[setting]) == [expected]


def test_an_error_of_a_setting_shows_the_setting(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(write(tmp_path), sets=["model.width=eight"])
    assert str(caught.value) == (
        "error[S103]: `width` must be a whole number, not the text `eight`\n"
        " --> --set:1:14\n"
        "1 | model.width: eight\n"
        "  |              ^^^^^"
    )


def test_a_setting_around_a_factor_is_a_conflict_and_one_beside_it_is_not(tmp_path: Path) -> None:
    text = EXPERIMENT.replace(
        "path: model.placement, levels: [pre, post]", "path: model.norm.eps, levels: [1e-5, 1e-3]"
    )
    path = write(tmp_path, text=text)
    assert [each.split(" ")[0] for each in problems(path, sets=["model.norm={kind: layer, eps: 1e-5}"])] == ["G218"]
    assert list(levels(path, sets=["model.mixer.heads=1"])) == ["baseline", "placement=0.001", "residual=off"]
