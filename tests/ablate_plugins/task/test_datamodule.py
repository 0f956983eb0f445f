"""The task of a DataModule: its batches by form, what has no part in them, and every fault before any trial."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ablate
from ablate.errors import InputError
from ablate.model.keys import generator
from ablate.slots import IGNORED, Data, Interface
from ablate_plugins.task.datamodule import DataModule
from tests.ablate.experiment.maker import write

MODULE = """\
import numpy as np
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader


class Given(pl.LightningDataModule):
    def __init__(self, train=None, val=None, **options):
        super().__init__()
        self.train, self.val, self.options, self.told = train, val, options, []

    def prepare_data(self):
        self.told.append("prepared")

    def setup(self, stage):
        assert self.told == ["prepared"] and self.trainer is None
        self.told.append(stage)

    def train_dataloader(self):
        return loader(self.train)

    def val_dataloader(self):
        return loader(self.train if self.val is None else self.val)

    def teardown(self, stage):
        print(*self.told, stage)


def loader(batches):
    return iter(batches) if isinstance(batches, list) and batches[0] != "one of two" else batches


def tensors(*rows):
    return torch.tensor(rows)
"""
T = torch.tensor


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ABLATE_CACHE", str(tmp_path / "cache"))


def loaded(folder: Path, code: str, **options: Any) -> Data:
    """A DataModule with the loaders that an expression gives: ``train=..., val=...``."""
    (folder / "my_data.py").write_text(MODULE + f"\n\ndef made(**options):\n    return Given({code}, **options)\n")
    return DataModule.model_validate({"of": "my_data:made", **options}).load(str(folder))


def rows_of(data: Data, size: int = 64) -> list[Any]:
    """The evaluation set, all fields together."""
    return [[each.tolist() for each in (*batch.inputs, batch.targets)] for batch in data.evaluation(size)]


ALIKE = (
    "error[S358]: `{}` gives something else each time it is read, and all trials need the same\n"
    "  = help: draw by the global generators, which are at 0 here, or by one of your own with a fixed seed"
)

# --- what is read ---

LANGUAGE = (
    'train=[{"tokens": tensors([1, 2, 3], [4, 5, 0]), "targets": tensors([2, 3, 4], [5, -100, -100]), "id": [1, 2]}], '
    "val=[(np.array([[1, 2]]), np.array([[2, 7]]))]"
)


def test_a_language_model_gets_tokens_and_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = loaded(tmp_path, LANGUAGE)
    assert capsys.readouterr() == ("", "prepared fit fit\n" * 2)  # new samples are read twice
    loaded(tmp_path, LANGUAGE)
    assert capsys.readouterr() == ("", "prepared fit fit\n")
    assert data.interface == Interface(context=3, vocabulary=8)
    assert rows_of(data) == [[[[1, 2]], [[2, 7]]]]
    seen = set()
    for step in range(40):
        (tokens,), targets = data.batch(1, generator(step))
        seen.add((tuple(tokens[0].tolist()), tuple(targets[0].tolist())))
    assert seen == {((1, 2, 3), (2, 3, 4)), ((4,), (5,))}
    assert data.facts["training_samples"] == 2 and data.facts["evaluated_samples"] == 1
    assert data.facts["vocabulary"] == 8
    assert data.facts["unigram_entropy"] == pytest.approx(torch.tensor(4.0).log().item())


def test_a_longer_evaluation_is_told_and_sizes_may_be_given(tmp_path: Path) -> None:
    code = "train=[tensors([[1, 2]], [[2, 3]]).unbind()], val=[tensors([[1, 2, 3]], [[2, 3, 1]]).unbind()]"
    assert loaded(tmp_path, code).interface == Interface(context=3, vocabulary=4, trained=2)
    assert loaded(tmp_path, code, context=9, vocabulary=50).interface == Interface(context=9, vocabulary=50)


def test_a_classifier_gets_what_is_valid_and_labels(tmp_path: Path) -> None:
    code = (
        'train=[{"tokens": tensors([1, 9], [2, 3]), "valid": tensors([True, False], [True, True]), '
        '"labels": T([0, 2])}, (tensors([5, 5, 5]), T([2]))], val=[(tensors([6, 7, 9]), tensors([1, 1, 0]), T([2]))]'
    ).replace("T(", "torch.tensor(")
    data = loaded(tmp_path, code, form="classification", classes=4)
    assert data.interface == Interface(form="classification", context=3, vocabulary=8, classes=4)
    assert rows_of(data) == [[[[6, 7]], [[True, True]], [2]]]
    assert data.facts["labels"] == 4 and data.facts["most_frequent_share"] == 1


def test_a_classifier_may_read_values(tmp_path: Path) -> None:
    code = (
        "train=[(torch.ones(4, 3, 5, dtype=torch.float64), torch.arange(4))], "
        "val=[(torch.zeros(2, 2, 5), torch.arange(2))]"
    )
    data = loaded(tmp_path, code, form="classification")
    assert data.interface == Interface(form="classification", context=3, vocabulary=0, classes=4, features=5)
    (values, valid), labels = data.batch(6, generator(0))
    assert values.dtype == torch.float32 and values.shape == (6, 3, 5) and bool(valid.all()) and labels.shape == (6,)
    assert "vocabulary" not in data.facts


def test_sequences_to_sequences_have_a_source(tmp_path: Path) -> None:
    code = (
        "train=[(tensors([1, 2, 3], [4, 0, 0]), tensors([1, 1, 1], [1, 0, 0]), tensors([0, 5], [0, 6]), "
        "tensors([5, 9], [9, -100]))], val=[(tensors([8, 8]), tensors([0, 7, 7]), tensors([7, 7, 9]))]"
    )
    data = loaded(tmp_path, code, form="sequence_to_sequence")
    assert data.interface == Interface(
        form="sequence_to_sequence", context=3, vocabulary=10, source_context=3, source_vocabulary=9, trained=2
    )
    assert rows_of(data) == [[[[8, 8]], [[True, True]], [[0, 7, 7]], [[7, 7, 9]]]]
    (source, valid, tokens), targets = data.batch(30, generator(1))
    assert {
        tuple(map(tuple, zip(*row, strict=False))) for row in zip(source.tolist(), valid.tolist(), strict=True)
    } == {
        ((1, True), (2, True), (3, True)),
        ((4, True), (0, False), (0, False)),
    }
    assert tokens.shape == targets.shape == (30, 2) and int((targets == IGNORED).sum()) > 0


# --- what has no part in it ---

SHUFFLED = """\


