"""What the sequence-to-sequence models of this folder promise alike, each as a check of one network; in float64."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ablate.model.parameters import build, build_shape, root_site
from ablate.slots import Interface, Model
from ablate_plugins.initializer import LecunNormal

TASK = Interface(form="sequence_to_sequence", context=9, vocabulary=7, source_context=8, source_vocabulary=6)
LENGTHS = (8, 5, 1)


def built(model: Model, task: Interface = TASK) -> Any:
    """The network in float64, every parameter drawn, biases too."""
    network = model.build(root_site(task)).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.5)
    return network


def inputs(task: Interface = TASK) -> tuple[Tensor, Tensor, Tensor]:
    """Sources of 8, 5 and 1 tokens, and targets of 9."""
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(task.source_vocabulary, (3, task.source_context), generator=generator)
    valid = torch.arange(task.source_context) < torch.tensor(LENGTHS)[:, None]
    return source, valid, torch.randint(task.vocabulary, (3, task.context), generator=generator)


def same(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, atol=1e-10, rtol=0)


def padding_is_not_seen(network: Any) -> None:
    """Whatever the padding holds and however long it is, each sequence gives what it gives alone."""
    source, valid, tokens = inputs()
    logits = network.train()(source, valid, tokens)
    assert logits.shape == (3, 9, 7)
    assert torch.equal(network(torch.where(valid, source, (source + 3) % 6), valid, tokens), logits)
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        same(network(source[one, :length], valid[one, :length], tokens[one]), logits[one])


def a_source_without_tokens_gives_numbers(network: Any) -> None:
    source, valid, tokens = inputs()
    assert network(source, torch.zeros_like(valid), tokens).isfinite().all()


def no_output_depends_on_a_later_token(network: Any) -> None:
    source, valid, tokens = inputs()
    before = network.train()(source, valid, tokens)
    for place in range(9):
        changed = tokens.clone()
        changed[:, place] = (changed[:, place] + 1) % 7
        after = network(source, valid, changed)
        same(after[:, :place], before[:, :place])
        assert not torch.allclose(after[:, place], before[:, place])


def chunks_give_what_the_whole_gives(network: Any) -> None:
    source, valid, tokens = inputs()
    whole = network(source, valid, tokens)
    for sizes in ([1] * 9, [9], [1, 8], [4, 2, 3]):
        cache, logits = network.begin(source, valid), []
        for chunk in tokens.split(sizes, 1):
            logits.append(network.decode(chunk, cache))
        assert cache.length == 9
        same(torch.cat(logits, 1), whole)


def a_cache_can_be_reordered(network: Any) -> None:
    source, valid, tokens = inputs()
    rows = torch.tensor([2, 2, 0, 1])
    cache = network.begin(source, valid)
    network.decode(tokens[:, :4], cache)
    cache.select(rows)
    same(network.decode(tokens[rows, 4:], cache), network(source, valid, tokens)[rows, 4:])


def every_gradient_is_finite_and_some_of_it_is_not_zero(network: Any) -> None:
    network(*inputs()).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


def it_runs_without_values_and_in_bfloat16(model: Model) -> None:
    shape: Any = build_shape(model, root_site(TASK))
    assert all(parameter.is_meta for parameter in shape.parameters())
    assert shape(*(each.to("meta") for each in inputs())).shape == (3, 9, 7)
    network = built(model).float()
    with torch.autocast("cpu", torch.bfloat16):
        low = network(*inputs())
    torch.testing.assert_close(low.float(), network(*inputs()), atol=0.2, rtol=0.1)


def accuracy_after_copying(model: Model, *, length: int, steps: int) -> float:
    """Share of the tokens right on new sources, after training to copy random ones of ten tokens."""
    task = Interface(
        form="sequence_to_sequence", context=length, vocabulary=11, source_context=length, source_vocabulary=11
    )
    network = build(model, root_site(task), stream=(0,), initializer=LecunNormal())
    optimizer = torch.optim.AdamW(network.parameters(), 3e-3)
    generator = torch.Generator().manual_seed(0)

    def batch(size: int) -> tuple[Tensor, Tensor]:
        source = torch.randint(1, 11, (size, length), generator=generator)
        shifted = torch.cat([torch.zeros_like(source[:, :1]), source[:, :-1]], 1)
        return source, network(source, torch.ones_like(source, dtype=torch.bool), shifted)

    for _ in range(steps):
        source, logits = batch(32)
        optimizer.zero_grad()
        cross_entropy(logits.flatten(0, 1), source.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        source, logits = batch(256)
    return float((logits.argmax(-1) == source).float().mean())
