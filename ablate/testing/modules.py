"""Checks of a component's module as a thing that is built, saved and sent elsewhere."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from ablate.testing.case import SAME, Case, built, difference, outputs, settled
from ablate.testing.making import others
from ablate.testing.subjects import subjects_of


def builds(case: Case) -> str | None:
    """The component builds a module at a place of its slot."""
    for subject in case.subjects:
        subject.make()
    return None


def deterministic(case: Case) -> str | None:
    """In evaluation the same inputs give the same outputs, whatever was seen between; two builds give the same."""
    for subject in case.subjects:
        module, again = built(subject).eval(), built(subject).eval()
        first = outputs(module, subject.inputs)
        outputs(module, tuple(each.flip(0) for each in subject.inputs))
        if not _equal(first, outputs(module, subject.inputs)):
            return f"other outputs at the second call {subject.where}"
        if not _equal(first, outputs(again, subject.inputs)):
            return f"other outputs of a second build {subject.where}"
    return None


def _equal(first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def draws_nothing(case: Case) -> str | None:
    """Nothing that is built or computed depends on a global generator, and computing moves none."""
    for subject in case.subjects:
        with _seeded(1):
            module = settled(subject.make())
        with _seeded(2):
            other = settled(subject.make())
        there = {**dict(other.named_parameters()), **dict(other.named_buffers())}
        for name, value in (*module.named_parameters(), *module.named_buffers()):
            if not torch.equal(value, there[name]):
                return (
                    f"`{name.removeprefix('inner.')}` drawn from a global generator when it was built {subject.where}"
                )
        with _seeded(3):
            before = _generators()
            for mode in (True, False):
                outputs(module.train(mode), subject.inputs)
            if moved := [name for name, state in _generators().items() if state != before[name]]:
                return f"a draw from the global generator of {' and '.join(moved)} {subject.where}"
    return None


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """All global generators at a seed, and then as they were."""
    python, numbers = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numbers)


def _generators() -> dict[str, object]:
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "numpy": str(np.random.get_state(legacy=False)),
        "Python": random.getstate(),
    }


@contextmanager
def global_generators_kept(moved: list[str]) -> Iterator[None]:
    """Note in ``moved`` which global generators were drawn from."""
    with _seeded(3):
        before = _generators()
        yield
        moved += [name for name, state in _generators().items() if state != before[name]]


def state_dict(case: Case) -> str | None:
    """All that a module learns is in its state_dict."""
    for subject in case.subjects:
        module, other = built(subject), built(subject, seed=1)
        outputs(module, subject.inputs)  # in training, where running statistics move
        other.load_state_dict(module.state_dict())
        if not _equal(outputs(module.eval(), subject.inputs), outputs(other.eval(), subject.inputs)):
            return f"other outputs after loading {subject.where}"
    return None


def meta(case: Case) -> str | None:
    """On the meta device the module has the parameters that it has elsewhere."""
    for subject in case.subjects:
        real = {name: tuple(value.shape) for name, value in subject.make().named_parameters()}
        with torch.device("meta"):
            module = subject.make()
        shapes = {name: tuple(value.shape) for name, value in module.named_parameters()}
        if shapes != real:
            differing = sorted(
                name.removeprefix("inner.") for name in {*real, *shapes} if real.get(name) != shapes.get(name)
            )
            return f"other shapes of {', '.join(f'`{name}`' for name in differing)} {subject.where}"
        for name, value in module.named_parameters():
            if value.device.type != "meta":
                return f"`{name.removeprefix('inner.')}` on the device {value.device} {subject.where}"
    return None


def module_pickles(case: Case) -> str | None:
    """The module goes to another process."""
    for subject in case.subjects:
        module = built(subject).eval()
        other = pickle.loads(pickle.dumps(module))
        if not _equal(outputs(module, subject.inputs), outputs(other, subject.inputs)):
            return f"other outputs {subject.where}"
    return None


def flops(case: Case) -> str | None:
    """Declared operations are a whole number over 0."""
    for subject in case.subjects:
        declared = case.component.flops(subject.site, 2, 8)  # type: ignore[attr-defined]  # of mixers and networks
        if declared is not None and (type(declared) is not int or declared < 0):
            return f"{declared!r} {subject.where}"
    return None


def dead_options(case: Case) -> str | None:
    """Options that `effective` calls dead change nothing that is built."""
    for name in type(case.component).model_fields:
        for other in others(case.component, name, case.registry):
            if name == "kind" or other.effective() != case.component.effective():
                continue
            for one, two in zip(case.subjects, subjects_of(other), strict=True):
                if difference(outputs(built(one).eval(), one.inputs), outputs(built(two).eval(), two.inputs)) > SAME:
                    return f"other outputs by another `{name}`, which `effective` calls dead, {one.where}"
            break
    return None
