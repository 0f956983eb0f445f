"""A driver in a process of its own, for tests that end it: STUDY PLAN PARALLEL PATIENCE STORAGE; says how it goes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ablate.records.layout import StudyFolder
from ablate.sweep import loop
from ablate.sweep.driver import sweep
from ablate.sweep.events import Event, Interrupted, Stopping, TrialProgress
from ablate_plugins.executor import Local
from tests.ablate.sweep.stub_study import STUB


def say(event: Event) -> None:
    """Print what tests wait for."""
    if isinstance(event, TrialProgress | Stopping):
        print(type(event).__name__, flush=True)


def main() -> None:
    """Run the sweep and end as the command line would."""
    study, plan, parallel, patience, storage = sys.argv[1:]
    loop.PATIENCE = float(patience)
    try:
        outcome = sweep(
            StudyFolder(Path(study)),
            json.loads(Path(plan).read_text()),
            Local(parallel=int(parallel)),
            on_event=say,
            trainer=STUB,
            storage=storage or None,
        )
    except Interrupted as stop:
        sys.exit(stop.exit_code)
    sys.exit(outcome.exit_code)


if __name__ == "__main__":
    main()
