"""The task of digits: patches, parts, and a model that reads values in place of numbers."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import Any

import pytest
import torch

from ablate.errors import InputError
from ablate.model.keys import generator
from ablate.model.parameters import build, named_parameters, root_site
from ablate.slots import Data, Interface
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.model.encoder import Encoder
from ablate_plugins.task.digits import Digits


@cache
def data(patch: int = 2) -> Data:
    return Digits.model_validate({"patch": patch}).load(".")


@pytest.mark.parametrize(("patch", "tokens"), [(1, 64), (2, 16), (4, 4)])
def test_a_picture_is_cut_into_patches_by_rows(patch: int, tokens: int) -> None:
    datasets: Any = import_module("sklearn.datasets")
    pictures = {
        tuple(map(int, picture.flatten())): int(label) for picture, label in zip(*_pictures(datasets), strict=True)
    }
    assert data(patch).interface == Interface(
        form="classification", context=tokens, vocabulary=0, classes=10, features=patch * patch
    )
    for batch in [data(patch).batch(16, generator(0)), *data(patch).evaluation(200)]:
        values, valid = batch.inputs
        assert values.shape[1:] == (tokens, patch * patch) and values.dtype == torch.float32 and bool(valid.all())
        for row, label in zip(((values + 1) * 8).tolist(), batch.targets.tolist(), strict=True):
            picture = [[0] * 8 for _ in range(8)]
            for number, token in enumerate(row):
                for place, value in enumerate(token):
                    down, across = divmod(number, 8 // patch)
                    picture[down * patch + place // patch][across * patch + place % patch] = int(value)
            assert pictures[tuple(value for line in picture for value in line)] == label


def _pictures(datasets: Any) -> tuple[Any, Any]:
    found = datasets.load_digits()
    return found.images, found.target


def test_parts_have_no_picture_in_common() -> None:
    training = {tuple(row) for row in data().batch(20_000, generator(0)).inputs[0].flatten(1).tolist()}
    held = [tuple(row) for batch in data().evaluation(64) for row in batch.inputs[0].flatten(1).tolist()]
    assert len(held) == data().facts["evaluated_pictures"] == 359 and not training & set(held)
    assert data().facts["training_pictures"] == 1797 - 359
    assert 2.29 < data().facts["unigram_entropy"] <= 2.3026
    assert data().digest != data(1).digest == Digits(patch=1).load("elsewhere").digest


def test_an_encoder_maps_values_to_its_width_and_learns() -> None:
    network = build(
        Encoder(width=32, depth=1), root_site(data().interface), stream=(0,), initializer=LecunNormal()
    ).train()
    (weight,) = [(each, value) for each, value in named_parameters(network) if each.name == "embed.weight"]
    assert weight[0].role == "projection" and weight[1].shape == (32, 4)
    optimizer, task = torch.optim.Adam(network.parameters(), 3e-3), Digits()
    for step in range(60):
        batch = data().batch(64, generator(step))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(*batch.inputs), batch.targets).backward()
        optimizer.step()
    with torch.no_grad():
        found = [task.tally(network.eval(), batch) for batch in data().evaluation(100)]
    values = task.metrics({name: sum(float(each[name]) for each in found) for name in found[0]})
    assert values.keys() == task.units.keys()
    assert values["val/accuracy"] > 0.7 and abs(values["val/macro_f1"] - values["val/accuracy"]) < 0.1


def test_without_the_package_it_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(InputError) as caught:
        Digits().load(".")
    assert str(caught.value) == (
        "error[S335]: the task `digits` needs the package `scikit-learn`, which is not installed\n"
        "  = help: pip install 'ablate-arch[digits]'"
    )
