"""Attention with and without the division by √d_k: variance, entropy, largest weight, derivative, likeness of heads."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ablate.model.attention import attention_weights, before
from ablate.model.parameters import build, root_site
from ablate_plugins.initializer import LecunNormal
from ablate_plugins.scale import InverseSqrtScale, NoScale
from ablate_plugins.task import Text
from tests.seeds.training import judged, model, trained

TASK = Text(source="python-docs", context=32, windows=32)
FIRST = 8
"""Rows of fewer keys than this are left out: no entropy can be large there."""


def decoder(scale: str, width: int = 128) -> Any:
    return model(kind="decoder", width=width, depth=2, mixer={"kind": "attention", "heads": 2, "scale": scale})


def logits_of(network: nn.Module, tokens: Tensor) -> list[Tensor]:
    """The logits of each block's attention: (B, H, T, T)."""
    found: list[Tensor] = []
    attends: list[Any] = [each for each in network.modules() if getattr(each, "explicit", None) is not None]
    handles = [
        each.register_forward_pre_hook(lambda attend, inputs: found.append(attend.logits(*inputs[:2])))
        for each in attends
    ]
    with torch.no_grad():
        network(tokens)
    for handle in handles:
        handle.remove()
    return found


def weights_of(logits: Tensor) -> Tensor:
    """(B, H, T, T) -> the rows of causal attention that have enough keys."""
    return attention_weights(logits, before(*logits.shape[-2:]))[:, :, FIRST:]


def entropy(weights: Tensor) -> Tensor:
    nats: Tensor = torch.special.entr(weights).sum(-1)
    return nats


def diversity(weights: Tensor) -> float:
    """Mean Jensen-Shannon distance between the rows of two heads; at most √ln 2."""
    pairs = [
        entropy((weights[:, one] + weights[:, other]) / 2) - (entropy(weights[:, one]) + entropy(weights[:, other])) / 2
        for one, other in combinations(range(weights.shape[1]), 2)
    ]
    return float(torch.stack(pairs).clamp_min(0).sqrt().mean())


def derivative(weights: Tensor) -> float:
    """Mean Frobenius norm of the softmax's derivative, diag(p) - p pᵀ."""
    return float((torch.diag_embed(weights) - weights[..., None] * weights[..., None, :]).norm(dim=(-2, -1)).mean())


def measured(network: nn.Module) -> list[dict[str, float]]:
    """What each block's attention is like on the evaluation set."""
    (batch,) = TASK.load(".").evaluation(32)
    found = []
    for logits in logits_of(network, batch.inputs[0]):
        weights = weights_of(logits)
        found.append(
            {
                "variance": float(logits.var()),
                "entropy": float(entropy(weights).mean()),
                "largest": float(weights.amax(-1).mean()),
                "derivative": derivative(weights),
                "diversity": diversity(weights),
            }
        )
    return found


def at_the_start(scale: str, width: int = 128) -> list[dict[str, float]]:
    data = TASK.load(".")
    return measured(build(decoder(scale, width), root_site(data.interface), stream=(0,), initializer=LecunNormal()))


def test_at_the_start_of_a_model_unscaled_attention_is_saturated_and_scaled_is_not() -> None:
    for scaled, unscaled in zip(at_the_start("inverse_sqrt"), at_the_start("none"), strict=True):
        assert scaled["variance"] == pytest.approx(1, abs=0.25)
        assert unscaled["variance"] == pytest.approx(64, abs=16)  # d_k
        assert scaled["entropy"] > 2 and unscaled["entropy"] < 0.8
        assert scaled["largest"] < 0.35 and unscaled["largest"] > 0.7
        assert scaled["diversity"] < 0.6 and unscaled["diversity"] > 0.7  # each saturated head has a key of its own


@pytest.mark.parametrize("width", [16, 64, 256, 1024])
def test_the_softmaxs_derivative_vanishes_as_unscaled_heads_grow_wide(width: int) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(4, 2, 32, width, generator=generator, dtype=torch.float64) for _ in range(2))
    at = root_site(TASK.load(".").interface)
    norms = {}
    for scale in (InverseSqrtScale(), NoScale()):
        one, other = scale.build(at.child("scale", width=width))(q, k)
        norms[scale.kind] = derivative((one @ other.transpose(-2, -1)).softmax(-1))
    assert norms["inverse_sqrt"] == pytest.approx(0.26, abs=0.03)
    assert norms["none"] < {16: 0.4, 64: 0.3, 256: 0.15, 1024: 0.08}[width]


def test_a_saturated_softmax_passes_no_gradient_to_its_logits() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(4, 2, 32, 512, generator=generator, dtype=torch.float64) for _ in range(3))
    gradients = {}
    for name, factor in (("scaled", 512**-0.5), ("unscaled", 1.0)):
        logits = (q @ k.transpose(-2, -1) * factor).requires_grad_()
        (logits.softmax(-1) @ v).square().sum().backward()
        assert logits.grad is not None
        gradients[name] = logits.grad.abs().median()
    assert gradients["unscaled"] < 1e-6 * gradients["scaled"]


def test_diversity_by_hand() -> None:
    rows = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]], dtype=torch.float64)[None]
    assert diversity(rows[:, :2]) == pytest.approx(math.log(2) ** 0.5)
    assert diversity(rows[:, [0, 0]]) == 0
    halfway = entropy(torch.tensor([0.75, 0.25])) - entropy(torch.tensor([0.5, 0.5])) / 2
    assert diversity(rows[:, [0, 2]]) == pytest.approx(float(halfway) ** 0.5)


@pytest.mark.slow
def test_in_training_unscaled_heads_grow_alike_and_scaled_ones_apart() -> None:
    """By the distance between them: saturated heads start far apart, each on a key of its own, and only come nearer."""
    change, loss = {}, {}
    for scale in ("inverse_sqrt", "none"):
        network = trained(decoder(scale), TASK, steps=300, lr=1e-3, batch=16)
        start, end = (sum(each["diversity"] for each in found) for found in (at_the_start(scale), measured(network)))
        change[scale], loss[scale] = end - start, judged(network, TASK)["val/loss"]
    assert change["none"] < 0 < change["inverse_sqrt"]
    assert loss["inverse_sqrt"] < loss["none"] - 0.1
