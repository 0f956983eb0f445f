"""The task of a Lightning DataModule: the user's own batches, for any form that a model can have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NoReturn

import torch
from pydantic import Field
from torch import Tensor, nn

from ablate.data.objects import mixed, named, read_alike, running
from ablate.data.samples import Samples, read_samples
from ablate.data.sequences import entropy
from ablate.errors import InputError
from ablate.model.scoring import tally
from ablate.slots import IGNORED, Batch, Data, Interface, Task

FORMAT = 1
"""Raised when the same options and samples give other data."""


class _Kept:
    """Samples that were read once; batches are gathered from them."""

    def __init__(self, train: Samples, judged: Samples, interface: Interface) -> None:
        self.interface = interface
        self._train, self._judged = train, judged
        *_, targets = train.fields.values()
        self.facts: Mapping[str, float] = {
            "unigram_entropy": entropy(targets[targets != IGNORED]),
            "training_samples": float(len(train)),
            "evaluated_samples": float(len(judged)),
        }
        if interface.form == "classification":
            labels = judged.fields["labels"]
            self.facts |= {
                "labels": float(interface.classes),
                "most_frequent_share": float(labels.bincount().max()) / len(labels),
            }
        if interface.vocabulary:
            self.facts |= {"vocabulary": float(interface.vocabulary)}
        found = hashlib.sha256(json.dumps(["datamodule", FORMAT, repr(interface)]).encode())
        for samples in (train, judged):
            for name, values in samples.fields.items():
                found.update(json.dumps([name, str(values.dtype), *values.shape]).encode())
                found.update(values.numpy().tobytes())
        self.digest = found.hexdigest()

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Samples of the training loader, each as likely, as long as the longest of them."""
        rows = torch.randint(len(self._train), (size,), generator=generator)
        return _batch(self._train.cut(rows, whole=False))

    def evaluation(self, size: int) -> Sequence[Batch]:
        """All samples of the validation loader, in its order, as long as the longest."""
        return [_batch(self._judged.cut(rows, whole=True)) for rows in torch.arange(len(self._judged)).split(size)]


def _batch(fields: Sequence[Tensor]) -> Batch:
    *inputs, targets = fields
    return Batch(tuple(inputs), targets)


