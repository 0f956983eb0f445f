"""The tap that lets probes see inside a training step, and what they read."""

from ablate.probing.tap import Tap, probed_steps

__all__ = ["Tap", "probed_steps"]
