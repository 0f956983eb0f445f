"""Named random streams: every draw is keyed by a seed and a name, so that no draw depends on another."""

from __future__ import annotations

import hashlib

import torch


def generator(*key: int | str) -> torch.Generator:
    """A CPU generator for the stream of this name, as ``generator(seed, "init", "block.0.mixer.q.weight")``.

    The generator uses only 32 bits of a seed, so the key is hashed to 32 well-mixed bits first.
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in key)
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
    return torch.Generator().manual_seed(seed)
