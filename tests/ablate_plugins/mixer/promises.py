"""What the mixers of this folder promise alike, each as a check of one built module; all in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from ablate.slots import Cache, Given, Mixer, Site, place

AT = Site(path="block.0.mixer", slot="mixer", width=8, depth=1, context=256, layer=0)
BOTH_WAYS = replace(AT, causal=False)
ACROSS = replace(AT, cross=True, causal=False)


def built(mixer: Mixer, at: Site = AT, seed: int = 0) -> nn.Module:
    """The placed module in float64, every parameter drawn, biases too."""
    module = place(mixer, at).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.4)
    return module


def stream(batch: int = 3, tokens: int = 11, width: int = 8, seed: int = 1) -> Tensor:
    return torch.randn(batch, tokens, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_chunks(module: Callable[[Tensor, Given], Tensor], x: Tensor, sizes: Sequence[int], cache: Cache) -> Tensor:
    outputs = []
    for chunk in x.split(list(sizes), 1):
        outputs.append(module(chunk, Given(cache=cache)))
        cache.length += chunk.shape[1]
    return torch.cat(outputs, 1)


def no_output_depends_on_a_later_token(module: nn.Module, x: Tensor) -> None:
    before = module.train()(x, Given())
    for token in range(1, x.shape[1]):
        changed = x.clone()
        changed[:, token] += 3
        after = module(changed, Given())
        assert torch.equal(after[:, :token], before[:, :token])
        assert not torch.allclose(after[:, token], before[:, token])


def the_first_output_depends_on_the_last_token(module: nn.Module, x: Tensor) -> None:
    changed = x.clone()
    changed[:, -1] += 3
    assert not torch.allclose(module(changed, Given())[:, 0], module(x, Given())[:, 0])


def padding_is_not_seen(module: nn.Module) -> None:
    """Of sequences of 11, 6 and 1 tokens each gives what it gives alone, whatever the padding holds."""
    x = stream()
    valid = torch.arange(11) < torch.tensor([[11], [6], [1]])
    for padding in (0.0, 1e4, -1e4):
        out = module(x.masked_fill(~valid.unsqueeze(-1), padding), Given(valid=valid))
        assert out.isfinite().all()
        for row, length in enumerate((11, 6, 1)):
            alone = module(x[row : row + 1, :length], Given())
            torch.testing.assert_close(out[row : row + 1, :length], alone, atol=1e-10, rtol=0)


def chunks_give_what_the_whole_gives(module: nn.Module, tokens: int = 11) -> None:
    x = stream(tokens=tokens)
    whole = module(x, Given())
    for sizes in ([1] * tokens, [tokens], [1, tokens - 1], [tokens - 1, 1], [2, 3, tokens - 5]):
        torch.testing.assert_close(by_chunks(module, x, sizes, Cache()), whole, atol=1e-10, rtol=0)
    single, x = module.float(), x.float()
    torch.testing.assert_close(by_chunks(single, x, [1] * tokens, Cache()), single(x, Given()), atol=1e-6, rtol=0)
    module.double()


def a_cache_can_be_reordered(module: nn.Module) -> None:
    x, rows = stream(), torch.tensor([2, 2, 0, 1])
    cache = Cache()
    by_chunks(module, x[:, :7], [7], cache)
    assert list(cache.states) == ["block.0.mixer"]
    cache.select(rows)
    rest = module(x[rows, 7:], Given(cache=cache))
    torch.testing.assert_close(rest, module(x, Given())[rows, 7:], atol=1e-10, rtol=0)


def a_cache_changes_nothing_where_later_tokens_are_seen(module: nn.Module) -> None:
    x, cache = stream(), Cache()
    for _ in range(2):
        torch.testing.assert_close(module(x, Given(cache=cache)), module(x, Given()), atol=1e-12, rtol=0)


def every_gradient_is_finite_and_some_of_it_is_not_zero(module: nn.Module) -> None:
    valid = torch.arange(11) < torch.tensor([[11], [6], [1]])
    module(stream(), Given(valid=valid))[valid].square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


def many_at_once_give_what_each_gives(mixer: Mixer, at: Site = AT) -> None:
    """Raises RuntimeError where an operation has no batching rule."""
    models = [built(mixer, at, seed) for seed in range(3)]
    stacked = {
        name: torch.stack([model.get_parameter(name).detach() for model in models])
        for name, _ in models[0].named_parameters()
    }
    x, given = stream(), Given(valid=torch.arange(11) < torch.tensor([[11], [6], [1]]))

    def run(parameters: dict[str, Tensor]) -> Tensor:
        out: Tensor = functional_call(models[0], parameters, (x, given))
        return out

    for out, model in zip(vmap(run)(stacked), models, strict=True):
        torch.testing.assert_close(out, model(x, given), atol=1e-10, rtol=0)


def one_graph_gives_what_the_module_gives(module: nn.Module) -> None:
    """Forward and backward with padding, and from a cache where causal. Raises Unsupported if it is not one graph."""
    torch.compiler.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    given = Given(valid=torch.arange(11) < torch.tensor([[11], [6], [1]]))
    results = []
    for run in (compiled, module):
        x = stream().requires_grad_()
        out = run(x, given)
        out.square().sum().backward()
        results.append((out, x.grad))
    torch.testing.assert_close(*results, atol=1e-9, rtol=1e-9)
    if module.site == AT:
        with torch.no_grad():
            read_on = by_chunks(compiled, stream(), [5, 6], Cache())
        torch.testing.assert_close(read_on, module(stream(), Given()), atol=1e-10, rtol=0)


def it_runs_without_values_and_in_bfloat16(mixer: Mixer, at: Site = AT) -> None:
    with torch.device("meta"):
        shape = place(mixer, at)
        assert shape(torch.empty(2, 5, 8), Given()).shape == (2, 5, 8)
    assert all(parameter.is_meta for parameter in shape.parameters())
    module = built(mixer, at).float()
    with torch.autocast("cpu", torch.bfloat16):
        low = module(stream().float(), Given())
    torch.testing.assert_close(low.float(), module(stream().float(), Given()), atol=0.1, rtol=0.05)
