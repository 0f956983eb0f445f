"""Giving a trained arm away: a folder with its weights and its configuration, and the module from it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from ablate.data.trained_tokenizer import FILE as TOKENIZER
from ablate.errors import InputError
from ablate.model.parameters import root_site
from ablate.records.layout import TrialFolder, read_json
from ablate.records.sealing import replacing, write_json
from ablate.records.shapes import record_fault
from ablate.registry import Registry
from ablate.slots import Interface, Model
from ablate.slots.component import a
from ablate.training import checkpoints

WEIGHTS, BUFFERS, CONFIG = "weights.pt", "buffers.pt", "config.json"
"""Names of the files in an exported folder."""
_MODEL: TypeAdapter[Model] = TypeAdapter(Model)


@dataclass(frozen=True)
class Trained:
    """A trained arm: what it is, and its weights."""

    config: Mapping[str, Any]
    """The resolved configuration with the trial's identity, levels, seed, interface and metrics, as JSON values."""
    weights: Mapping[str, Tensor]
    """The module's ``state_dict``."""
    buffers: Mapping[str, Tensor]
    """The buffers that a ``state_dict`` leaves out."""
    tokenizer: Mapping[str, Any] | None = None
    """What text becomes tokens by, where the task knows."""


def load_model(what: str | Path, *, plugins: Iterable[str | Path] = ()) -> nn.Module:
    """The trained network, on the CPU and in evaluation mode, from an exported folder or a trial's folder.

    No code is run but that of what is installed and of the plugin files that are named.

    Args:
        what: a folder that ``ablate export`` wrote, or one of a study's ``trials``.
        plugins: plugin files that bring the components that the model is made of.

    Raises:
        InputError: there is no trained model (S411 to S414), a component is missing (S415), or its code is no longer
            that which was trained (S416).
    """
    registry = Registry.installed()
    for plugin in plugins:
        registry.add_file(plugin)
    return _built(read_trained(Path(what)), registry)


def export(folder: TrialFolder, out: Path) -> Trained:
    """Write a trained arm to a folder of its own, which is made.

    Raises:
        InputError: the trial has no trained model (S412 to S414), or the folder has something in it (S417).
    """
    trained = read_trained(folder.path)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError.one("S417", f"`{out}` is there already", help="name another folder: --out DIR")
    out.mkdir(parents=True, exist_ok=True)
    with replacing(out / WEIGHTS) as temporary:
        checkpoints.write(dict(trained.weights), temporary)
    if trained.buffers:
        with replacing(out / BUFFERS) as temporary:
            checkpoints.write(dict(trained.buffers), temporary)
    if trained.tokenizer:
        write_json(out / TOKENIZER, trained.tokenizer)
    write_json(out / CONFIG, trained.config)  # last, so that half of an export is none
    return trained


def read_trained(folder: Path) -> Trained:
    """Read an exported folder, or the last checkpoint of a complete trial.

    Raises:
        InputError: there is no such thing, or it cannot be read (S411 to S414).
    """
    if (folder / WEIGHTS).is_file() and (folder / CONFIG).is_file():
        buffers = _tensors(folder / BUFFERS) if (folder / BUFFERS).is_file() else {}
        return Trained(_json(folder / CONFIG), _tensors(folder / WEIGHTS), buffers)
    trial = TrialFolder(folder)
    if not trial.config.is_file():
        help = "give a folder that `ablate export` wrote, or one in a study's `trials`"
        raise InputError.one("S411", f"`{folder}` is no exported model and no trial's folder", help=help)
    return _of_trial(trial)


