"""Named random streams: every draw is keyed by a seed and a name, so that no draw depends on another."""

from __future__ import annotations

import hashlib

import torch


def generator(*key: int | str) -> torch.Generator:
    """A CPU generator for the stream of this name, as ``generator(seed, "init", "block.0.mixer.q.weight")``.

    The generator uses only 32 bits of a seed, so the key is hashed to 32 well-mixed bits first.
    """
    return torch.Generator().manual_seed(seed_of(*key))


def seed_of(*key: int | str) -> int:
    """The 32 bits that a name is hashed to."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in key)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
