"""Scales: what queries and keys are multiplied by before their product."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from ablate.slots import Scale, Site


class _Scaled(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, q: Tensor, k: Tensor, start: int = 0, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return q * self.factor, k


class _Unscaled(nn.Module):
    def forward(self, q: Tensor, k: Tensor, start: int = 0, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return q, k


class _Learned(nn.Module):
    def __init__(self, heads: int, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.log_gain = nn.Parameter(torch.zeros(heads))

    def forward(self, q: Tensor, k: Tensor, start: int = 0, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return (q * (self.factor * self.log_gain.exp())[:, None, None]).type_as(q), k


class _Cosine(nn.Module):
    def __init__(self, start: float) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.full((1,), start))

    def forward(self, q: Tensor, k: Tensor, start: int = 0, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return (normalize(q, dim=-1) * self.gain).type_as(q), normalize(k, dim=-1).type_as(k)


class _Normed(nn.Module):
    def __init__(self, queries: nn.RMSNorm | nn.LayerNorm, keys: nn.RMSNorm | nn.LayerNorm, factor: float) -> None:
        super().__init__()
        self.q_norm = queries
        self.k_norm = keys
        self.factor = factor

    def forward(self, q: Tensor, k: Tensor, start: int = 0, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._normed(self.q_norm, q) * self.factor, self._normed(self.k_norm, k)

    def _normed(self, norm: nn.RMSNorm | nn.LayerNorm, x: Tensor) -> Tensor:
        out: Tensor = norm(x.to(norm.weight.dtype))  # under autocast x is bfloat16, which rms would warn of
        return out.type_as(x)


class _LogCausal(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, q: Tensor, k: Tensor, start: int = 0, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
        precise = torch.promote_types(q.dtype, torch.float32)  # bfloat16 has no 257
        seen = torch.arange(start + 1, start + q.shape[-2] + 1, device=q.device, dtype=precise)
        return (q * (self.factor * seen.log())[:, None]).type_as(q), k


class _LogWhole(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, q: Tensor, k: Tensor, start: int = 0, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if valid is None:
            return q * (self.factor * math.log(k.shape[-2])), k
        seen = valid.sum(-1).clamp_min(1).to(torch.promote_types(q.dtype, torch.float32))
        return (q * (self.factor * seen.log())[:, None, None, None]).type_as(q), k


class InverseSqrtScale(Scale):
    """Divide the logits by √d_k, which keeps their variance at 1 for unit queries and keys.

    Source: Vaswani et al. 2017, §3.2.1.
    """

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"

    def build(self, at: Site) -> nn.Module:
        """(q, k), (B, H, T, K) and (B, H, S, K) -> the same shapes."""
        return _Scaled(at.width**-0.5)


class NoScale(Scale):
    """Leave the logits as they are; their variance is d_k, so the softmax saturates.

    Source: Vaswani et al. 2017, §3.2.1, footnote 4.
    """

    kind: Literal["none"] = "none"

    def build(self, at: Site) -> nn.Module:
        """(q, k), (B, H, T, K) and (B, H, S, K) -> the same shapes."""
        return _Unscaled()


class InverseScale(Scale):
    """Divide the logits by d_k, which bounds them as heads grow wide, once queries and keys have come to agree.

    Source: Yang et al. 2021, Tensor Programs V, for the maximal update parametrisation.
    """

    kind: Literal["inverse"] = "inverse"

    def build(self, at: Site) -> nn.Module:
        """(q, k), (B, H, T, K) and (B, H, S, K) -> the same shapes."""
        return _Scaled(1 / at.width)


class LearnedScale(Scale):
    """Divide the logits by √d_k and multiply them by a learned positive gain for each head, which starts at 1.

    What is learned is the gain's logarithm.
    Source: Lee et al. 2021, Vision Transformer for Small-Size Datasets, for a learned temperature.
    """

    kind: Literal["learned"] = "learned"

    def build(self, at: Site) -> nn.Module:
        """(q, k), (B, H, T, K) and (B, H, S, K) -> the same shapes; ``at.heads`` is H."""
        return _Learned(at.heads, at.width**-0.5)


class CosineScale(Scale):
    """Take the cosine of queries and keys for a logit, times one learned gain.

    Source: Henry et al. 2020, Query-Key Normalization for Transformers.
    """

    kind: Literal["cosine"] = "cosine"
    start: float | None = Field(None, gt=0)
    """The gain at the start; null for log2(L² - L) with the context L, as in the source."""

    def build(self, at: Site) -> nn.Module:
        """(q, k), (B, H, T, K) and (B, H, S, K) -> the same shapes."""
        longest = max(2, at.context)  # one token alone needs no gain, and has no logarithm
        return _Cosine(self.start or math.log2(longest**2 - longest))


class QKNormScale(Scale):
    """Normalise each head's queries and keys, with learned gains, then divide the logits by √d_k.

    The two gains are as wide as a head and shared by the heads. The source's norm has neither bias nor centring, which
    is rms. Source: Dehghani et al. 2023, Scaling Vision Transformers to 22 Billion Parameters, §2.
    """

    kind: Literal["qk_norm"] = "qk_norm"
    norm: Literal["rms", "layer"] = "rms"
    """Whether the mean is left in (rms) or taken out (layer)."""
    eps: float = Field(1e-6, gt=0)
    """Added to the mean square, or to the variance."""

    def build(self, at: Site) -> nn.Module:
        """(q, k), (B, H, T, K) and (B, H, S, K) -> the same shapes."""
        queries, keys = (self._norm(at.width) for _ in range(2))
        return _Normed(queries, keys, at.width**-0.5)

    def _norm(self, width: int) -> nn.RMSNorm | nn.LayerNorm:
        if self.norm == "rms":
            return nn.RMSNorm(width, eps=self.eps)
        return nn.LayerNorm(width, eps=self.eps, bias=False)


class LogLengthScale(Scale):
    """Multiply the logits by ln(n)/√d_k, n being the keys that a query may see, so that long texts stay as sharp.

    At a causal site n is the query's position counted from 1, elsewhere the number of keys without padding. A query
    that sees one key has a factor of ln 1 = 0, as the formula says: with one key the weights are 1 whatever it is.
    Source: Chiang and Cholak 2022, Overcoming a Theoretical Limitation of Self-Attention, for one n a sequence; Su
    2021 for the same factor up to a constant.
    """

    kind: Literal["log_length"] = "log_length"

    def build(self, at: Site) -> nn.Module:
        """(q, k), (B, H, T, K) and (B, H, S, K) -> the same shapes."""
        return (_LogCausal if at.causal and not at.cross else _LogWhole)(at.width**-0.5)
