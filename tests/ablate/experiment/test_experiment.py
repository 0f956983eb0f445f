"""An experiment of plain values, and as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ablate.errors import InputError, RefusedError
from ablate.experiment import Experiment, load
from ablate.experiment.identity import digest
from ablate_plugins.mixer import Attention
from ablate_plugins.norm import LayerNorm, RMSNorm
from tests.ablate.experiment.maker import MANY, told, write
from tests.ablate.experiment.test_layering import BASE

VALUES: dict[str, Any] = {
    "name": "of-values",
    "task": {"kind": "text", "source": "python-docs", "context": 16},
    "model": {"kind": "decoder", "width": 16, "depth": 2, "mixer": {"kind": "attention", "heads": 2}},
    "training": {"optimizer": {"kind": "adamw", "lr": 1e-2}},
    "factors": {"norm": {"path": "model.norm", "levels": ["layer", "rms"]}},
    "objective": {"smallest_effect": 0.02},
    "budget": {"steps": 20},
}


def with_model(**options: Any) -> dict[str, Any]:
    return VALUES | {"model": VALUES["model"] | options}


def identities(experiment: Experiment) -> dict[str, str]:
    return {arm.name: digest(arm.setup) for arm in experiment.grid.arms}


def refused(values: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        Experiment.of(values)
    return [told(each) for each in caught.value.diagnostics]


def test_an_experiment_is_made_of_plain_values(tmp_path: Path) -> None:
    experiment = Experiment.of(VALUES)
    assert repr(experiment) == "Experiment('of-values': 2 arms x 6 seeds, one_at_a_time)"
    (tmp_path / "same.yaml").write_text(experiment.to_yaml())
    assert identities(load(tmp_path / "same.yaml")) == identities(experiment)


def test_components_may_stand_for_themselves() -> None:
    of_objects = with_model(norm=LayerNorm(eps=1e-6), mixer=Attention(heads=2))
    of_objects["factors"] = {
        "norm": {"path": "model.norm", "levels": [LayerNorm(eps=1e-6), RMSNorm(), RMSNorm(eps=1e-3)]}
    }
    experiment = Experiment.of(of_objects)
    assert [arm.name for arm in experiment.grid.arms] == ["baseline", "norm=rms", "norm=rms(eps=0.001)"]
    of_text = with_model(norm={"kind": "layer", "eps": 1e-6})
    of_text["factors"] = {
        "norm": {"path": "model.norm", "levels": [{"kind": "layer", "eps": 1e-6}, "rms", {"kind": "rms", "eps": 1e-3}]}
    }
    assert list(identities(experiment).values()) == list(identities(Experiment.of(of_text)).values())
    assert identities(experiment)["baseline"] != identities(Experiment.of(VALUES))["baseline"]


def test_tuples_and_sets_are_lists() -> None:
    assert Experiment.of(VALUES | {"seeds": (4, 5)}).seeds == [4, 5]


def test_what_is_wrong_has_its_place_in_the_text() -> None:
    assert refused(with_model(width=3.0)) == ["S103 3:31 `width` must be a whole number, not 3.0 | write `3`"]
    with pytest.raises(RefusedError):
        Experiment.of(VALUES | {"budget": {"steps": 20, "max_trials": 1}})


def inside_itself() -> dict[str, Any]:
    values: dict[str, Any] = dict(VALUES)
    values["factors"] = values
    return values


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (with_model(width=float("nan")), "S103 `model.width`: nan is not finite"),
        (VALUES | {"question": Path("x")}, "S103 `question`: PosixPath cannot be written as YAML"),
        (VALUES | {"seeds": [range(3)]}, "S103 `seeds.0`: range cannot be written as YAML"),
        (VALUES | {1: 2}, "S103 `1`: int cannot be written as YAML"),
        (VALUES | {"question": "\ud800"}, "S103 `question`: a text holds half of a character"),
        (inside_itself(), "S103 a value is inside of itself"),
        ([1], "Y009 1:1 a file is a mapping of keys to values, and this is a list | begin with `name: ...`"),
        (VALUES | {"extends": "base.yaml"},
         "S114 11:1 only a file can extend another | give all values here, or load a file"),
    ],
)  # fmt: skip
def test_values_that_no_file_could_hold(values: Any, expected: str) -> None:
    help = "" if " | " in expected else " | give what YAML can hold"
    assert refused(values) == [expected + help]


def test_plugins_of_values_are_relative_to_the_folder(tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY.format(options="    a: int = 0\n"))
    values = with_model(norm="many") | {
        "plugins": ["many.py"], "factors": {"a": {"path": "model.norm.a", "levels": [0, 1]}},
    }  # fmt: skip
    experiment = Experiment.of(values, folder=tmp_path)
    assert [arm.name for arm in experiment.grid.arms] == ["baseline", "a=1"]
    del values["plugins"]
    assert identities(Experiment.of(values, plugins=[tmp_path / "many.py"])) == identities(experiment)


def test_a_file_is_written_as_it_was_read(tmp_path: Path) -> None:
    experiment = load(write(tmp_path))
    again = tmp_path / "again.yaml"
    again.write_text(experiment.to_yaml())
    assert load(again).document.data == experiment.document.data
    assert identities(load(again)) == identities(experiment)


def test_what_is_extended_and_set_is_in_the_one_file(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "many.py").write_text(MANY.format(options=""))
    (tmp_path / "below" / "base.yaml").write_text(BASE + "plugins: [./many.py]\n")
    upper = tmp_path / "upper.yaml"
    upper.write_text("extends: below/base.yaml\nname: upper\nmodel: {depth: 1, norm: many}\n")
    experiment = load(upper, sets=["model.width=8", "seeds=3"])
    alone = tmp_path / "alone.yaml"
    alone.write_text(experiment.to_yaml())
    found = load(alone)
    assert "extends" not in found.document.data and found.settings.plugins == ["below/many.py"]
    assert (found.seeds, identities(found)) == (experiment.seeds, identities(experiment))
    assert identities(found)["baseline"] != identities(load(upper))["baseline"]
    upper.write_text("name: upper\nplugins: [below/many.py]\n" + BASE)
    assert load(upper).to_yaml().count("plugins: [below/many.py]") == 1
