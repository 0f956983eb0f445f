"""A trainer that computes nothing of interest, quickly, and misbehaves as its trial's configuration says."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from ablate.errors import StaleError
from ablate.records.layout import AttemptFolder, TrialFolder, read_json
from ablate.records.locks import now
from ablate.records.sealing import replacing, seal, write_json
from ablate.records.series import CURVES, write_series
from ablate.records.steps import note_step
from ablate.registry import Registry

MODULUS = 1_000_003
_LEAKED: list[bytes] = []


class _Silent(Exception):
    """Says nothing of what is wrong."""

    def __str__(self) -> str:
        raise ValueError("no words")


def train(
    folder: TrialFolder,
    attempt: int,
    registry: Registry,
    *,
    device: str,
    on_progress: Callable[[int, int, float, float, int | None], None],
    should_stop: Callable[[], bool],
) -> str:
    """Walk through a chain of numbers, one a step, so that a wrong resumption shows in the result."""
    config = read_json(folder.config)
    timeout = config["observe"].get("trial_timeout")
    does: dict[str, Any] = config["config"]["model"]
    steps = config["config"]["steps"]
    costs = does.get("costs", 0.0)  # seconds of training that a step is said to have taken
    if "needs" in does:
        registry.get("placement", does["needs"])
    step, state = (None if does.get("forgets") else _resumed(folder, attempt)) or (0, config["seed"] + 1)
    first = step
    _note(folder, attempt, step)
    print(f"starting at step {step}")
    os.write(1, b"and this past Python\n")
    _LEAKED.append(b"x" * does.get("leaks", 0))
    if "shows" in does:
        print(f"{does['shows']}={os.environ.get(does['shows'])}, device={device}")
    observe = config["observe"]
    while step < steps:
        if step == observe.get("pause_at"):
            metrics = _metrics(does, config["seed"], step)
            told = {"step": step, "value": metrics[observe["objective"]], "metrics": metrics}
            write_json(folder.attempt(attempt).rung, told)
            _write_checkpoint(folder, attempt, step, state, costs)
            return "paused"
        time.sleep(does.get("seconds", 0.0) if attempt in does.get("slow", [attempt]) else 0.0)
        state = (state * 48_271 + step) % MODULUS
        step += 1
        split = [does["micro_batch"]] if "micro_batch" in does and step > 2 else []
        on_progress(step, steps, state / MODULUS, 1000.0, does.get("takes"), *split)
        if step % does.get("checkpoint", 5) == 0 and step < steps:
            _write_checkpoint(folder, attempt, step, state, costs)
        if step - first == does.get("after", 3) and attempt in does.get("attempts", [attempt]):
            _misbehave(does, folder.attempt(attempt))
        if does.get("deaf"):
            continue
        if should_stop():
            _write_checkpoint(folder, attempt, step, state, costs)
            return "interrupted"
        if timeout is not None and step < steps and step * costs >= timeout:
            _write_checkpoint(folder, attempt, step, state, costs)
            if not does.get("forgets_its_end"):
                seal(folder.attempt(attempt).end, {"end": "timed_out", "error": f"at step {step}", "at": now()})
            return "timed_out"
    diverged = does.get("diverges", False)
    if not diverged and does.get("keeps"):
        _write_checkpoint(folder, attempt, step, state, costs)
    record = {key: config[key] for key in ("trial", "arm", "arm_name", "levels", "seed", "components")}
    record |= {
        "schema": 1,
        "end": "diverged" if diverged else "complete",
        "reason": {"rule": "nonfinite", "step": 2} if diverged else None,
        "attempt": attempt,
        "steps": steps,
        "seconds": steps * costs,
        "metrics": {"val/loss": None if diverged else state / MODULUS},
        "sealed": now(),
        "lineage": config.get("lineage"),
    }
    if "lr" in does:
        record |= {
            "metrics": _metrics(does, config["seed"], steps),
            "rungs": [[rung, _metrics(does, config["seed"], rung)] for rung in observe.get("rungs", ())],
            "tuned": config["tuned"],
        }
    record |= _began(config, attempt, first, costs)
    _write_curves(folder.attempt(attempt), does, config["seed"])
    seal(folder.result, record)
    return str(record["end"])


def _write_curves(attempt: AttemptFolder, does: dict[str, Any], seed: int) -> None:
    """Write what the evaluations have found, if there were any."""
    losses = [(step, "val/loss", _bowl(does, seed, step)) for step in does.get("evaluates", ())]
    if losses:
        write_series(attempt.curves, CURVES, losses)


def _began(config: dict[str, Any], attempt: int, first: int, costs: float) -> dict[str, Any]:
    """That the trial went on from one of fewer steps, if it did."""
    if not first or "continues" not in config or attempt > 1:
        return {}
    return {"continued_from": {"trial": config["continues"], "steps": first, "seconds": first * costs}}


def _metrics(does: dict[str, Any], seed: int, step: int) -> dict[str, float]:
    """The loss, and one that is smallest at another learning rate."""
    return {"val/loss": _bowl(does, seed, step), "val/other": _bowl({**does, "best": 1e-4}, seed, step)}


def _bowl(does: dict[str, Any], seed: int, step: int) -> float:
    """A loss that is smallest at the arm's best learning rate, falls with the steps and differs a little by seed."""
    return float((math.log10(does["lr"]) - math.log10(does["best"])) ** 2 + 1 / step + seed / 1e6)