def _of_trial(folder: TrialFolder) -> Trained:
    config = _json(folder.config)
    record: dict[str, Any] = _json(folder.result) if folder.result.exists() else {"end": _how_it_stands(folder)}
    if folder.result.exists() and (fault := record_fault(record)):
        raise _damaged(folder.result, ValueError(fault))
    if record["end"] != "complete":
        raise InputError.one(
            "S412", f"trial {folder.id} has no trained model: {_ENDS.get(record['end'], record['end'])}",
            help="only a trial that is `complete` has one: `ablate show` tells more of this one",
        )  # fmt: skip
    attempt = folder.attempt(record["attempt"])
    if not attempt.checkpoint.is_file():
        raise InputError.one(
            "S413", f"trial {folder.id} no longer has its last checkpoint",
            help="`ablate gc --checkpoints` or `budget.keep_checkpoints: false` removed it;\n"
            f"to train it again, remove `{folder.path}` and run the experiment",
        )  # fmt: skip
    try:
        state = checkpoints.read(attempt)
        if state["done"] != record["steps"]:
            raise ValueError(f"it is that of step {state['done']}, and the trial has {record['steps']} steps")
        interface, weights = state["interface"], state["network"]
    except Exception as error:  # a torn file raises whatever its bytes happen to mean
        raise _damaged(attempt.checkpoint, error) from error
    kept = ("trial", "arm", "arm_name", "levels", "seed", "config", "components", "data")
    told = {key: config[key] for key in kept}
    told |= {"schema": 1, "interface": interface, "metrics": record["metrics"], "versions": record.get("versions")}
    buffers = {name: value for name, value in state["buffers"].items() if name not in weights}
    return Trained(told, weights, buffers, state.get("tokenizer"))


_ENDS = {"running": "it has not ended yet", "diverged": "it has diverged", "pruned": "it was pruned",
         "failed": "it has failed", "timed_out": "it has timed out"}  # fmt: skip


def _how_it_stands(folder: TrialFolder) -> str:
    attempts = folder.attempts()
    return str(_json(attempts[-1].end).get("end")) if attempts and attempts[-1].end.exists() else "running"


def _built(trained: Trained, registry: Registry) -> nn.Module:
    config = trained.config
    origins = {(each["slot"], each["kind"]): each["origin"] for each in config["components"]}
    try:
        model = _MODEL.validate_python(config["config"]["model"], context={"registry": registry})
        with torch.random.fork_rng(devices=[]):
            network = model.build(root_site(Interface(**config["interface"])))
        network.load_state_dict(trained.weights)
        known = dict(network.named_buffers())
        for name, value in trained.buffers.items():
            known[name].copy_(value)
    except ValidationError as error:
        for each in error.errors():
            if each["type"] == "unknown_component":
                slot, kind = each["ctx"]["slot"], each["ctx"]["kind"]
                raise _missing(slot, kind, origins.get((slot, kind), "a plugin")) from None
        raise _unlike(trained, registry, str(error.errors()[0]["msg"])) from error
    except (RuntimeError, KeyError, TypeError) as error:
        raise _unlike(trained, registry, f"{error}".splitlines()[0]) from error
    return network.eval()


def _missing(slot: str, kind: str, origin: str) -> InputError:
    help = f"install {origin}"
    if origin.endswith(".py"):
        help = f"code is run only if you name it: load_model(..., plugins=[{Path(origin).name!r}])"
    return InputError.one("S415", f"the model has {a(slot)} `{kind}`, which came from {origin}", help=help)


def _unlike(trained: Trained, registry: Registry, why: str) -> InputError:
    """That weights do not fit, and whose code has changed since they were trained."""
    changed = []
    for each in trained.config["components"]:
        try:
            now = registry.entry(each["slot"], each["kind"]).digest
        except ValueError:  # of the task or the training, which are not needed
            continue
        if now != each["source"]:
            changed.append(f"{each['slot']} `{each['kind']}`")
    help = f"the code of {', '.join(changed)} has changed since" if changed else "the files are not of one model"
    return InputError.one("S416", f"the weights do not fit the model: {why}", help=help)


def _json(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # a torn file raises whatever its bytes happen to mean
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError.one("S414", f"`{path}` cannot be read: {why}", help="restore the file, or train the model again")
