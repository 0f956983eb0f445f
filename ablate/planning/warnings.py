"""What a plan should know about its design before it is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ablate.errors import Diagnostic
from ablate.experiment import Experiment
from ablate.experiment.identity import digest
from ablate.records.layout import StudyFolder, read_json
from ablate.records.tasks import task_factor
from ablate.slots import MANY_UNKNOWN

SHOWN = 4
"""So many arms are named in a warning."""


def warnings_of(experiment: Experiment, plan: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Few seeds, arms that fell together, arms that are impossible, arms that are judged on other data."""
    document, seeds = experiment.document, experiment.seeds
    if len(seeds) < 6:
        best = 0.5 ** (len(seeds) - 1)
        few = f"{len(seeds)} seeds: the exact sign-flip test cannot go below p = {best:g}"
        yield document.diagnose(
            "W001",
            few if len(seeds) > 1 else "1 seed: no interval can be computed",
            ("seeds",),
            key=True,
            help="6 seeds or more can reach p < 0.05",
        )
    for arm in plan["arms"]:
        for alias in arm["aliases"]:
            words = f"`{alias}` and `{arm['name']}` are the same arm, which runs once"
            yield document.diagnose("W002", words, ("factors",), key=True)
    for item in plan["excluded"]:
        if item["rule"] is None:
            words = f"`{item['name']}` is excluded: {item['why']}"
            yield document.diagnose("W003", words, ("factors",), key=True)
    yield from _declared(experiment, plan)
    yield from _other_data(experiment, plan)
    yield from _unknown(experiment, plan)


def _unknown(experiment: Experiment, plan: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Evaluated tokens that training has not: where they are many, a metric says little of the model."""
    for name, share in plan["data"]["facts"].items():
        if name.startswith("unknown_in_") and share > MANY_UNKNOWN:
            words = f"{100 * share:.3g}% of the evaluated tokens of the {name.removeprefix('unknown_in_')} are unknown"
            help = "cut the text finer, as by `tokens: characters`, or give it more rows"
            yield experiment.document.diagnose("W016", words, ("task",), key=True, help=help)


def _declared(experiment: Experiment, plan: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """What components declare of themselves that makes a comparison doubtful."""
    holders: dict[str, list[str]] = {}
    for arm in plan["arms"]:
        for note in arm["notes"]:
            holders.setdefault(note, []).append(f"`{arm['name']}`")
    for note, names in holders.items():
        words = f"{', '.join(names[:SHOWN])}{' and others' if len(names) > SHOWN else ''}: {note}"
        yield experiment.document.diagnose("W015", words, ("factors",), key=True)


def hidden_results(experiment: Experiment, plan: Mapping[str, Any], study: StudyFolder) -> Iterator[Diagnostic]:
    """Cells that a rule leaves out though a trial of theirs has diverged: leaving them out would hide a result."""
    for cell in plan["excluded"]:
        if "id" not in cell:
            continue
        ids = {seed: digest({"arm": cell["id"], "seed": seed}) for seed in plan["seeds"]}
        diverged = [seed for seed, id in ids.items() if _end(study, id) == "diverged"]
        if diverged:
            count = f"{len(diverged)} seed{'s' if len(diverged) > 1 else ''}"
            words = f"`{cell['name']}` is excluded, and it has diverged in {count}: a result that no table will show"
            help = "take the rule away, so that the report says that the arm diverges"
            yield experiment.document.diagnose("W005", words, ("exclude", cell["rule"]), help=help)


def _end(study: StudyFolder, trial: str) -> object:
    try:
        return read_json(study.trial(trial).result).get("end")
    except (OSError, ValueError):  # no record, or one that the sweep will set aside
        return None


def _other_data(experiment: Experiment, plan: Mapping[str, Any]) -> Iterator[Diagnostic]:
    base = plan["arms"][0]
    if task_factor(plan) is not None:
        return  # each arm is compared with one on its own task
    others = [arm["name"] for arm in plan["arms"] if arm["data"]["hash"] != base["data"]["hash"]
              or arm["config"]["task"] != base["config"]["task"]]  # fmt: skip
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        names = ", ".join(f"`{name}`" for name in others[:3])
        words = f"{names}{more}: judged on another evaluation set than the baseline, so an effect is partly the set's"
        yield experiment.document.diagnose("W011", words, ("factors",), key=True)
