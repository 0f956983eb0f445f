"""Checks of what a component's module makes of its inputs."""

from __future__ import annotations

import torch
from torch import Tensor

from ablate.model.keys import generator
from ablate.testing.case import SAME, Case, built, difference, outputs
from ablate.testing.subjects import Subject


def changed(values: Tensor) -> Tensor:
    """Other values of the same kind: no element stays."""
    draw = generator("testing", "changed")
    if values.dtype.is_floating_point:
        return values + 1 + torch.rand(values.shape, generator=draw)
    most = int(values.max()) + 1
    return (values + 1 + torch.randint(max(1, most - 1), values.shape, generator=draw)) % most


def shaped(case: Case) -> str | None:
    """Shapes as the slot says, for a batch and for one token alone; float32 in, float32 out, finite."""
    for subject in case.subjects:
        module = built(subject)
        if wrong := _wrong(outputs(module, subject.inputs), subject.shapes, torch.float32):
            return f"{wrong} {subject.where}"
        module.eval()
        one = tuple(part(each[:1], axis, slice(0, 1)) for each, axis in zip(subject.inputs, subject.axes, strict=True))
        for found, axis in zip(outputs(module, one), subject.out_axes, strict=True):
            sizes = {found.shape[0], 1 if axis is None else found.shape[axis]}
            if sizes != {1} or not found.isfinite().all():
                return f"the shape {tuple(found.shape)}, or values that are not finite, for one token {subject.where}"
    return None


def _wrong(found: object, shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype | None) -> str | None:
    if not isinstance(found, tuple) or not all(isinstance(each, Tensor) for each in found):
        return "no tensor"
    if tuple(tuple(each.shape) for each in found) != shapes:
        return f"shapes {[tuple(each.shape) for each in found]} in place of {list(shapes)}"
    if dtype is not None and any(each.dtype != dtype for each in found):
        return " and ".join(sorted({str(each.dtype).removeprefix("torch.") for each in found}))
    if any(not each.isfinite().all() for each in found):
        return "values that are not finite"
    return None


def autocast(case: Case) -> str | None:
    """Under bfloat16 autocast: the same shapes, finite."""
    for subject in case.subjects:
        module = built(subject)
        with torch.autocast("cpu", torch.bfloat16):
            found = outputs(module, subject.inputs)
        if wrong := _wrong(found, subject.shapes, None):
            return f"{wrong} {subject.where}"
    return None


def double(case: Case) -> str | None:
    """In float64: float64, finite."""
    for subject in case.subjects:
        module = built(subject).double()
        inputs = tuple(each.double() if each.dtype.is_floating_point else each for each in subject.inputs)
        if wrong := _wrong(outputs(module, inputs), subject.shapes, torch.float64):
            return f"{wrong} {subject.where}"
    return None


def causal(case: Case) -> str | None:
    """In training no output depends on a later token, at places where that is not to be; or it does, if so declared."""
    subjects = [subject for subject in case.subjects if subject.causal]
    moved, cut, where = max((_leak(subject, cut), cut, subject.where) for subject in subjects for cut in (1, 4, 7))
    if case.traits.causal:
        return f"outputs before token {cut} that moved by {moved:.2g} {where}" if moved > SAME else None
    return None if moved > SAME else "none that does"


def _leak(subject: Subject, cut: int) -> float:
    """How far the outputs before a token move when it and all later ones change, in one sequence."""
    module = built(subject)
    later = tuple(
        each if axis is None or each.dtype == torch.bool else _with(each, axis, slice(cut, None), rows=slice(0, 1))
        for each, axis in zip(subject.inputs, subject.axes, strict=True)
    )
    first, second = (
        tuple(
            part(each[:1], axis, slice(0, cut))
            for each, axis in zip(outputs(module, inputs), subject.out_axes, strict=True)
        )
        for inputs in (subject.inputs, later)
    )
    return difference(first, second)


def part(values: Tensor, axis: int | None, kept: slice) -> Tensor:
    """Some places of an axis; all where there is no such axis."""
    return values if axis is None else values[(slice(None),) * axis + (kept,)]


def _with(values: Tensor, axis: int, places: slice, rows: slice = slice(None)) -> Tensor:
    where = (rows, *(slice(None),) * (axis - 1), places)
    other = values.clone()
    other[where] = changed(values)[where]
    return other


