"""Each probe against values computed by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from ablate.registry import Registry
from ablate.slots import Attended, Parameter, Probe, Reading, Seen
from ablate_plugins.probe import Activations, AttentionShape, GradientFlow

W = Parameter("block.0.mixer.q.weight", "q", 0, (2, 2))
B = Parameter("block.0.mixer.q.bias", "q", 0, (2,))
CAUSAL = torch.ones(8, 8, dtype=torch.bool).tril()


def products(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1)


def seen() -> Seen:
    return Seen(
        parameters=[W, B],
        before={W.name: torch.tensor([[3.0, 0.0], [0.0, 4.0]]), B.name: torch.zeros(2)},
        after={W.name: torch.tensor([[3.0, 0.0], [0.05, 4.0]]), B.name: torch.ones(2)},
        gradients={W.name: torch.tensor([[1.0, 2.0], [2.0, 4.0]]), B.name: torch.tensor([3.0, 4.0])},
        stream=[torch.full((1, 2, 2), 2.0), torch.tensor([[[1.0, 1.0], [1.0, 5.0]]])],
        stream_gradients=[torch.full((1, 2, 2), 0.5), torch.zeros(1, 2, 2)],
        attention=[
            Attended(
                layer=0,
                cross=False,
                q=torch.tensor([[[[1.0], [2.0]]]]),
                k=torch.tensor([[[[1.0], [3.0]]]]),
                seen=torch.tensor([[True, False], [True, True]]),
                logits=products,
            )
        ],
        hidden={0: torch.tensor([[[0.0, 0.0, 1.0, 0.0], [0.0, 2.0, 1.0, 0.0]]])},
    )


def floats(readings: Mapping[Reading, Tensor]) -> dict[Reading, float]:
    return {reading: float(value) for reading, value in readings.items()}


def test_gradient_flow() -> None:
    found = floats(GradientFlow().measure(seen()))
    assert found == {
        Reading("grad_norm", 0, "q", W.name): 5.0,
        Reading("grad_norm", 0, "q", B.name): 5.0,
        Reading("update_ratio", 0, "q", W.name): pytest.approx(0.01),
        Reading("stream_grad", 0): 1.0,
        Reading("stream_grad", 1): 0.0,
    }


def test_activations() -> None:
    assert floats(Activations().measure(seen())) == {
        Reading("stream_rms", 0): 2.0,
        Reading("stream_rms", 1): pytest.approx(math.sqrt(7)),
        Reading("zero_fraction", 0): 5 / 8,
        Reading("dead_units", 0): 2 / 4,
    }


def test_attention_shape() -> None:
    # Causal logits: row 0 sees [1]; row 1 sees [2, 6]. What is masked (3) is no logit.
    share = 1 / (1 + math.exp(4))
    entropy = -(share * math.log(share) + (1 - share) * math.log(1 - share))
    assert floats(AttentionShape().measure(seen())) == {
        Reading("max_logit", 0): 6.0,
        Reading("saturation", 0): pytest.approx((1 + 1 - share) / 2),
        Reading("entropy", 0, name="head.0"): pytest.approx(entropy / 2),
        Reading("entropy_normalised", 0, name="head.0"): pytest.approx(entropy / math.log(2)),
    }


def test_uniform_attention_has_the_largest_entropy() -> None:
    zeros = torch.zeros(2, 3, 8, 4)
    looked = Seen(
        parameters=[], before={}, after={}, gradients={}, stream=[], stream_gradients=[],
        attention=[Attended(layer=1, cross=False, q=zeros, k=zeros, seen=CAUSAL, logits=products)],
    )  # fmt: skip
    found = floats(AttentionShape().measure(looked))
    for head in range(3):
        assert found[Reading("entropy_normalised", 1, name=f"head.{head}")] == pytest.approx(1.0)


def test_attention_shape_is_of_what_each_sequence_sees_of_itself() -> None:
    q, k = (torch.randn(2, 3, 8, 4, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
    padded = CAUSAL & (torch.arange(8) < torch.tensor([8, 5])[:, None, None, None])
    own = Attended(layer=1, cross=False, q=q, k=k, seen=padded, logits=lambda q, k: 2 * products(q, k))
    other = Attended(layer=1, cross=True, q=k, k=q, seen=None, logits=products)
    looked = Seen(
        parameters=[], before={}, after={}, gradients={}, stream=[], stream_gradients=[], attention=[own, other]
    )
    found = floats(AttentionShape().measure(looked))
    logits = (2 * products(q, k)).masked_fill(~padded, -math.inf)
    weights = logits.softmax(-1)
    entropies = torch.special.entr(weights).sum(-1)
    assert found.pop(Reading("max_logit", 1)) == pytest.approx(float(logits.max()))
    assert found.pop(Reading("saturation", 1)) == pytest.approx(float(weights.max(-1).values.mean()))
    choices = torch.stack([torch.arange(1, 9), torch.arange(1, 9).clamp_max(5)])[:, None].expand(2, 3, 8)
    for head in range(3):
        nats, shares = entropies[:, head], entropies[:, head, 1:] / choices[:, head, 1:].log()
        assert found.pop(Reading("entropy", 1, name=f"head.{head}")) == pytest.approx(float(nats.mean()))
        assert found.pop(Reading("entropy_normalised", 1, name=f"head.{head}")) == pytest.approx(float(shares.mean()))
    assert not found


def test_every_probe_names_the_units_of_what_it_reads() -> None:
    for component in Registry.installed().all("probe"):
        probe = component()
        assert isinstance(probe, Probe)
        assert {reading.metric for reading in probe.measure(seen())} == set(probe.units)


def test_gradient_flow_passes_over_whole_numbers_and_needs_no_parameter() -> None:
    steps = Parameter("steps", "steps", None, (2,))
    whole = {steps.name: torch.tensor([1, 2])}
    looked = Seen(
        parameters=[steps],
        before=whole,
        after=whole,
        gradients=whole,
        stream=[],
        stream_gradients=[torch.ones(1, 2, 2)],
    )
    assert floats(GradientFlow().measure(looked)) == {Reading("stream_grad", 0): 2.0}
