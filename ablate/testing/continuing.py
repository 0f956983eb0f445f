"""Checks of modules that go on from what was read before, or read another sequence."""

from __future__ import annotations

import torch

from ablate.slots import Cache, Given, ImpossibleError
from ablate.testing.case import SAME, Case, built, difference, outputs, settled
from ablate.testing.subjects import Subject, crossing, random, valid
from ablate.testing.tensors import changed, part


def starts(case: Case) -> str | None:
    """The later tokens by themselves, told where they start, give what they give in their sequence."""
    for subject in case.subjects:
        module = built(subject).eval()
        whole = outputs(module, subject.inputs)
        module.start = 3  # type: ignore[assignment]
        late = slice(3, None)
        tail = tuple(part(each, axis, late) for each, axis in zip(subject.inputs, subject.axes, strict=True))
        wanted = tuple(part(each, axis, late) for each, axis in zip(whole, subject.out_axes, strict=True))
        if (moved := difference(wanted, outputs(module, tail))) > SAME:
            return f"outputs that differ by {moved:.2g} from token 3 on"
    return None


def cached(case: Case) -> str | None:
    """With a cache, a text read in pieces gives what it gives at once; or not, if so declared."""
    try:
        moved = max(_in_pieces(subject) for subject in case.subjects if subject.where == "at a causal site")
    except Exception:
        if not case.traits.cached:
            return None
        raise
    if case.traits.cached:
        return f"outputs that differ by {moved:.2g} when the text is read in pieces" if moved > SAME else None
    return None if moved > SAME else "the same outputs in pieces as at once"


@torch.no_grad()
def _in_pieces(subject: Subject) -> float:
    module = built(subject).eval()
    (x,) = subject.inputs
    cache, found = Cache(), []
    for first, last in ((0, 3), (3, 4), (4, x.shape[1])):
        found.append(module.get_submodule("inner")(x[:, first:last], Given(cache=cache)))
        cache.length = last
    return difference(outputs(module, subject.inputs), (torch.cat(found, 1),))


@torch.no_grad()
def decodes(case: Case) -> str | None:
    """A model that can decode gives, token by token, the logits that it gives at once."""
    for subject in case.subjects:
        network = built(subject).get_submodule("inner").eval()
        begin, decode = getattr(network, "begin", None), getattr(network, "decode", None)
        if begin is None or decode is None:
            continue
        *before, tokens = subject.inputs
        cache = begin(*before)
        pieces = [decode(tokens[:, first:last], cache) for first, last in ((0, 3), (3, 4), (4, tokens.shape[1]))]
        if (moved := difference((network(*subject.inputs),), (torch.cat(pieces, 1),))) > SAME:
            return f"logits that differ by {moved:.2g} {subject.where}"
        if cache.length != tokens.shape[1]:
            return f"a cache of length {cache.length} after {tokens.shape[1]} tokens {subject.where}"
    return None


def crosses(case: Case) -> str | None:
    """At a cross site the output moves with the memory; or it cannot stand there, if so declared."""
    width = case.subjects[0].inputs[0].shape[-1]
    inputs = random(3, 8, width), random(3, 5, width, name="memory"), valid(5)
    try:
        module = settled(crossing(case.component, width))
        found = outputs(module, inputs)
        moved = difference(found, outputs(module, (inputs[0], changed(inputs[1]), inputs[2])))
    except ImpossibleError as error:
        return f"that it cannot stand there: {error}" if case.traits.crosses else None
    except Exception:
        if not case.traits.crosses:
            return None
        raise
    if case.traits.crosses:
        return None if moved > SAME else "an output that no change of the memory moves"
    return "one that does" if moved > SAME else None


def reads(case: Case) -> str | None:
    """The logits move when the source does."""
    for subject in case.subjects:
        if subject.memory is not None:
            module, inputs = built(subject).eval(), list(subject.inputs)
            found = outputs(module, subject.inputs)
            inputs[subject.memory] = changed(inputs[subject.memory])
            if difference(found, outputs(module, tuple(inputs))) <= SAME:
                return f"logits that no change of the source moves {subject.where}"
    return None
