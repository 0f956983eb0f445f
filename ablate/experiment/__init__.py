"""From YAML to a validated experiment and its arms; nothing here imports torch by itself."""

from ablate.experiment.loading import Experiment, executor_of, load

__all__ = ["Experiment", "executor_of", "load"]
