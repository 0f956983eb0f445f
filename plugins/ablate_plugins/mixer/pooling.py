"""Mixers that weigh all tokens alike, or mix none at all."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from ablate.slots import Given, ImpossibleError, Mixer, Site, Traits


class _MeanPooling(nn.Module):
    site: Site

    def __init__(self, at: Site, options: MeanPooling) -> None:
        super().__init__()
        self.causal = at.causal
        self.v, self.o = (nn.Linear(at.width, at.width, bias=options.bias) for _ in range(2))

    def forward(self, x: Tensor, given: Given) -> Tensor:
        v: Tensor = self.v(x)
        exact = torch.promote_types(v.dtype, torch.float32)
        v, ones = v.to(exact), torch.ones_like(v[..., :1], dtype=exact)
        if given.valid is not None:
            padded = ~given.valid.unsqueeze(-1)
            v, ones = v.masked_fill(padded, 0), ones.masked_fill(padded, 0)
        if self.causal:
            total, count = v.cumsum(1), ones.cumsum(1)
            if given.cache is not None:
                read = given.cache.states.get(self.site.path)
                if read is not None:
                    total, count = total + read[0].unsqueeze(1), count + read[1].unsqueeze(1)
                given.cache.states[self.site.path] = (total[:, -1], count[:, -1])
        else:
            total, count = (part.sum(1, keepdim=True).expand_as(part) for part in (v, ones))
        # A sequence without a token has the mean zero.
        out: Tensor = self.o((total / count.clamp_min(1)).to(x.dtype))
        return out


class MeanPooling(Mixer):
    """Mean of the tokens so far, or of all where a site is not causal: attention whose weights are all alike.

    A value map comes before the mean and an output map after it; there are no queries and no keys.
    Source: Zhang et al. 2018, Accelerating Neural Transformer via an Average Attention Network, §3, without its gate
    and its inner feed-forward network.
    """

    kind: Literal["mean_pooling"] = "mean_pooling"
    bias: bool = True
    """Whether the two maps have a bias."""

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D).

        Raises:
            ImpossibleError: the site reads another sequence.
        """
        if at.cross:
            raise ImpossibleError(f"`{self.kind}` cannot read another sequence")
        return _MeanPooling(at, self)

    def traits(self) -> Traits:
        """It goes on from its sum and its count."""
        return Traits(cached=True)


class _Nothing(nn.Module):
    def forward(self, x: Tensor, given: Given) -> Tensor:
        return torch.zeros_like(x)


class NoMixer(Mixer):
    """No information moves between tokens: the sublayer is left out.

    A skeleton leaves out the norm and the residual of the sublayer too, so its module, which gives zeros, is not run.
    Source: He et al. 2024, What Matters in Transformers? Not All Attention is Needed, which drops attention sublayers.
    """

    kind: Literal["none"] = "none"

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> zeros (B, T, D)."""
        return _Nothing()

    def traits(self) -> Traits:
        """It sees nothing."""
        return Traits(position_wise=True, cached=True)
