"""Samples of a user's loaders: read once, checked, and kept as tensors that batches are gathered from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from ablate.data.objects import running
from ablate.errors import InputError
from ablate.slots import IGNORED
from ablate.slots.interface import Form

FIELDS: Mapping[Form, tuple[str, ...]] = {
    "language_modelling": ("tokens", "targets"),
    "classification": ("tokens", "valid", "labels"),
    "sequence_to_sequence": ("source", "valid", "tokens", "targets"),
}
"""What a batch of a form has, in order; ``valid`` may be left out. All are a model's inputs but the last."""
_NONE = object()
_FILL = {"tokens": 0, "source": 0, "valid": 0, "targets": IGNORED}


@dataclass(frozen=True)
class Samples:
    """All samples of a loader."""

    fields: Mapping[str, Tensor]
    """Each field (N, ...), in the order of the form; sequences are padded at the end to the longest of them."""
    lengths: Mapping[str, Tensor]
    """Places that count (N,), of each field that is a sequence."""

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def cut(self, rows: Tensor, *, whole: bool) -> list[Tensor]:
        """The fields of some rows (B,), as long as the longest of all or, if not ``whole``, as the longest of these."""
        found = []
        for name, every in self.fields.items():
            cut = every[rows, : int(self.lengths[name][rows].max())] if name in self.lengths and not whole else None
            values = every[rows] if cut is None else cut
            found.append(values if values.is_floating_point() or name == "valid" else values.long())
        return found


def read_samples(
    loader: Iterable[Any], form: Form, *, limit: int, shown: str, folder: str, like: Samples | None = None
) -> Samples:
    """Read the samples of a loader, at most ``limit``.

    A batch is a mapping with the fields of the form, of which it may have others too, or a tuple of them in their
    order. ``tokens`` and ``source`` are whole numbers from 0 of shape (B, T), or in a classification values of shape
    (B, T, F); ``valid`` is true up to a sequence's end; ``targets`` have the shape of ``tokens``, or ``IGNORED`` where
    nothing is to be said; ``labels`` are numbers (B,).

    Args:
        loader: what gives batches.
        form: what is asked of a model.
        limit: samples that are read at most; the rest is left.
        shown: what the user calls the loader.
        folder: the experiment's folder.
        like: other samples, whose tokens these are to be like.

    Raises:
        InputError: the loader raises (S354), has no samples (S362), or gives what is no such batch (S363 to S365).
    """
    with running(f"`iter` of {shown}", folder):
        batches = iter(loader)
    parts: list[dict[str, Tensor]] = []
    number = 0
    while number < limit:
        where = f"batch {len(parts) + 1} of {shown}"
        with running(where, folder):  # a batch may be of a class of the user's, which is asked for its fields
            batch = next(batches, _NONE)
            if batch is _NONE:
                break
            given = _fields(batch, form, where)
        fields = _checked(given, number, shown)
        _alike(fields, like.fields if like else parts[0] if parts else fields, where)
        parts.append({name: values[: limit - number] for name, values in fields.items()})
        number += len(next(iter(parts[-1].values())))
    if not parts:
        _refuse("S362", f"{shown} has no samples", "give it some: training and validation need them both")
    return _joined(parts, form)


def _fields(batch: Any, form: Form, where: str) -> dict[str, Tensor]:
    """A batch's fields by their names, as tensors."""
    names = FIELDS[form]
    wanted = [name for name in names if name != "valid"]
    words = ", ".join(f"`{name}`" for name in names)
    if isinstance(batch, Mapping):
        for name in wanted:
            if name not in batch:
                near = get_close_matches(name, map(str, batch), n=1)
                meant = f"did you mean `{near[0]}`? " if near else ""
                _refuse("S363", f"{where} has no `{name}`", f"{meant}a batch for `form: {form}` has {words}")
        given = {name: batch[name] for name in names if name in batch}
    elif isinstance(batch, Sequence) and len(batch) in (len(wanted), len(names)):
        given = dict(zip(wanted if len(batch) == len(wanted) else names, batch, strict=True))
    else:
        kind = f"{type(batch).__name__} of {len(batch)}" if isinstance(batch, tuple | list) else type(batch).__name__
        _refuse("S363", f"{where} is a {kind}", f"give a dict or a tuple of {words}; `valid` may be left out")
    tensors: dict[str, Tensor] = {}
    for name, value in given.items():
        if not isinstance(value, Tensor | np.ndarray):
            _refuse(
                "S364", f"{where} has a {type(value).__name__} in `{name}`, and a tensor is wanted", "give a tensor"
            )
        tensor = torch.as_tensor(value).detach().cpu()
        plain = tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool
        tensors[name] = tensor if plain else tensor.long()
    _shapes(tensors, form, where)
    first = next(iter(tensors))
    if "valid" in names and "valid" not in tensors:
        tensors["valid"] = torch.ones(tensors[first].shape[:2], dtype=torch.bool)
    return {name: tensors[name] for name in names}