def position_wise(case: Case) -> str | None:
    """One token alone gives what it gives in its sequence; or other tokens matter, if so declared."""
    if case.traits.position_wise:
        return next((wrong for subject in case.subjects if (wrong := _alone(subject))), None)
    moved = max(_from_others(subject) for subject in case.subjects)
    return None if moved > SAME else "none that does"


def _alone(subject: Subject) -> str | None:
    module = built(subject).eval()
    whole = outputs(module, subject.inputs)
    for token in range(subject.inputs[0].shape[subject.axes[0] or 1]):
        at = slice(token, token + 1)
        one = tuple(part(each[:1], axis, at) for each, axis in zip(subject.inputs, subject.axes, strict=True))
        wanted = tuple(part(each[:1], axis, at) for each, axis in zip(whole, subject.out_axes, strict=True))
        if (moved := difference(wanted, outputs(module, one))) > 1e-6:
            return f"another output for token {token} alone than in its sequence, by {moved:.2g} {subject.where}"
    if (moved := _from_others(subject)) > SAME:
        return f"outputs that moved by {moved:.2g} in training when other tokens changed {subject.where}"
    return None


def _from_others(subject: Subject) -> float:
    """How far the outputs of a middle token move in training when all others of its sequence change."""
    module, token = built(subject), 3
    others = tuple(
        each
        if axis is None or each.dtype == torch.bool
        else _with(_with(each, axis, slice(0, token), slice(0, 1)), axis, slice(token + 1, None), slice(0, 1))
        for each, axis in zip(subject.inputs, subject.axes, strict=True)
    )
    # The places after the token are changed from the original values in both calls of `_with`.
    first, second = (
        tuple(
            part(each[:1], axis, slice(token, token + 1))
            for each, axis in zip(outputs(module, inputs), subject.out_axes, strict=True)
        )
        for inputs in (subject.inputs, others)
    )
    return difference(first, second)


def batch_independent(case: Case) -> str | None:
    """In training a sequence's output does not depend on the others of its batch; or it does, if so declared."""
    moved, where = max((_from_batch(subject), subject.where) for subject in case.subjects)
    if not case.traits.batch_dependent:
        return f"outputs that moved by {moved:.2g} when another sequence changed {where}" if moved > SAME else None
    return None if moved > SAME else "none that does"


def _from_batch(subject: Subject) -> float:
    module = built(subject)
    others = tuple(
        each if each.dtype == torch.bool else torch.cat([each[:1], changed(each)[1:]]) for each in subject.inputs
    )
    first, second = (tuple(each[:1] for each in outputs(module, inputs)) for inputs in (subject.inputs, others))
    return difference(first, second)


def padding(case: Case) -> str | None:
    """What stands where a sequence is padded moves no output, and neither does that it is padded."""
    for subject in case.subjects:
        for padded, told in subject.padding.items():
            if wrong := _padding(subject, padded, told):
                return f"{wrong} {subject.where}"
    return None


def _padding(subject: Subject, padded: int, told: int) -> str | None:
    where, inputs = subject.inputs[told], list(subject.inputs)
    own = subject.axes[padded] is not None and subject.out_axes[0] is not None
    other, kept = changed(inputs[padded]), where.view(*where.shape, *[1] * (inputs[padded].dim() - 2))
    inputs[padded] = torch.where(kept, inputs[padded], other)

    def counted(found: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(each[where] if own else each for each in found)

    module = built(subject)
    found = counted(outputs(module, subject.inputs))
    if (moved := difference(found, counted(outputs(module, tuple(inputs))))) > SAME:
        return f"outputs that moved by {moved:.2g} when what stands in padding changed"
    module.eval()
    whole = outputs(module, subject.inputs)
    for row, length in enumerate(where.sum(1).tolist()):
        short = [each[row : row + 1] for each in subject.inputs]
        short[padded], short[told] = short[padded][:, :length], short[told][:, :length]
        wanted = tuple(each[row : row + 1, :length] if own else each[row : row + 1] for each in whole)
        if (moved := difference(wanted, outputs(module, tuple(short)))) > SAME:
            return f"another output for a padded sequence than without padding, by {moved:.2g}"
    return None
