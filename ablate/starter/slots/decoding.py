"""A decoding of my own: how a model's logits become a text."""

from __future__ import annotations

from typing import Literal

import torch
from ablate.slots import Cache, Decoded, Decodes, Decoding
from pydantic import Field
from torch import Tensor


class MyComponent(Decoding):
    """Draw each token by its probability, from logits that are sharpened or flattened.

    Source: your own.
    """

    kind: Literal["my_component"] = "my_component"
    sharpness: float = Field(1.0, gt=0)
    """What the logits are multiplied by."""

    @torch.no_grad()
    def write(
        self,
        network: Decodes,
        cache: Cache,
        prompt: Tensor,
        *,
        most: int,
        end: int | None,
        generator: torch.Generator,
    ) -> Decoded:
        """Prompt (B, t) -> texts (B, L) and their scores (B,)."""
        scores = torch.zeros(len(prompt), device=prompt.device)
        over = torch.zeros_like(prompt[:, 0], dtype=torch.bool)
        tokens, written = prompt, []
        for _ in range(most):
            logits = network.decode(tokens, cache)[:, -1].float()
            weights = (logits * self.sharpness).softmax(-1)
            tokens = torch.multinomial(weights.cpu(), 1, generator=generator)
            tokens = tokens.to(prompt.device)
            gained = logits.log_softmax(-1).gather(1, tokens)[:, 0]
            scores = scores + gained.masked_fill(over, 0)
            if end is not None:
                tokens = tokens.masked_fill(over[:, None], end)
                over = over | (tokens[:, 0] == end)
            written.append(tokens)
            if bool(over.all()):
                break
        return Decoded(torch.cat(written, 1), scores)
