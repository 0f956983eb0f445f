"""Probes: what is measured on some of the training steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from ablate.model.attention import attention_weights
from ablate.slots import Attended, Probe, Reading, Seen

TINY = 1e-12


class GradientFlow(Probe):
    """How gradients reach each layer, and how far each parameter moves.

    `grad_norm` is the Frobenius norm of a parameter's gradient, unscaled and before clipping; `stream_grad` that of
    the gradient at the input of each block; `update_ratio` is ‖Δw‖/‖w‖ of the update that was applied.
    Source: Xiong et al. 2020, §3; Karpathy, CS231n, for the update ratio and its guide line of 1e-3.
    """

    kind: Literal["gradient_flow"] = "gradient_flow"
    units: ClassVar[Mapping[str, str]] = {"grad_norm": "", "stream_grad": "", "update_ratio": ""}

    def measure(self, seen: Seen) -> Mapping[Reading, Tensor]:
        """A reading a parameter, and one a layer for the stream."""
        readings = dict(self._parameters(seen))
        for layer, gradient in enumerate(seen.stream_gradients):
            readings[Reading("stream_grad", layer)] = gradient.norm()
        return readings

    def _parameters(self, seen: Seen) -> Iterator[tuple[Reading, Tensor]]:
        # A whole number has no norm and takes no gradient; and norms of no tensors at all are an error.
        parameters = [each for each in seen.parameters if _has_norm(seen.before[each.name])]
        if not parameters:
            return
        before = [seen.before[parameter.name] for parameter in parameters]
        after = [seen.after[parameter.name] for parameter in parameters]
        gradients = [seen.gradients[parameter.name] for parameter in parameters]
        norms = torch._foreach_norm(gradients)
        moved = torch._foreach_norm(torch._foreach_sub(after, before))
        sizes = torch._foreach_norm(before)
        for parameter, norm, move, size in zip(parameters, norms, moved, sizes, strict=True):
            place = (parameter.layer, parameter.role, parameter.name)
            yield Reading("grad_norm", *place), norm
            if len(parameter.shape) >= 2:  # a bias starts at zero, so its ratio says nothing
                yield Reading("update_ratio", *place), move / size.clamp_min(TINY)


def _has_norm(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


class Activations(Probe):
    """How large the residual stream is, and how many units of the feed-forward are off.

    `stream_rms` is √mean(x²) at the input of each block; `zero_fraction` the share of zeros after the activation;
    `dead_units` the share of units that are zero on every token of the batch.
    Source: Glorot et al. 2011, Deep Sparse Rectifier Neural Networks; Lu et al. 2019, Dying ReLU.
    """

    kind: Literal["activations"] = "activations"
    units: ClassVar[Mapping[str, str]] = {"stream_rms": "", "zero_fraction": "", "dead_units": ""}

    def measure(self, seen: Seen) -> Mapping[Reading, Tensor]:
        """A reading a layer."""
        readings = {
            Reading("stream_rms", layer): x.float().square().mean().sqrt() for layer, x in enumerate(seen.stream)
        }
        for layer, hidden in seen.hidden.items():
            zero = hidden == 0
            readings[Reading("zero_fraction", layer)] = zero.float().mean()
            readings[Reading("dead_units", layer)] = zero.flatten(0, -2).all(0).float().mean()
        return readings


class AttentionShape(Probe):
    """How sharp self-attention is: its largest logit and the entropy of its rows.

    `entropy` is in nats, by head; `entropy_normalised` divides each row's by ln(number of valid keys), since causal
    rows have different maxima (rows of one key are left out); `saturation` is the mean of the largest weight in a row.
    Source: Wortsman et al. 2023, Small-scale Proxies; Zhai et al. 2023, Preventing Attention Entropy Collapse.
    """

    kind: Literal["attention_shape"] = "attention_shape"
    sequences: int = Field(4, ge=1)
    """How many sequences of the batch are looked at: the weights are computed anew, which takes memory."""
    units: ClassVar[Mapping[str, str]] = {
        "max_logit": "",
        "entropy": "nats",
        "entropy_normalised": "",
        "saturation": "",
    }

    def measure(self, seen: Seen) -> Mapping[Reading, Tensor]:
        """A reading a layer, and one a head for entropies."""
        return {
            reading: value for seen_by in seen.attention if not seen_by.cross for reading, value in self._of(seen_by)
        }

    def _of(self, attended: Attended) -> Iterator[tuple[Reading, Tensor]]:
        layer = attended.layer
        q, k = (x[: self.sequences].float() for x in (attended.q, attended.k))
        logits = attended.logits(q, k)
        visible = torch.ones((), dtype=torch.bool, device=logits.device) if attended.seen is None else attended.seen
        valid = visible[: self.sequences].expand_as(logits) if visible.dim() == 4 else visible.expand_as(logits)
        weights = attention_weights(logits, valid)
        entropy = torch.special.entr(weights).sum(-1)
        choices = valid.sum(-1)
        several = choices > 1
        normalised = torch.where(several, entropy / choices.clamp_min(2).log(), 0.0)
        yield Reading("max_logit", layer), logits.masked_fill(~valid, float("-inf")).max()
        yield Reading("saturation", layer), weights.amax(-1).mean()
        shares = normalised.sum((0, 2)) / several.sum((0, 2))
        for head, (nats, share) in enumerate(zip(entropy.mean((0, 2)), shares, strict=True)):
            yield Reading("entropy", layer, name=f"head.{head}"), nats
            yield Reading("entropy_normalised", layer, name=f"head.{head}"), share
