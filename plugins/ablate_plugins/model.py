"""Models: the skeletons that an experiment can start from."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field
from torch import nn

from ablate.model.decoder import DecoderStack, Parts
from ablate.slots import FeedForward, Mixer, Model, Norm, Output, Placement, Position, Residual, Site
from ablate_plugins.feed_forward import Mlp
from ablate_plugins.mixer import Attention
from ablate_plugins.norm import LayerNorm
from ablate_plugins.output import UntiedOutput
from ablate_plugins.placement import PreNorm
from ablate_plugins.position import LearnedPosition
from ablate_plugins.residual import AddResidual


class Decoder(Model):
    """A causal, decoder-only Transformer.

    Source: Vaswani et al. 2017; Radford et al. 2018 for the decoder alone.
    """

    kind: Literal["decoder"] = "decoder"
    width: int = Field(128, ge=1)
    """Width of the stream, D."""
    depth: int = Field(4, ge=1)
    """Number of blocks."""
    norm: Norm = LayerNorm()
    """What normalises."""
    placement: Placement = PreNorm()
    """Where in a sublayer the norm sits."""
    residual: Residual = AddResidual()
    """How a sublayer's update joins the stream."""
    mixer: Mixer = Attention()
    """What moves information between tokens."""
    feed_forward: FeedForward = Mlp()
    """What transforms each token alone."""
    position: Position = LearnedPosition()
    """How the model is told where a token stands."""
    output: Output = UntiedOutput()
    """How the stream becomes logits."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share dropped of each sublayer's output and of the embeddings with their positions."""

    def build(self, at: Site) -> nn.Module:
        """Token ids (B, T) -> logits (B, T, V)."""
        parts = Parts(
            norm=self.norm,
            placement=self.placement,
            residual=self.residual,
            mixer=self.mixer,
            feed_forward=self.feed_forward,
            position=self.position,
            output=self.output,
            dropout=self.dropout,
        )
        return DecoderStack(parts, replace(at, width=self.width, depth=self.depth, position=self.position))
