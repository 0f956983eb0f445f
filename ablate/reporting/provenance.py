"""How to make the study again, and by which rules its figures were made."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ablate.records.layout import StudyFolder, read_json
from ablate.reporting.numbers import big, fixed, level, plain, whole
from ablate.reporting.privacy import redact
from ablate.reporting.study import Study
from ablate.reporting.tables import Column, Table, as_text

FACT_UNITS = {"unigram_entropy": " nats"}
"""The units of what is known of the data; what is not here has none."""


def facts(study: Study) -> list[tuple[str, str]]:
    """What was run, with what, as pairs of a name and a value."""
    plan, trials = study.plan, study.trials
    git = plan.get("git")
    dirty = " (with uncommitted changes)" if git and git.get("dirty") else ""
    seconds = trials["seconds"].sum()
    known = sorted((key, value) for key, value in plan["data"].get("facts", {}).items() if key != "vocabulary")
    return [
        ("design", _design(plan)),
        ("arms", str(len(plan["arms"]))),
        ("seeds", ", ".join(map(str, plan["seeds"]))),
        ("budget", f"{_range([arm.steps for arm in study.arms])} steps of "
                   f"{_range([arm.tokens for arm in study.arms])} tokens each"),
        ("training time", f"{seconds / 3600:.2f} h in all" if seconds >= 3600 else f"{seconds / 60:.1f} min in all"),
        ("device", f"{plan['device']}, {plan['precision']}, {plan['threads']} "
                   f"{'thread' if plan['threads'] == 1 else 'threads'} a worker"),
        *([("vocabulary", f"{plan['vocabulary']:,}")] if plan.get("vocabulary") is not None else []),
        ("data hash", str(plan["data"]["hash"])),
        *((f"data: {plain(key).replace('_', ' ')}", f"{value:g}{FACT_UNITS.get(key, '')}") for key, value in known),
        ("plan hash", str(plan["hash"])),
        ("git", f"{git['commit']}{dirty}" if git else "no repository"),
        ("divergence rule", _divergence(plan["diverged"])),
    ]  # fmt: skip


def _design(plan: Mapping[str, Any]) -> str:
    name = str(plan["design"]).replace("_", " ")
    fraction = plan.get("fraction")
    if not fraction:
        return name
    resolution = f" of resolution {fraction['resolution']}" if fraction.get("resolution") else ""
    made = f" ({', '.join(map(str, fraction['generators']))})" if fraction.get("generators") else ""
    return plain(f"{name}{resolution}: {fraction['runs']} of {fraction['full']} combinations{made}")


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def command(study: Study) -> str:
    """The command as it is given in the experiment's folder: with the name of the file alone, and nothing private."""
    text = str(study.plan["command"])
    try:
        words = shlex.split(text)
    except ValueError:  # no command that Ablate wrote
        return plain(text)
    if words[:2] == ["ablate", "run"] and len(words) > 2:
        words[2] = PurePath(words[2]).name
    return shlex.join(plain(word) for word in words)


def needed(study: Study) -> list[str]:
    """The names of the files, beside the experiment, that a run needs: its plugins, and the data of its tasks."""
    plan = study.plan
    paths = [*plan.get("plugins", ()), *(arm["config"]["task"].get("path") for arm in plan["arms"])]
    names = (str(path).replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] for path in paths if path)
    return [plain(name) for name in dict.fromkeys(names)]


def _divergence(rule: dict[str, Any]) -> str:
    parts = []
    if rule.get("nonfinite"):
        parts.append("a training loss that is NaN or infinite")
    if (limit := rule.get("loss_above_initial")) is not None:
        parts.append(f"a training loss more than {limit:g} above its value at the start for {rule['patience']} steps")
    return ", or ".join(parts) or "none"


def versions(study: Study) -> list[tuple[str, str]]:
    """The software that the trials were run with, each with every version that a record names."""
    files = StudyFolder(study.results.folder)
    found: dict[str, set[str]] = {}
    for id in study.trials.loc[study.trials["end"].isin(("complete", "diverged")), "trial"]:
        for name, version in read_json(files.trial(id).result).get("versions", {}).items():
            found.setdefault(str(name), set()).add(str(version))
    return [(name, ", ".join(sorted(found[name]))) for name in sorted(found)]


def components(study: Study) -> Table:
    """Every component that the study is made of, with where it came from and the hash of its source."""
    columns = [
        Column("slot", "slot", numeric=False),
        Column("kind", "kind", numeric=False),
        Column("origin", "origin", numeric=False),
        Column("version", "version"),
        Column("source", "source hash", numeric=False),
    ]
    keys = [column.key for column in columns]
    return Table(columns, [{key: plain(as_text(entry[key])) for key in keys} for entry in study.plan["components"]])


def arms(study: Study) -> Table:
    """Every arm's size and identity."""
    columns = [
        Column("name", "arm", numeric=False),
        Column("parameters", "parameters"),
        Column("non_embedding", "without embeddings"),
        Column("flops", "training FLOPs a step"),
        Column("activations", "activations", unit="MB", optional=True),
        Column("tokens", "tokens a step"),
        Column("steps", "steps", optional=True),
        Column("matched", "chosen by matching", numeric=False, optional=True),
        Column("id", "identity", numeric=False, anchor="arm-"),
    ]
    records = [
        {
            "name": plain(arm["name"]), "parameters": whole(arm["parameters"]["total"]),
            "non_embedding": whole(arm["parameters"].get("non_embedding")), "flops": big(arm["flops"]),
            "tokens": whole(arm["tokens"]), "id": arm["id"], "steps": whole(study.by_id[arm["id"]].steps),
            "activations": fixed(arm["activations"] / 1e6, 1) if arm.get("activations") is not None else "",
            "matched": plain(", ".join(f"{path}={level(value)}" for path, value in (arm.get("matched") or {}).items())),
        }
        for arm in study.plan["arms"]
    ]  # fmt: skip
    return Table(columns, records)


def yaml(study: Study) -> list[tuple[str, str]]:
    """The experiment as it was written, and the file that it extends, each under its title and with paths cut."""
    folder = StudyFolder(study.results.folder)
    files = [("The experiment as written", folder.experiment), ("The file that it extends", folder.extended)]
    return [
        (title, redact(path.read_text(encoding="utf-8", errors="replace")).rstrip())
        for title, path in files
        if path.is_file()
    ]


def extends_unseen(study: Study) -> bool:
    """Whether the experiment extends a file whose text is not kept with the study."""
    folder = StudyFolder(study.results.folder)
    if not folder.experiment.is_file() or folder.extended.is_file():
        return False
    return bool(re.search(r"^extends\s*:", folder.experiment.read_text(encoding="utf-8", errors="replace"), re.M))


def baseline_config(study: Study) -> str:
    """The baseline with every option spelled out."""
    arm = study.planned[study.baseline.id]
    return redact(json.dumps(arm["config"], indent=2, ensure_ascii=False))


def rest_of_plan(study: Study) -> str:
    """The plan without what is shown elsewhere, and without the folder, which is nobody's business."""
    elsewhere = ("arms", "trials", "components", "folder")
    plan = {key: value for key, value in study.plan.items() if key not in elsewhere} | {"command": command(study)}
    plan["arms"] = [{"id": arm["id"], "name": arm["name"], "levels": arm["levels"]} for arm in study.plan["arms"]]
    return redact(json.dumps(plan, indent=1, ensure_ascii=False))