def final(seed: int, steps: int) -> float:
    """What an undisturbed trial of this seed ends with."""
    state = seed + 1
    for step in range(steps):
        state = (state * 48_271 + step) % MODULUS
    return state / MODULUS


def _misbehave(does: dict[str, Any], attempt: AttemptFolder) -> None:
    if "is_stale" in does:
        raise StaleError.one("S305", does["is_stale"], help="bring it back")
    if "file_limit" in does:  # from now on the system refuses what this process writes past it
        resource.setrlimit(resource.RLIMIT_FSIZE, (does["file_limit"], resource.RLIM_INFINITY))
    if "moves" in does:
        os.chdir(does["moves"])
    if "raises" in does:
        raise RuntimeError(does["raises"])
    if "raises_bytes" in does:  # as the name of a file that is no text
        raise RuntimeError(os.fsdecode(bytes.fromhex(does["raises_bytes"])))
    if "cannot_tell" in does:
        raise _Silent
    if "runs_out" in does:
        raise ValueError(does["runs_out"]) from MemoryError()
    if "hangs" in does:
        threading.Event().wait()
    if "exits" in does:
        raise SystemExit(does["exits"])
    if "vanishes" in does:
        os._exit(does["vanishes"])
    if "seals" in does:
        seal(attempt.end, {"end": does["seals"], "error": "said on disk", "at": now()})
    if "dies" in does:
        os.kill(os.getpid(), signal.Signals[does["dies"]])
        threading.Event().wait()


def _resumed(folder: TrialFolder, attempt: int) -> tuple[int, int] | None:
    for earlier in reversed(folder.attempts()):
        if earlier.number < attempt and earlier.checkpoint.exists():
            step, state = json.loads(earlier.checkpoint.read_text())
            return step, state
    if continues := read_json(folder.config).get("continues"):
        for earlier in TrialFolder(folder.path.with_name(continues)).attempts():
            if earlier.checkpoint.exists() and (text := earlier.checkpoint.read_text()):
                step, state = json.loads(text)
                return step, state
    return None


def _write_checkpoint(folder: TrialFolder, attempt: int, step: int, state: int, costs: float) -> None:
    with replacing(folder.attempt(attempt).checkpoint) as temporary:
        temporary.write_text(json.dumps([step, state]))
    note_step(folder.attempt(attempt), step, step * costs)


def _note(folder: TrialFolder, attempt: int, step: int) -> None:
    """Remember which process began this attempt, and where."""
    with (folder.path / "ran.txt").open("a") as file:
        file.write(f"{attempt} {step} {os.getpid()} {os.getppid()}\n")
