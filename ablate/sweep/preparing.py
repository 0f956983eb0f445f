"""What is written before an attempt starts: the plan, the trial's configuration, the attempt's folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ablate.records.layout import AttemptFolder, StudyFolder, TrialFolder, read_json
from ablate.records.sealing import replacing, write_json
from ablate.sweep.bookkeeping.index import Label
from ablate.sweep.bookkeeping.url import repeatable
from ablate.sweep.tuning.search import rungs, tuned_arm

CHECKPOINT_SECONDS = 30.0
"""What a plan without a word on it means."""


class Configs:
    """The configuration of every planned trial, as its ``config.json`` has it; made when it is asked for."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        """Take them from this plan."""
        self._plan = plan
        self._arms = {arm["id"]: arm for arm in plan["arms"]}
        self._trials = {trial["id"]: trial for trial in plan["trials"]}
        self._shorter: dict[str, str] = {}

    def go_on_from(self, shorter: Mapping[str, str]) -> None:
        """Let trials go on from where others of fewer steps ended: those by these."""
        self._shorter.update(shorter)

    def labels(self) -> Iterator[Label]:
        """What each planned trial is called, in the plan's order."""
        return map(self.label, self._trials.values())

    def label(self, trial: Mapping[str, Any]) -> Label:
        """What a trial is called."""
        arm = self._arms[trial["arm"]]
        again = trial.get("repeat", 0)
        return Label(trial["id"], arm["name"], trial["seed"], arm["levels"], trial.get("tuned", {}), again)

    def arm(self, trial: Mapping[str, Any]) -> dict[str, Any]:
        """The arm of a trial, as the plan has it."""
        arm: dict[str, Any] = self._arms[trial["arm"]]
        return arm

    def __getitem__(self, id: str) -> dict[str, Any]:
        """The configuration of the planned trial with this identity."""
        return self.of(self._trials[id])

    def of(self, trial: Mapping[str, Any], pause_at: int | None = None) -> dict[str, Any]:
        """The configuration of a trial, one that opened later too.

        Args:
            trial: as the plan has it, with its tuned values.
            pause_at: the rung at which a tuning trial is judged.
        """
        plan, id, arm = self._plan, trial["id"], self.arm(trial)
        if trial.get("tuned"):
            arm = tuned_arm(arm, trial["tuned"])
        tunes = "number" in trial
        steps = rungs(arm, plan["tuning"]) if tunes else []
        return {
            "trial": id,
            "arm": arm["id"],
            "arm_name": arm["name"],
            "levels": arm["levels"],
            "seed": trial["seed"],
            **({"repeat": trial["repeat"]} if "repeat" in trial else {}),
            "config": {
                **arm["config"],
                "steps": arm.get("steps", plan["budget"]["steps"]),
                "diverged": plan["diverged"],
                "precision": plan["precision"],
                "threads": plan["threads"],
            },
            "observe": {
                "evaluations": plan["budget"]["evaluations"],
                "checkpoint_seconds": plan["budget"].get("checkpoint_seconds", CHECKPOINT_SECONDS),
                "probes": plan["probes"],
                "objective": plan["objective"]["metric"],
                **({"rungs": steps} if steps else {}),
                **({"first_bad": False} if tunes else {}),  # of a sweep many diverge, and nobody asks where
                **({"pause_at": pause_at} if pause_at is not None else {}),
                **({"trial_timeout": timeout} if (timeout := plan["budget"].get("trial_timeout")) else {}),
                **({"loggers": plan["loggers"]} if plan.get("loggers") else {}),
                **({} if plan["budget"].get("keep_checkpoints", True) else {"keep_checkpoints": False}),
            },
            **({"untuned": arm["tuning"]["identity"], "tuned": trial.get("tuned", {})} if arm.get("tuning") else {}),
            **({"lineage": lineage} if (lineage := trial.get("lineage")) is not None else {}),
            **({"continues": self._shorter[id]} if id in self._shorter else {}),
            "components": arm.get("components", plan["components"]),
            "data": arm.get("data", plan["data"]),
            "folder": plan.get("folder", "."),
        }


def write_plan(study: StudyFolder, plan: Mapping[str, Any], source: str | None, extended: str | None = None) -> None:
    """Keep the plan, and the texts that it was made from, with the study."""
    if source is not None:
        for path, text in ((study.experiment, source), (study.extended, extended)):
            if text is None:
                path.unlink(missing_ok=True)
                continue
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
    if not _holds(study.plan, plan):
        write_json(study.plan, plan)


def note_storage(study: StudyFolder, url: str | None) -> None:
    """Keep what a run was told to use as the study's database, for the command that goes on; None where nothing."""
    if url is None:
        study.database.unlink(missing_ok=True)
    else:
        write_json(study.database, {"url": repeatable(url)})


def write_config(folder: TrialFolder, config: Mapping[str, Any]) -> None:
    """Make the trial's folder, and write the configuration if it is not there yet.

    What is not part of a trial's identity, as its arm's name, may have changed since an earlier attempt.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    if not _holds(folder.config, config):
        write_json(folder.config, config)


def next_attempt(folder: TrialFolder) -> AttemptFolder:
    """Make the folder of the trial's next attempt."""
    attempts = folder.attempts()
    attempt = folder.attempt(attempts[-1].number + 1 if attempts else 1)
    attempt.path.mkdir()
    return attempt


def _holds(path: Path, value: Mapping[str, Any]) -> bool:
    try:
        return read_json(path) == value
    except (OSError, ValueError):
        return False
