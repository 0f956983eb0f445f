"""The one line of wiring, held against torch's own layers and against formulas written by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ablate.model.parameters import initialise
from ablate.model.sublayer import Sublayer
from ablate.slots import FeedForward, Given, Mixer, Placement, Site
from ablate_plugins.feed_forward import Mlp
from ablate_plugins.initializer import Normal
from ablate_plugins.mixer import Attention
from ablate_plugins.norm import LayerNorm
from ablate_plugins.placement import NoPlacement, PostNorm, PreNorm, ResidualPostNorm, SandwichNorm
from ablate_plugins.residual import AddResidual, NoResidual

WIDTH, HEADS, INNER = 32, 4, 64
AT = Site(path="block.0", slot="block", width=WIDTH, depth=2, context=16, layer=0)


def sublayers(placement: Placement, residual: AddResidual | NoResidual | None = None) -> Any:
    """An attention sublayer and a feed-forward sublayer, with values that make every parameter matter."""
    branches: dict[str, Mixer | FeedForward] = {
        "mixer": Attention(heads=HEADS, causal=False),
        "feed_forward": Mlp(width=INNER, activation="relu"),
    }
    made = nn.ModuleList(
        (
            Sublayer(
                {AT.child(name): branch},
                AT.child(name),
                norm=LayerNorm(),
                wiring=placement.wiring(AT.child(name)),
                residual=residual or AddResidual(),
                p=0.0,
            )
            for name, branch in branches.items()
        )
    )
    initialise(made, Normal(std=0.1), (0,))
    with torch.no_grad():
        for value in made.parameters():
            value.add_(0.1 * torch.randn(value.shape, generator=torch.Generator().manual_seed(value.numel())))
    return made


def run(sublayers: Any, x: Tensor) -> Tensor:
    for sublayer in sublayers:
        x = sublayer(x, Given())
    return x


def reference(ours: Any, *, norm_first: bool) -> nn.TransformerEncoderLayer:
    """Torch's layer with our weights."""
    theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, dropout=0.0, norm_first=norm_first, batch_first=True)
    attention, feed_forward = ours[0], ours[1]
    branch, mlp = attention.mixers[0], feed_forward.others[0]
    norm_of = "before" if norm_first else "stream"
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(torch.cat([branch.q.weight, branch.k.weight, branch.v.weight]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([branch.q.bias, branch.k.bias, branch.v.bias]))
    for mine, copy in [
        (branch.o, theirs.self_attn.out_proj),
        (mlp.w1, theirs.linear1),
        (mlp.w2, theirs.linear2),
        (getattr(attention, norm_of), theirs.norm1),
        (getattr(feed_forward, norm_of), theirs.norm2),
    ]:
        copy.load_state_dict(mine.state_dict())
    return theirs


@pytest.fixture
def x() -> Tensor:
    return torch.randn(3, 16, WIDTH, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("placement", "norm_first"), [(PostNorm(), False), (PreNorm(), True)])
def test_post_and_pre_equal_torchs_encoder_layer(placement: Placement, norm_first: bool, x: Tensor) -> None:
    ours = sublayers(placement)
    theirs = reference(ours, norm_first=norm_first)
    torch.testing.assert_close(run(ours, x), theirs(x), atol=1e-6, rtol=0)
    ours, theirs, x = ours.double(), theirs.double(), x.double()
    torch.testing.assert_close(run(ours, x), theirs(x), atol=1e-13, rtol=0)


def test_residual_post_norm_is_the_formula_bit_for_bit(x: Tensor) -> None:
    both = attention, feed_forward = sublayers(ResidualPostNorm())
    y = x + attention.after(attention.mixers[0](x, Given()))
    y = y + feed_forward.after(feed_forward.others[0](y))
    assert torch.equal(run(both, x), y)


def test_sandwich_is_the_formula_bit_for_bit(x: Tensor) -> None:
    both = attention, feed_forward = sublayers(SandwichNorm())
    y = x + attention.after(attention.mixers[0](attention.before(x), Given()))
    y = y + feed_forward.after(feed_forward.others[0](feed_forward.before(y)))
    assert torch.equal(run(both, x), y)


def test_no_placement_is_the_formula_bit_for_bit(x: Tensor) -> None:
    both = attention, feed_forward = sublayers(NoPlacement())
    y = x + attention.mixers[0](x, Given())
    assert torch.equal(run(both, x), y + feed_forward.others[0](y))


def test_residual_off_is_the_update_alone(x: Tensor) -> None:
    both = attention, feed_forward = sublayers(PreNorm(), NoResidual())
    y = attention.mixers[0](attention.before(x), Given())
    assert torch.equal(run(both, x), feed_forward.others[0](feed_forward.before(y)))


def test_dropout_is_on_the_branch_outside_of_the_inner_norm(x: Tensor) -> None:
    sublayer = Sublayer(
        {AT: Mlp()}, AT, norm=LayerNorm(), wiring=ResidualPostNorm().wiring(AT), residual=AddResidual(), p=0.5
    )
    sublayer.train()
    update = sublayer(x, Given()) - x
    normed = sublayer.after(sublayer.others[0](x))
    dropped = update.abs() < 1e-7
    assert 0.45 < dropped.float().mean() < 0.55
    torch.testing.assert_close(update[~dropped], (2 * normed)[~dropped], atol=1e-5, rtol=1e-4)
