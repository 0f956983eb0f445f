"""Tasks: what a model is trained and judged on; each module is registered by itself."""

from ablate_plugins.task.text import Text

__all__ = ["Text"]
