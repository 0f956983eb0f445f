"""Initialisers: how matrices and embeddings are drawn; biases start at zero, gains at what their component says."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ablate.slots import Initializer, Parameter, Site

LOOKED_UP = frozenset({"embed", "position"})
"""Roles whose rows are looked up: one input is on, so the fan-in is one."""
RESIDUAL = frozenset({"o", "w2"})
"""Roles of the last matrix of a sublayer, whose output is added to the stream."""
VALUES = frozenset({"v", "o", "w1", "w2", "w3"})
"""Roles of the matrices that values pass through; queries and keys only weigh them."""


def _fans(tensor: Tensor, parameter: Parameter) -> tuple[int, int]:
    """Fan-in and fan-out: (out, in, width) for a convolution; matrices stacked over gates count as one matrix."""
    if parameter.role in LOOKED_UP:
        return 1, tensor[0].numel()
    field = tensor[0, 0].numel()
    return tensor.shape[1] * field, tensor.shape[0] * field


def _block(parameter: Parameter, roles: frozenset[str]) -> Site | None:
    """The parameter's site, if it is inside of a block and has one of these roles."""
    at = parameter.at
    return at if at is not None and at.layer is not None and parameter.role in roles else None


def _xavier_normal(tensor: Tensor, parameter: Parameter, gain: float, generator: torch.Generator) -> None:
    tensor.normal_(0.0, gain * (2 / sum(_fans(tensor, parameter))) ** 0.5, generator=generator)


class LecunNormal(Initializer):
    """Draw from N(0, 1/fan-in), which keeps the variance of what passes through; looked-up tables from N(0, 1).

    Source: LeCun et al. 1998, Efficient BackProp, §4.6.
    """

    kind: Literal["lecun_normal"] = "lecun_normal"

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place; the fan-in is the product of all axes but the first."""
        fan_in = 1 if parameter.role in LOOKED_UP else tensor[0].numel()
        tensor.normal_(0.0, fan_in**-0.5, generator=generator)


class Normal(Initializer):
    """Draw everything from one normal distribution.

    Source: Radford et al. 2018, §4.1, with a standard deviation of 0.02.
    """

    kind: Literal["normal"] = "normal"
    std: float = Field(0.02, gt=0)
    """Standard deviation."""

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place."""
        tensor.normal_(0.0, self.std, generator=generator)


class Xavier(Initializer):
    """Draw with a variance of 2/(fan-in + fan-out), a compromise between what passes forward and what passes back.

    A looked-up table has a fan-in of one. The factor of a convolution's width is in both fans, and matrices that are
    stacked over the gates of a recurrent layer count as one. Source: Glorot and Bengio 2010, Understanding the
    Difficulty of Training Deep Feedforward Neural Networks, eq. 16.
    """

    kind: Literal["xavier"] = "xavier"
    distribution: Literal["uniform", "normal"] = "uniform"
    """The paper's uniform distribution, or a normal one of the same variance."""
    gain: float = Field(1.0, gt=0)
    """What the standard deviation is multiplied by."""

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place."""
        if self.distribution == "normal":
            _xavier_normal(tensor, parameter, self.gain, generator)
        else:
            bound = self.gain * (6 / sum(_fans(tensor, parameter))) ** 0.5
            tensor.uniform_(-bound, bound, generator=generator)


class Gpt2(Initializer):
    """Draw everything from N(0, 0.02²), and the last matrix of each sublayer from one narrower by √(2L).

    L blocks add 2L updates to the stream, which so keeps its size; L is the depth of the matrix's own stack, and the
    factor stays the paper's where cross-attention makes it 3L updates. Those matrices have the roles `o` and `w2`;
    looked-up tables are drawn like all else. Source: Radford et al. 2019, Language Models are Unsupervised Multitask
    Learners, §2.3.
    """

    kind: Literal["gpt2"] = "gpt2"
    std: float = Field(0.02, gt=0)
    """Standard deviation."""

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place."""
        at = _block(parameter, RESIDUAL)
        tensor.normal_(0.0, self.std * (1.0 if at is None else (2 * at.depth) ** -0.5), generator=generator)


class DeepNorm(Initializer):
    """Draw as `xavier` does, and what values pass through in the blocks narrower by β, which falls with depth.

    β is (8N)^-1/4 for N blocks alone; beside another stack it is 0.87(N⁴M)^-1/16 in an encoder of N blocks and
    (12M)^-1/4 in its decoder of M. It acts on the roles `v`, `o`, `w1`, `w2` and `w3`; queries, keys, looked-up tables
    (of fan-in one) and what stands outside of the blocks have a gain of 1. Goes with the residual of the same name.
    Source: Wang et al. 2022, DeepNet: Scaling Transformers to 1,000 Layers, fig. 2.
    """

    kind: Literal["deepnorm"] = "deepnorm"

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place, from a normal distribution."""
        at = _block(parameter, VALUES)
        _xavier_normal(tensor, parameter, 1.0 if at is None else self._beta(at), generator)

    def _beta(self, at: Site) -> float:
        if at.other_depth is None:
            return float((8 * at.depth) ** -0.25)
        if at.stack == "encoder":
            return float(0.87 * (at.depth**4 * at.other_depth) ** -0.0625)
        return float((12 * at.depth) ** -0.25)


class Orthogonal(Initializer):
    """Draw orthogonal matrices, which keep the length of what passes through; looked-up tables from N(0, 1).

    A matrix that is not square has orthonormal rows or columns, whichever are fewer. A convolution is a matrix (out,
    in x width), and matrices that are stacked over the gates of a recurrent layer are one, with orthonormal columns.
    Source: Saxe et al. 2014, Exact Solutions to the Nonlinear Dynamics of Learning in Deep Linear Neural Networks.
    """

    kind: Literal["orthogonal"] = "orthogonal"
    gain: float = Field(1.0, gt=0)
    """What matrices are multiplied by; looked-up tables are not."""

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place."""
        if parameter.role in LOOKED_UP:
            tensor.normal_(0.0, 1.0, generator=generator)
        else:
            nn.init.orthogonal_(tensor, self.gain, generator=generator)


class Small(Initializer):
    """Draw everything from N(0, 2/5d), d the stream's width: what `xavier` gives a feed-forward network of ratio 4.

    Looked-up tables are drawn like all else. Source: Nguyen and Salazar 2019, Transformers without Tears (SmallInit).
    """

    kind: Literal["small"] = "small"

    def fill(self, tensor: Tensor, parameter: Parameter, generator: torch.Generator) -> None:
        """Fill in place; d is the width at the parameter's site, or its last axis where no site is known."""
        width = parameter.at.width if parameter.at is not None and parameter.at.width else tensor.shape[-1]
        tensor.normal_(0.0, (2 / (5 * width)) ** 0.5, generator=generator)
