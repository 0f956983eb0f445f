"""Attention: its size, its scale, its mask."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ablate.model.attention import Attend
from ablate.slots import Given, ImpossibleError, Site, place
from ablate_plugins.mixer import Attention
from ablate_plugins.scale import InverseSqrtScale, NoScale

AT = Site(path="block.0.mixer", slot="mixer", width=512, depth=1, context=8, layer=0)


def size(module: nn.Module) -> int:
    return sum(value.numel() for value in module.parameters())


@pytest.mark.parametrize("heads", [1, 2, 8, 32])
def test_size_at_512_is_vaswanis_and_independent_of_heads(heads: int) -> None:
    assert size(Attention(heads=heads).build(AT)) == 1_050_624


def test_heads_that_do_not_divide_the_width_are_impossible() -> None:
    with pytest.raises(ImpossibleError, match="7 heads do not divide a width of 512"):
        Attention(heads=7).build(AT)


def qkv(width: int = 16) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 4, 8, width, generator=generator) for _ in range(3)]


@pytest.mark.parametrize("causal", [True, False])
def test_the_explicit_path_equals_the_fused_kernel(causal: bool) -> None:
    q, k, v = qkv()
    fused = Attend(AT, causal=causal, p=0.0)
    explicit = Attend(AT, causal=causal, p=0.1).eval()
    assert explicit.explicit
    torch.testing.assert_close(explicit(q, k, v), fused(q, k, v), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("p", [0.0, 0.1])
def test_the_future_does_not_move_the_past(p: float) -> None:
    attention = place(Attention(heads=4, dropout=p), AT)
    x = torch.randn(2, 8, 512, generator=torch.Generator().manual_seed(0))
    y = x.clone()
    y[:, 5:] += 1.0
    before, after = attention(x, Given()), attention(y, Given())
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.equal(before[:, 5:], after[:, 5:])


@pytest.mark.parametrize("width", [16, 64])
def test_scaled_logits_have_variance_one_and_unscaled_ones_the_heads_width(width: int) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(4, 8, 64, width, generator=generator, dtype=torch.float64) for _ in range(2))
    at = Site(path="", slot="scale", width=width, depth=1, context=64)
    for scale, variance in [(InverseSqrtScale(), 1.0), (NoScale(), float(width))]:
        scaled_q, scaled_k = scale.build(at)(q, k)
        logits = scaled_q @ scaled_k.transpose(-2, -1)
        assert float(logits.var()) == pytest.approx(variance, rel=0.03)