class Shuffled(pl.LightningDataModule):
    def __init__(self, batch: int = 4):
        super().__init__()
        self.batch = batch

    def setup(self, stage):
        self.numbers = torch.randint(9, (30, 6))

    def train_dataloader(self):
        return DataLoader([(row[:-1], row[1:]) for row in self.numbers[:20]], batch_size=self.batch, shuffle=True)

    def val_dataloader(self):
        return DataLoader([(row[:-1], row[1:]) for row in self.numbers[20:]], batch_size=3)


instance = Shuffled()
"""


def shuffled(folder: Path, **options: Any) -> Data:
    (folder / "my_data.py").write_text(MODULE + SHUFFLED)
    return DataModule.model_validate({"of": "my_data:Shuffled", **options}).load(str(folder))


def test_shuffling_and_drawing_give_the_same_at_every_load(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    first, second = shuffled(tmp_path), shuffled(tmp_path, of="my_data:instance")
    assert torch.equal(torch.get_rng_state(), before)
    assert first.digest == second.digest
    for step in range(3):
        one, other = (data.batch(5, generator(7, step)) for data in (first, second))
        assert torch.equal(one.inputs[0], other.inputs[0]) and torch.equal(one.targets, other.targets)
    assert not torch.equal(first.batch(5, generator(8, 0)).targets, first.batch(5, generator(7, 0)).targets)
    assert rows_of(first) == rows_of(second) and len(rows_of(first, 4)) == 3


def test_the_digest_is_of_the_samples(tmp_path: Path) -> None:
    digests = [shuffled(tmp_path, **each).digest for each in ({}, {"limit": 7}, {"context": 9}, {"vocabulary": 20})]
    assert len(set(digests)) == 4
    assert shuffled(tmp_path, vocabulary=9).digest == digests[0]


def test_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    data = shuffled(tmp_path, limit=7)
    assert data.facts["training_samples"] == data.facts["evaluated_samples"] == 7
    endless = "train=iter(lambda: (tensors([1, 2]), tensors([2, 1])), None), val=[(tensors([1]), tensors([1]))]"
    assert loaded(tmp_path, endless, limit=5).facts["training_samples"] == 5


# --- what is judged ---


class _Says(nn.Module):
    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.logits


def test_targets_are_judged_but_those_that_are_ignored(tmp_path: Path) -> None:
    data = loaded(tmp_path, "train=[(tensors([1, 2, 1]), tensors([1, -100, 0]))]")
    task = DataModule(of="my_data:made")
    (batch,) = data.evaluation(9)
    logits = 60.0 * T([[[0.0, 1.0, 0.0]] * 3])
    totals = {name: float(value) for name, value in task.tally(_Says(logits), batch).items()}
    values = task.metrics(totals)
    assert values == {"val/loss": pytest.approx(30), "val/accuracy": 0.5} and values.keys() == task.units.keys()


# --- faults ---

OK = "(tensors([1, 2]), tensors([2, 1]))"
LABELLED = "(tensors([1, 2], [3, 4]), torch.arange(2))"
TRAIN, VAL = "`train_dataloader` of `my_data:made`", "`val_dataloader` of `my_data:made`"
FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "raises": ("train=[1 / 0]", {},
        "error[S354]: `my_data:made` raises ZeroDivisionError: division by zero\n"
        "  = help: mend the code; nothing was run"),
    "none": ("train=None", {},
        f"error[S354]: `iter` of {TRAIN} raises TypeError: 'NoneType' object is not iterable\n"
        "  = help: mend the code; nothing was run"),
    "a bad batch": (f"train=map(lambda n: {OK} if n else 1 / n, (1, 0))", {},
        f"error[S354]: batch 2 of {TRAIN} raises ZeroDivisionError: division by zero\n"
        "  = help: mend the code; nothing was run"),
    "two loaders": (f"train=[{OK}], val={{'a': [{OK}]}}", {},
        f"error[S361]: {VAL} gives a dict, and one loader is wanted\n  = help: give one loader"),
    "a list of loaders": ("train=['one of two', 'two of two']", {},
        f"error[S361]: {TRAIN} gives a list, and one loader is wanted\n  = help: give one loader"),
    "nothing": (f"train=[{OK}], val=iter([])", {},
        f"error[S362]: {VAL} has no samples\n"
        "  = help: give it some: training and validation need them both"),
    "a lone tensor": ("train=[tensors([1, 2])]", {},
        f"error[S363]: batch 1 of {TRAIN} is a Tensor\n"
        "  = help: give a dict or a tuple of `tokens`, `targets`; `valid` may be left out"),
    "three": (f"train=[{OK} + (1,)]", {},
        f"error[S363]: batch 1 of {TRAIN} is a tuple of 3\n"
        "  = help: give a dict or a tuple of `tokens`, `targets`; `valid` may be left out"),
    "a key": (f"train=[{OK}, {{'tokens': 1, 'target': 2}}]", {},
        f"error[S363]: batch 2 of {TRAIN} has no `targets`\n"
        "  = help: did you mean `target`? a batch for `form: language_modelling` has `tokens`, `targets`"),
    "a list": ("train=[([[1, 2]], [[2, 1]])]", {},
        f"error[S364]: batch 1 of {TRAIN} has a list in `tokens`, and a tensor is wanted\n  = help: give a tensor"),
    "values": ("train=[(tensors([1.0, 2]), tensors([2, 1]))]", {},
        f"error[S364]: batch 1 of {TRAIN} has `tokens` of type float32 and shape (1, 2)\n"
        "  = help: give whole numbers of shape (B, T)"),
    "pictures": ("train=[(torch.ones(2, 8, 8).long(), torch.arange(2))]", {"form": "classification"},
        f"error[S364]: batch 1 of {TRAIN} has `tokens` of type int64 and shape (2, 8, 8)\n"
        "  = help: give whole numbers of shape (B, T), or values of shape (B, T, F)"),
    "one hot": ("train=[(tensors([1, 2]), tensors([1, 0]))]", {"form": "classification"},
        f"error[S364]: batch 1 of {TRAIN} has `labels` of type int64 and shape (1, 2)\n"
        "  = help: give whole numbers of shape (B)"),
    "true and false": ("train=[(tensors([True]), tensors([1]))]", {},
        f"error[S364]: batch 1 of {TRAIN} has `tokens` of type bool and shape (1, 1)\n"
        "  = help: give whole numbers of shape (B, T)"),
    "other shapes": ("train=[(tensors([1, 2]), tensors([1]))]", {},
        f"error[S364]: batch 1 of {TRAIN} has `targets` of shape (1, 1) beside `tokens` of shape (1, 2)\n"
        "  = help: give every sample all of its fields"),
    "other numbers": ("train=[(tensors([1, 2]), torch.arange(2))]", {"form": "classification"},
        f"error[S364]: batch 1 of {TRAIN} has `labels` of shape (2,) beside `tokens` of shape (1, 2)\n"
        "  = help: give every sample all of its fields"),
    "two kinds": (f"train=[{LABELLED}], val=[(torch.ones(1, 2, 3), torch.arange(1))]", {"form": "classification"},
        f"error[S364]: batch 1 of {VAL} has values (3 a token) in `tokens`, and those before have numbers\n"
        "  = help: give one kind in all"),
    "not finite": ("train=[(torch.ones(3, 2, 2) / tensors([1, 1], [1, 0]), torch.arange(3))]",
        {"form": "classification"},
        f"error[S365]: sample 1 of {TRAIN} has a value in `tokens` that is not finite\n  = help: mend the data"),
    "negative": (f"train=[{OK}, (tensors([1, 2], [1, -1]), tensors([1, 2], [1, 2]))]", {},
        f"error[S365]: sample 3 of {TRAIN} has a negative number in `tokens`\n  = help: numbers begin at 0"),
    "large": (f"train=[{OK}, (tensors([1, 2], [1, 2**31]), tensors([1, 2], [1, 2]))]", {},
        f"error[S365]: sample 3 of {TRAIN} has a number above 2,147,483,647 in `tokens`\n"
        "  = help: numbers are of a vocabulary, or of labels"),
    "ignored otherwise": ("train=[(tensors([1, 2]), tensors([1, -1]))]", {},
        f"error[S365]: sample 1 of {TRAIN} has a negative number in `targets`\n  = help: -100 is what is ignored"),
    "nothing counts": ("train=[(tensors([1, 2]), tensors([-100, -100]))]", {},
        f"error[S365]: sample 1 of {TRAIN} has no target that counts\n  = help: take it out"),
    "padded in front": ("train=[(tensors([1, 2]), tensors([0, 1]), torch.arange(1))]", {"form": "classification"},
        f"error[S365]: sample 1 of {TRAIN} has a `valid` that is not true up to its end and false from there\n"
        "  = help: pad sequences at their end"),
    "valid is two": ("train=[(tensors([1, 2]), tensors([1, 2]), torch.arange(1))]", {"form": "classification"},
        f"error[S365]: sample 1 of {TRAIN} has a `valid` that is neither 0 nor 1\n  = help: give true and false"),
    "one label": ("train=[(tensors([1], [2]), tensors(3, 3))]", {"form": "classification"},
        f"error[S333]: all of {TRAIN} has the label 3, and there is nothing to tell apart\n"
        "  = help: give samples of two labels at least"),
    "unseen": (f"train=[{LABELLED}], val=[{LABELLED}, (tensors([1]), tensors(2))]", {"form": "classification"},
        f"error[S332]: sample 3 of {VAL} has the label 2, which no sample of training has\n"
        "  = help: give training some samples of it, or take the sample out"),
    "long": (f"train=[(tensors([1]), tensors([2]))], val=[{OK}]", {"context": 1},
        f"error[S366]: sample 1 of {VAL} has 2 tokens in `tokens`, and `context` is 1\n"
        "  = help: give a larger `context`, or cut the sample"),
    "vocabulary": (f"train=[{OK}, (tensors([1]), tensors([4]))]", {"vocabulary": 4},
        f"error[S367]: sample 2 of {TRAIN} has the number 4 in `targets`, and `vocabulary` is 4\n"
        "  = help: numbers go from 0 to 3; give a larger `vocabulary`, or mend the data"),
    "classes": ("train=[(tensors([1], [2], [3]), torch.arange(3))]", {"form": "classification", "classes": 2},
        f"error[S367]: sample 3 of {TRAIN} has the number 2 in `labels`, and `classes` is 2\n"
        "  = help: numbers go from 0 to 1; give a larger `classes`, or mend the data"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "options", "text"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_sentence(tmp_path: Path, code: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, code, **options)
    assert str(caught.value) == text


OTHERS = {
    "number": ("number = 3", {}, "error[S361]: `my_data:number` is a int, and no DataModule\n"
        "  = help: derive its class from pytorch_lightning.LightningDataModule"),
    "rows": ("def rows(): return [1]", {}, "error[S361]: `my_data:rows` is a list, and no DataModule\n"
        "  = help: derive its class from pytorch_lightning.LightningDataModule"),
    "Strict": ("class Strict(Given):\n    def __init__(self): pass", {"options": {"n": 1}},
        "error[S354]: `my_data:Strict` raises TypeError: Strict.__init__() got an unexpected keyword argument 'n'\n"
        "  = help: mend the code; nothing was run"),
    "there": ("there = Given()", {"options": {"n": 1}},
        "error[S361]: `my_data:there` is made already, and takes no `options`\n  = help: name its class"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "options", "text"), OTHERS.values(), ids=OTHERS)
def test_what_is_no_datamodule_is_told_so(
    tmp_path: Path, request: pytest.FixtureRequest, code: str, options: dict[str, Any], text: str
) -> None:
    (tmp_path / "my_data.py").write_text(f"{MODULE}\n\n{code}\n")
    name = request.node.callspec.id
    with pytest.raises(InputError) as caught:
        DataModule.model_validate({"of": f"my_data:{name}", **options}).load(str(tmp_path))
    assert str(caught.value) == text


def test_samples_that_differ_from_reading_to_reading_are_told(tmp_path: Path) -> None:
    draw = "torch.randint(9, (8, 4), generator=torch.Generator().manual_seed(time.time_ns()))"
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, f"train=[({draw}, {draw})]".replace("time.", '__import__("time").'))
    assert str(caught.value) == ALIKE.format("my_data:made")


MIX = (
    "error[S360]: `my_data:Mine` is made with `lightning`, and Ablate runs on `pytorch_lightning`: these are two "
    "packages, and neither knows the other's classes\n"
    "  = help: write `import pytorch_lightning as pl` in place of `import lightning.pytorch as pl`"
)


@pytest.mark.parametrize("installed", [False, True])
def test_the_mix_of_two_lightnings_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    for name in ("lightning", "lightning.pytorch"):
        module = ModuleType(name)
        made = type("LightningDataModule", (), {"__module__": "lightning.pytorch.core.datamodule"})
        module.__dict__.update(pytorch=module, LightningDataModule=made)
        monkeypatch.setitem(sys.modules, name, module if installed else None)
    (tmp_path / "my_data.py").write_text(
        "import lightning.pytorch as pl\nclass Mine(pl.LightningDataModule):\n    pass\n"
    )
    with pytest.raises(InputError) as caught:
        DataModule(of="my_data:Mine").load(str(tmp_path))
    assert str(caught.value) == MIX


# --- experiments ---


def experiment(folder: Path, of: str) -> Path:
    task = f"{{kind: datamodule, of: {of}, options: {{batch: 5}}}}"
    return write(
        folder,
        ("{kind: text, source: python-docs, context: 16}", task),
        ("steps: 20", "steps: 3"),
        ("seeds: 6", "seeds: 1"),
    )


def test_an_experiment_runs_on_a_datamodule_beside_it(tmp_path: Path) -> None:
    (tmp_path / "my_data.py").write_text(MODULE + SHUFFLED)
    results = ablate.run(experiment(tmp_path, "my_data:Shuffled"), runs=tmp_path / "runs", parallel=1)
    assert results.counts()["complete"] == 3 and results.trials()["val/loss"].gt(0).all()


def test_a_plan_tells_what_fails(tmp_path: Path) -> None:
    (tmp_path / "my_data.py").write_text(MODULE + SHUFFLED)
    with pytest.raises(InputError) as caught:
        ablate.plan(ablate.load(experiment(tmp_path, "my_data:Shufled")))
    assert str(caught.value).startswith("error[S352]: the module `my_data` has no `Shufled`\n --> ")
    assert str(caught.value).endswith(" = help: did you mean `Shuffled`?")
