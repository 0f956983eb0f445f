"""Placements: where in a sublayer the norm sits, in ``stream(residual(x, after(branch(before(x)))))``."""

from __future__ import annotations

from math import floor
from typing import Literal

from pydantic import Field

from ablate.slots import Placement, Site, Wiring


class PreNorm(Placement):
    """Norm on the branch's input: x + f(norm(x)).

    The stream stays unnormalised, so a final norm follows. Source: Xiong et al. 2020, On Layer Normalization.
    """

    kind: Literal["pre"] = "pre"

    def wiring(self, at: Site) -> Wiring:
        """The same in every sublayer."""
        return Wiring(before=True)


class PostNorm(Placement):
    """Norm on the stream, after the residual: norm(x + f(x)).

    Source: Vaswani et al. 2017, Attention Is All You Need.
    """

    kind: Literal["post"] = "post"

    def wiring(self, at: Site) -> Wiring:
        """The same in every sublayer."""
        return Wiring(stream=True)


class ResidualPostNorm(Placement):
    """Norm on the branch's output, inside the residual: x + norm(f(x)).

    Source: Liu et al. 2022, Swin Transformer V2, res-post-norm.
    """

    kind: Literal["res_post"] = "res_post"

    def wiring(self, at: Site) -> Wiring:
        """The same in every sublayer."""
        return Wiring(after=True)


class SandwichNorm(Placement):
    """Norms on the branch's input and output: x + norm(f(norm(x))).

    Source: Ding et al. 2021, CogView; Kim et al. 2025, Peri-LN.
    """

    kind: Literal["sandwich"] = "sandwich"

    def wiring(self, at: Site) -> Wiring:
        """The same in every sublayer."""
        return Wiring(before=True, after=True)


class MixNorm(Placement):
    """Post-norm in the lowest blocks, pre-norm in those above.

    Pre-norm alone leaves the upper blocks with small gradients, and post-norm alone the lower ones; the mix is to even
    them out. In a model of two stacks each has lowest blocks of its own. Source: Li et al. 2024, Mix-LN.
    """

    kind: Literal["mix"] = "mix"
    post_share: float = Field(0.25, ge=0, le=1)
    """Share of the blocks with post-norm, from the lowest; rounded to whole blocks, a half up."""

    def wiring(self, at: Site) -> Wiring:
        """The same in every sublayer of a block; pre-norm outside of the blocks, where nothing is lowest."""
        post_blocks = floor(self.post_share * at.depth + 0.5)
        post = at.layer is not None and at.layer < post_blocks
        return Wiring(before=not post, stream=post)


class NoPlacement(Placement):
    """No norm in any sublayer: x + f(x); the final norm stays.

    Source: Zhang et al. 2019, Fixup Initialization.
    """

    kind: Literal["none"] = "none"

    def wiring(self, at: Site) -> Wiring:
        """The same in every sublayer."""
        return Wiring()