def _shapes(fields: Mapping[str, Tensor], form: Form, where: str) -> None:
    first = next(iter(fields.values()))
    for name, values in fields.items():
        real = form == "classification" and name == "tokens" and values.is_floating_point()
        axes = ("B",) if name == "labels" else ("B", "T", "F") if real else ("B", "T")
        whole = (
            not values.is_floating_point()
            and not values.is_complex()
            and (name == "valid" or values.dtype != torch.bool)
        )
        if len(values.shape) != len(axes) or not values.numel() or not (real or whole):
            kind = str(values.dtype).removeprefix("torch.")
            also = ", or values of shape (B, T, F)" if form == "classification" and name == "tokens" else ""
            _refuse(
                "S364",
                f"{where} has `{name}` of type {kind} and shape {tuple(values.shape)}",
                f"give whole numbers of shape ({', '.join(axes[: 1 if name == 'labels' else 2])}){also}",
            )
        like = fields["tokens"] if name == "targets" else first
        same = 2 if name in ("valid", "targets") else 1
        if values.shape[:same] != like.shape[:same]:
            beside = next(other for other, each in fields.items() if each is like)
            _refuse(
                "S364",
                f"{where} has `{name}` of shape {tuple(values.shape)} beside `{beside}` of shape {tuple(like.shape)}",
                "give every sample all of its fields",
            )


def _alike(fields: Mapping[str, Tensor], others: Mapping[str, Tensor], where: str) -> None:
    name = next(iter(fields))
    kinds = [("values", *each[name].shape[2:]) if each[name].dim() == 3 else ("numbers",) for each in (fields, others)]
    if kinds[0] != kinds[1]:
        words = [f"{kind} ({size[0]} a token)" if size else kind for kind, *size in kinds]
        _refuse("S364", f"{where} has {words[0]} in `{name}`, and those before have {words[1]}", "give one kind in all")


def _checked(fields: dict[str, Tensor], before: int, shown: str) -> dict[str, Tensor]:
    """The same fields, none of whose values cannot be; ``before`` samples were read."""

    def none_of(wrong: Tensor, what: str, remedy: str) -> None:
        rows = wrong.flatten(1).any(1) if wrong.dim() > 1 else wrong
        if rows.any():
            _refuse("S365", f"sample {before + int(rows.int().argmax()) + 1} of {shown} has {what}", remedy)

    valid = fields.get("valid")
    if valid is not None:
        none_of((valid != 0) & (valid != 1), "a `valid` that is neither 0 nor 1", "give true and false")
        valid = fields["valid"] = valid.bool()
        holes = torch.cat([~valid[:, :1], valid[:, 1:] & ~valid[:, :-1]], 1)
        none_of(holes, "a `valid` that is not true up to its end and false from there", "pad sequences at their end")
        padded = next(iter(fields))
        mask = ~valid if fields[padded].dim() == 2 else ~valid[..., None]
        fields[padded] = fields[padded].masked_fill(mask, 0)  # what stands there counts for nothing
    for name, values in fields.items():
        if values.is_floating_point():
            none_of(~values.isfinite(), f"a value in `{name}` that is not finite", "mend the data")
        elif name == "targets":
            none_of(
                (values < 0) & (values != IGNORED), "a negative number in `targets`", f"{IGNORED} is what is ignored"
            )
            none_of((values == IGNORED).all(1), "no target that counts", "take it out")
        elif name != "valid":
            none_of(values < 0, f"a negative number in `{name}`", "numbers begin at 0")
        if not values.is_floating_point() and name != "valid":
            none_of(
                values > _MOST, f"a number above {_MOST:,} in `{name}`", "numbers are of a vocabulary, or of labels"
            )
    return fields


_MOST = 2**31 - 1


def _joined(parts: Sequence[Mapping[str, Tensor]], form: Form) -> Samples:
    """Batches one after the other, each sequence without what counts for nothing in all samples."""
    names = FIELDS[form]
    lengths: dict[str, Tensor] = {}
    if "valid" in names:
        ends = torch.cat([part["valid"].sum(1) for part in parts])
        lengths |= {names[0]: ends, "valid": ends}
    if "targets" in names:
        ends = torch.cat([_ends(part["targets"]) for part in parts])
        lengths |= {"tokens": ends, "targets": ends}
    fields = {}
    for name in names:
        values = [part[name] for part in parts]
        if name in lengths:
            width = int(lengths[name].max())
            values = [_to(each, width, _FILL[name]) for each in values]
        joined = torch.cat(values)
        fields[name] = joined.float() if joined.is_floating_point() else joined if name == "valid" else joined.int()
    return Samples(fields, lengths)


def _ends(targets: Tensor) -> Tensor:
    """The places up to the last target that counts: (B, T) -> (B,)."""
    places = torch.arange(1, targets.shape[1] + 1)
    return ((targets != IGNORED) * places).amax(1)


def _to(values: Tensor, width: int, fill: int) -> Tensor:
    values = values[:, :width]
    rest = (0, 0) * (values.dim() - 2)
    return pad(values, (*rest, 0, width - values.shape[1]), value=fill)


def _refuse(code: str, message: str, remedy: str) -> NoReturn:
    raise InputError.one(code, message, help=remedy) from None
