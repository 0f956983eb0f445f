"""A driver in a process of its own that waits in the windows that a test has armed: STUDY PLAN."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from optuna.storages import RDBStorage
from optuna.trial import TrialState

from ablate.records.layout import StudyFolder
from ablate.sweep.driver import sweep
from ablate_plugins.executor import Local
from tests.ablate.sweep.windows import Windows

TRAINER = "tests.ablate.sweep.windowed_trainer:train"


def main() -> None:
    study, plan = sys.argv[1:]
    windows, tell = Windows.of_environment(), RDBStorage.set_trial_state_values

    def telling(self: RDBStorage, trial_id: int, state: TrialState, *values: Any, **options: Any) -> bool:
        if state == TrialState.COMPLETE:
            windows.pause("telling-before")
        told = tell(self, trial_id, state, *values, **options)
        if state == TrialState.COMPLETE:
            windows.pause("telling-after")
        return told

    with patch.object(RDBStorage, "set_trial_state_values", telling):
        outcome = sweep(
            StudyFolder(Path(study)), json.loads(Path(plan).read_text()), Local(parallel=2), trainer=TRAINER
        )
    sys.exit(outcome.exit_code)


if __name__ == "__main__":
    main()
