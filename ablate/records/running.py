"""Which trials run at this moment, by the word of the driver that has handed them out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from ablate.records.layout import StudyFolder, read_json
from ablate.records.locks import lock_held, written_driver


def runs(study: StudyFolder) -> Callable[[str], bool] | None:
    """Tells whether a trial that has begun and not ended runs; None where nobody runs the study.

    The driver's word may be a second old. As long as it has said nothing, every such trial may run.
    """
    if not lock_held(study.lock):
        return None
    driver = written_driver(study.lock)
    try:
        told = read_json(study.progress)
        rows = {str(row["trial"]) for row in told["standing"]["rows"]}
        if driver is not None and told["driver"] == asdict(driver):
            return rows.__contains__
    except (OSError, ValueError, KeyError, TypeError):  # not written yet, or by another version of Ablate
        pass
    return lambda trial: True
