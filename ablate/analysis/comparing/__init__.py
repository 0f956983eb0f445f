"""Two studies against each other: what differs in their configuration, in their arms' values, in their verdicts."""

from ablate.analysis.comparing.comparison import Comparison
from ablate.analysis.comparing.paired import WORSE

__all__ = ["WORSE", "Comparison"]
