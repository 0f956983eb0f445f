"""Mixers: what moves information between tokens; each module is registered by itself."""

from ablate_plugins.mixer.attention import Attention

__all__ = ["Attention"]
