"""A mixer that convolves over time: each output is a learned mix of the tokens in a window."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from ablate.slots import Given, ImpossibleError, Mixer, Site, Traits


class _Convolution(nn.Module):
    site: Site

    def __init__(self, at: Site, options: Convolution) -> None:
        super().__init__()
        # One kernel for all channels mixes them already: a value map before it would add no function to it.
        self.v = nn.Linear(at.width, at.width, bias=options.bias) if options.depthwise else nn.Identity()
        groups = at.width if options.depthwise else 1
        self.conv = nn.Conv1d(at.width, at.width, options.kernel, groups=groups, bias=options.bias)
        self.o = nn.Linear(at.width, at.width, bias=options.bias)
        self.causal = at.causal
        reach = options.kernel - 1
        self.before = reach if at.causal else (reach + 1) // 2
        self.after = reach - self.before

    def forward(self, x: Tensor, given: Given) -> Tensor:
        v: Tensor = self.v(x)
        if given.valid is not None:
            v = v.masked_fill(~given.valid.unsqueeze(-1), 0)
        cache = given.cache if self.causal else None
        if cache is None:
            window = F.pad(v, (0, 0, self.before, self.after))
        else:
            read = cache.states.get(self.site.path)
            window = F.pad(v, (0, 0, self.before, 0)) if read is None else torch.cat([read[0].to(v.dtype), v], 1)
            cache.states[self.site.path] = (window[:, window.shape[1] - self.before :],)
        out: Tensor = self.o(self.conv(window.transpose(1, 2)).transpose(1, 2))
        return out


class Convolution(Mixer):
    """Convolve over time: each token mixes the tokens of a fixed window, by weights that do not depend on them.

    At a causal site the window ends with the token itself; else the token is in its middle, and an even window has its
    spare token before it. What lies outside of the sequence, padding included, counts as zero. An output map ``o``
    follows; with ``depthwise`` a value map ``v`` comes first. There is no gate, as the papers' layers have.
    Source: Gehring et al. 2017, Convolutional Sequence to Sequence Learning, §3.2; depthwise: Wu et al. 2019, Pay Less
    Attention with Lightweight and Dynamic Convolutions, §3.
    """

    kind: Literal["convolution"] = "convolution"
    kernel: int = Field(3, ge=1)
    """Number of tokens in the window."""
    depthwise: bool = False
    """Whether each channel has a kernel of its own and sees no other, between the value map and the output map."""
    bias: bool = True
    """Whether the convolution and the maps have a bias."""

    def build(self, at: Site) -> nn.Module:
        """(B, T, D) -> (B, T, D).

        Raises:
            ImpossibleError: the site reads another sequence.
        """
        if at.cross:
            raise ImpossibleError(f"`{self.kind}` cannot read another sequence")
        return _Convolution(at, self)

    def traits(self) -> Traits:
        """It goes on from the last tokens of its window."""
        return Traits(cached=True)

    def flops(self, at: Site, batch: int, tokens: int) -> int | None:
        """Declared for depthwise kernels, of whose backward pass the counter takes D times the work."""
        if not self.depthwise:
            return None
        return 2 * batch * tokens * at.width * (2 * at.width + self.kernel)