class DataModule(Task):
    """Take training and validation batches from a Lightning DataModule of yours.

    The experiment names its code, which is run. `prepare_data`, `setup("fit")`, `train_dataloader` and `val_dataloader`
    are called, without a trainer, once for the plan and once in each trial's process, and once more where the samples
    are new, for they must be the same then. All samples are read, checked and kept in memory. In training each batch is
    drawn from them anew by the seed and the step: the arms of one seed see the same batches, and how the loader
    shuffles, or how large its batches are, has no part in it. What draws by the global generators of Python, NumPy or
    torch, as an augmentation or a split, gives the same at every load, and an augmentation is one fixed sample.

    A batch is a dict, or a tuple in this order. For `language_modelling`: `tokens` (B, T) and `targets` (B, T), the
    next tokens, -100 where none is to be said. For `classification`: `tokens` (B, T), or values (B, T, F); `valid`
    (B, T), true where a sequence has not ended, which may be left out; `labels` (B,). For `sequence_to_sequence`:
    `source` (B, S), `valid` (B, S) or nothing, `tokens` (B, T), the target so far, which begins with a token of its
    own, and `targets` (B, T). Source: Falcon et al. 2019, PyTorch Lightning.
    """

    kind: Literal["datamodule"] = "datamodule"
    of: str = Field(pattern=r"^[^\W\d][\w.]*:[^\W\d]\w*$", examples=["ablate.data.example:Counting"])
    """A DataModule, its class or a function that gives one, as `my_data:MyData`: a file `my_data.py` beside the
    experiment, or an installed module."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What the class or function is called with, by name."""
    form: Literal["language_modelling", "classification", "sequence_to_sequence"] = "language_modelling"
    """What is asked of a model."""
    limit: int = Field(100_000, ge=1)
    """Samples that are read of each loader, at most; what comes after them is left."""
    context: int | None = Field(None, ge=1)
    """Tokens that there is room for; null for as many as the longest sample has."""
    vocabulary: int | None = Field(None, ge=1)
    """Number of tokens; null for one more than the largest in the data."""
    source_context: int | None = Field(None, ge=1)
    """As `context`, of a source."""
    source_vocabulary: int | None = Field(None, ge=1)
    """As `vocabulary`, of a source."""
    classes: int | None = Field(None, ge=2)
    """Number of labels; null for one more than the largest in the data."""

    units: ClassVar[Mapping[str, str]] = {"val/loss": "nats", "val/accuracy": "share"}

    def load(self, folder: str) -> Data:
        """Run the user's code, and read and check all samples.

        Raises:
            InputError: the code raises, gives no DataModule, or samples that cannot be used; names the sample.
        """
        return read_alike(lambda: self._read(folder), self.of)

    def _read(self, folder: str) -> _Kept:
        module = self._module(folder)
        with running(f"`prepare_data` of `{self.of}`", folder):
            module.prepare_data()
        with running(f"`setup` of `{self.of}`", folder):
            module.setup("fit")
        train = self._samples(module, "train_dataloader", folder)
        judged = self._samples(module, "val_dataloader", folder, like=train)
        with running(f"`teardown` of `{self.of}`", folder):
            module.teardown("fit")
        if self.form == "classification":
            self._labels(train, judged)
        return _Kept(train, judged, self._interface(train, judged))

    def _module(self, folder: str) -> Any:
        import pytorch_lightning as pl  # noqa: PLC0415  # a second, which those who never load a task need not wait

        found = named(self.of, folder)
        with running(f"looking at `{self.of}`", folder):
            gives = callable(found) and not isinstance(found, pl.LightningDataModule)
        if gives:
            with running(f"`{self.of}`", folder):
                found = found(**self.options)
        elif self.options:
            _refuse("S361", f"`{self.of}` is made already, and takes no `options`", "name its class")
        if any(each.__module__.split(".")[0] == "lightning" for each in type(found).__mro__):
            raise mixed(self.of)
        if not isinstance(found, pl.LightningDataModule):
            kind = type(found).__name__
            words = "derive its class from pytorch_lightning.LightningDataModule"
            _refuse("S361", f"`{self.of}` is a {kind}, and no DataModule", words)
        return found

    def _samples(self, module: Any, method: str, folder: str, like: Samples | None = None) -> Samples:
        shown = f"`{method}` of `{self.of}`"
        with running(shown, folder):
            loader = getattr(module, method)()
        if isinstance(loader, Mapping | list | tuple):
            _refuse("S361", f"{shown} gives a {type(loader).__name__}, and one loader is wanted", "give one loader")
        return read_samples(loader, self.form, limit=self.limit, shown=shown, folder=folder, like=like)

    def _labels(self, train: Samples, judged: Samples) -> None:
        known = train.fields["labels"].unique()
        where = f"`train_dataloader` of `{self.of}`"
        if len(known) == 1:
            _refuse(
                "S333",
                f"all of {where} has the label {int(known)}, and there is nothing to tell apart",
                "give samples of two labels at least",
            )
        unseen = ~torch.isin(judged.fields["labels"], known)
        if unseen.any():
            row = int(unseen.int().argmax())
            _refuse(
                "S332",
                f"sample {row + 1} of `val_dataloader` of `{self.of}` has the label "
                f"{int(judged.fields['labels'][row])}, which no sample of training has",
                "give training some samples of it, or take the sample out",
            )

    def _interface(self, train: Samples, judged: Samples) -> Interface:
        both = {"train_dataloader": train, "val_dataloader": judged}
        tokens = train.fields["tokens"]
        context, trained = self._longest(both, "tokens", "context")
        sizes = {"features": tokens.shape[2]} if tokens.dim() == 3 else {}
        if self.form == "classification":
            sizes["classes"] = self._number(both, ("labels",), "classes")
        if self.form == "sequence_to_sequence":
            sizes["source_context"], sizes["trained_source"] = self._longest(both, "source", "source_context")
            sizes["source_vocabulary"] = self._number(both, ("source",), "source_vocabulary")
        names = ("tokens",) if self.form == "classification" else ("tokens", "targets")
        vocabulary = 0 if tokens.dim() == 3 else self._number(both, names, "vocabulary")
        return Interface(context, vocabulary, self.form, trained=trained, **sizes)

    def _longest(self, both: Mapping[str, Samples], name: str, option: str) -> tuple[int, int]:
        """Tokens of the longest sequence, and of the longest in training if that is shorter, else 0."""
        most = getattr(self, option)
        train, judged = (int(samples.lengths[name].max()) for samples in both.values())
        for method, samples in both.items():
            lengths = samples.lengths[name]
            if most is not None and int(lengths.max()) > most:
                row = int((lengths > most).int().argmax())
                _refuse(
                    "S366",
                    f"sample {row + 1} of `{method}` of `{self.of}` has {int(lengths[row])} tokens in `{name}`, and "
                    f"`{option}` is {most}",
                    f"give a larger `{option}`, or cut the sample",
                )
        return (most, 0) if most is not None else (max(train, judged), train if train < judged else 0)

    def _number(self, both: Mapping[str, Samples], names: Sequence[str], option: str) -> int:
        """How many tokens or labels there are."""
        most = getattr(self, option)
        largest = 0
        for method, samples in both.items():
            for name in names:
                values = samples.fields[name]
                largest = max(largest, int(values.max()))
                if most is not None and largest >= most:
                    rows = (values >= most).flatten(1).any(1) if values.dim() > 1 else values >= most
                    row = int(rows.int().argmax())
                    _refuse(
                        "S367",
                        f"sample {row + 1} of `{method}` of `{self.of}` has the number {int(values[row].max())} in "
                        f"`{name}`, and `{option}` is {most}",
                        f"numbers go from 0 to {most - 1}; give a larger `{option}`, or mend the data",
                    )
        return most or largest + 1

    def tally(self, network: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Sums over targets."""
        return tally(network(*batch.inputs), batch.targets)

    def metrics(self, totals: Mapping[str, float]) -> Mapping[str, float]:
        """Mean cross-entropy of a target, and the share of targets that are given the most likely answer."""
        return {"val/loss": totals["nats"] / totals["count"], "val/accuracy": totals["correct"] / totals["count"]}


def _refuse(code: str, message: str, remedy: str) -> NoReturn:
    raise InputError.one(code, message, help=remedy) from None
