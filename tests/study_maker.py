"""Writes synthetic study folders that look exactly as real ones do, without training anything.

The same arguments give the same bytes. The shapes are realistic: curves fall, probes cover every layer and role, an arm
without residuals is stuck at the unigram entropy with vanished gradients in its early layers.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from ablate.records.layout import StudyFolder, TrialFolder
from ablate.records.sealing import dumps, seal
from ablate.records.series import CURVES, PROBES, write_series
from ablate.records.spelling import spelled

UNIGRAM = 3.24
"""Unigram entropy of the made-up training data, in nats."""
INITIAL = 4.9
"""Loss at initialisation, in nats."""
BASE = 1.68
"""The baseline's mean final val/loss, in nats."""
DEPTH, WIDTH, HEADS, VOCABULARY, TOKENS = 3, 64, 4, 95, 1024
RATE = "training.optimizer.lr"
"""What a factor that is called ``lr`` sets, and what is tuned."""

QUICKSTART: dict[str, list[Any]] = {
    "placement": ["pre", "post"],
    "scale": ["on", "off"],
    "residual": ["add", "none"],
    "ratio": [4, 1, 2],
}
"""Factors of the quickstart; each factor's first level is the baseline's."""
FACTORIAL: dict[str, list[Any]] = {
    "residual": ["add", "none"],
    "scale": ["on", "off"],
    "placement": ["pre", "post"],
    "ratio": [4, 1],
}
"""Factors of a full 2 x 2 x 2 x 2 design."""
EFFECTS: dict[tuple[str, Any], float] = {
    ("placement", "post"): 0.11,
    ("scale", "off"): 0.20,
    ("ratio", 1): 0.08,
    ("ratio", 2): 0.03,
}
"""What each level adds to the final val/loss, in nats; ``residual: none`` puts it at the unigram entropy instead."""
HOSTILE = "<script>alert('x')</script> & \"quoted\" \u202e {{ 7*7 }} 世界"
"""A text that breaks careless reports; pass it as a level, a name, a question or an error."""

Cell = tuple[str, int]
"""One trial, as (arm's name, seed)."""
Outcome = Callable[[str, Mapping[str, Any], int], float]
"""Gives the final value of the objective from (arm's name, its levels, seed)."""


def noise(name: str, seed: int, shared: float = 0.02, own: float = 0.01) -> float:
    """A trial's deviation from its arm's mean: one part that all arms of a seed share, one of its own."""
    together = np.random.default_rng([seed, 7]).normal(0, shared)
    apart = np.random.default_rng([seed, _number(name)]).normal(0, own)
    return float(together + apart)


def default_outcome(name: str, levels: Mapping[str, Any], seed: int) -> float:
    """The quickstart's figures: the sum of the levels' effects, or the ceiling where there is no residual."""
    if levels.get("residual") == "none":
        return UNIGRAM + 0.005 + 0.1 * abs(noise(name, seed))
    return BASE + sum(EFFECTS.get((factor, level), 0.0) for factor, level in levels.items()) + noise(name, seed)


def make_study(
    folder: Path,
    *,
    name: str = "quickstart",
    question: str = "Which parts of a small Transformer does it need?",
    design: str = "one_at_a_time",
    factors: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | Sequence[int] = 6,
    steps: int = 100,
    outcomes: Outcome | Mapping[str, float] | None = None,
    metric: str = "val/loss",
    goal: str = "min",
    smallest_effect: float = 0.02,
    diverged: Collection[Cell] | Mapping[Cell, str] = (),
    failed: Collection[Cell] | Mapping[Cell, str] = (),
    waiting: Collection[Cell] = (),
    running: Collection[Cell] = (),
    spiking: Collection[Cell] = (),
    twins: Mapping[str, str] | None = None,
    excluded: Sequence[Mapping[str, Any]] = (),
    git: Mapping[str, Any] | None = None,
    experiment: str | None = None,
    listed: Mapping[str, Mapping[str, Any]] | None = None,
    conditions: Mapping[str, tuple[str, Any]] | None = None,
    holes: Mapping[str, str] | None = None,
    fraction: Mapping[str, Any] | None = None,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    missing: Mapping[Cell, Collection[str]] | None = None,
    plugins: Sequence[Path] = (),
    together: Mapping[str, str] | None = None,
    expect: Sequence[Mapping[str, Any]] = (),
    match: Mapping[str, Any] | None = None,
    command: str | None = None,
    tune: Mapping[str, Any] | None = None,
) -> Path:
    """Write a study's folder and return its path.

    Args:
        folder: where; it is made, and must not hold a study yet.
        name: the experiment's name.
        question: the experiment's question.
        design: any design; ``full`` and ``fractional`` name every level in an arm's name, the others what differs.
        factors: levels by factor, the baseline's first; default :data:`QUICKSTART`, or :data:`FACTORIAL` for ``full``
            and the designs that take two levels.
        seeds: a number of seeds, or the seeds themselves.
        steps: training steps of every trial.
        outcomes: the objective's final value per trial, where NaN and infinity make it diverge at the last step; a
            mapping gives each arm's *mean* by its name (seeds scatter around it by :func:`noise`; arms that it does
            not name follow :func:`default_outcome`).
        metric: the objective; a name other than ``val/loss`` is reported beside ``val/loss``.
        goal: ``min`` or ``max``.
        smallest_effect: the smallest effect that matters.
        diverged: trials that diverged; a mapping gives the rule, ``nonfinite`` (default) or ``loss_above_initial``.
        failed: trials whose two attempts failed; a mapping gives the error of the last one.
        waiting: trials that have not started: no folder.
        running: trials with an attempt that has no end; they run while the lock is held (:func:`hold_lock`), and wait
            otherwise.
        spiking: trials whose training loss spikes once, at three quarters, and recovers; in 300 steps or more the rule
            for spikes sees it.
        twins: arm by arm that it is equal to, to the last bit of its outcomes and curves.
        excluded: the plan's ``excluded`` list.
        git: the plan's ``git``.
        experiment: the YAML; default a short one.
        listed: the arms of the design ``list``: by name, the levels in which each differs from the baseline.
        conditions: by factor, the factor and level that it needs: in other arms it is no part.
        holes: arms that are excluded instead, by name, each with the reason.
        fraction: what the plan says of a fraction; default that of :func:`_fraction`.
        own: what an arm has of its own, by name: ``steps``, ``matched``, ``activations``, ``data``, ``units``,
            ``notes``, and ``task`` and ``model``, whose options are merged into its configuration.
        missing: metrics that a complete trial's record has no value of.
        plugins: the plan's ``plugins``.
        together: combinations that resolve to the same arm as another, by their names: they are no arms of their own.
        expect: the plan's ``expect``, where ``arm`` is the arm's name.
        match: the plan's ``match``.
        command: the plan's ``command``; default that of an experiment in ``experiments/``.
        tune: that each arm's learning rate was tuned: ``rates`` that were tried, the ``best`` one by arm's name, and
            ``seeds`` (default [100]), ``method`` (default grid), ``pruned`` (pairs of arm's name and rate), and
            ``more``, what the plan says beside. Every arm is also run at the baseline's best, and an outcome is given
            the rate among the levels, as ``lr``.

    A trial is named by (arm's name, seed). Arms are called ``baseline``, ``placement=post`` (one_at_a_time) or
    ``residual=none, scale=on, placement=pre, ratio=4`` (full).
    """
    default = FACTORIAL if design in ("full", "fractional", "leave_one_out", "add_one") else QUICKSTART
    axes = {key: list(levels) for key, levels in (factors or default).items()}
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    cells = _parted(_cells(axes, design, listed or {}), conditions or {})
    arms = [_owning(_arm(arm_name, levels), (own or {}).get(arm_name, {})) for arm_name, levels in cells]
    gaps = [arm for arm in arms if arm["name"] in (holes or {})]
    arms = [arm for arm in arms if arm not in gaps]
    excluded = [*excluded, *({"name": arm["name"], "levels": arm["levels"], "why": (holes or {})[arm["name"]]}
                             for arm in gaps)]  # fmt: skip
    arms = _joining(arms, together or {})
    trials = [
        {"id": _hash("trial", arm["id"], seed), "arm": arm["id"], "seed": seed} for seed in numbers for arm in arms
    ]
    plan = {
        "schema": 1, "name": name, "question": question, "hash": _hash(name, axes, numbers, steps), "design": design,
        "baseline": arms[0]["id"],
        "factors": [_factor(key, levels) for key, levels in axes.items()],
        "objective": {"metric": metric, "goal": goal, "smallest_effect": smallest_effect,
                      "secondary": [m for m in ("val/loss", "val/bits_per_char") if m != metric]},
        "units": {metric: "", "val/loss": "nats", "val/bits_per_char": "bits/char"},
        "seeds": numbers,
        "budget": {"steps": steps, "evaluations": 10, "retries": 1, "max_trials": 10000},
        "diverged": {"nonfinite": True, "loss_above_initial": 2.0, "patience": 20},
        "probes": {"every": 50},
        "arms": arms, "trials": trials, "excluded": [dict(cell) for cell in excluded],
        "components": [{"slot": "norm", "kind": "layer", "origin": "ablate-arch 0.1.0", "version": 1,
                        "source": "0123456789ab"}],
        "data": {"hash": _hash("data"), "facts": {"unigram_entropy": UNIGRAM, "ceiling_accuracy": 1.0}},
        "vocabulary": VOCABULARY, "device": "cpu", "precision": "32-true", "threads": 1,
        "git": dict(git) if git is not None else {"commit": "abc1234", "dirty": False},
        "command": command or f"ablate run experiments/{name}.yaml",
        "plugins": [str(path) for path in plugins],
    }  # fmt: skip
    if expect:
        ids = {arm["name"]: arm["id"] for arm in arms}
        plan["expect"] = [dict(each) | ({"arm": ids[each["arm"]]} if each.get("arm") else {}) for each in expect]
    if match is not None:
        plan["match"] = dict(match)
    if tune is not None:
        plan["tuning"] = _tuned(arms, numbers, **tune)
    tried = plan.get("tuning", {"runs": [], "at_baseline": []})
    if design == "fractional":
        plan["fraction"] = dict(fraction) if fraction is not None else _fraction(list(axes))
    study = StudyFolder(Path(folder))
    study.trials_folder.mkdir(parents=True)
    study.experiment.write_text(experiment or f"schema: 1\nname: {name}\n", encoding="utf-8")
    study.plan.write_text(dumps(plan), encoding="utf-8")
    by_id = {arm["id"]: arm for arm in arms}
    for index, trial in enumerate([*trials, *tried["runs"], *tried["at_baseline"]]):
        arm = by_id[trial["arm"]]
        cell = (arm["name"], trial["seed"])
        if cell in waiting:
            continue
        place = study.trial(trial["id"])
        _start(place, plan, arm, trial)
        if cell in failed:
            text = failed[cell] if isinstance(failed, Mapping) else "RuntimeError: shapes (64, 3) and (4, 64) differ"
            _fail(place, 1, "OSError: the first attempt's own error")
            _fail(place, 2, text)
            continue
        if cell in running:
            _attempt(place, 1, "step 10\n")
            continue
        # A twin borrows everything of the arm that it equals, so that not one bit differs.
        twin = (twins or {}).get(arm["name"])
        like = next((other for other in arms if other["name"] == twin), arm)
        rule = (diverged[cell] if isinstance(diverged, Mapping) else "nonfinite") if cell in diverged else None
        rate = (trial.get("tuned") or arm.get("tuned") or {}).get(RATE)
        at = like if rate is None else like | {"levels": like["levels"] | {"lr": rate}}
        gone = "number" in trial and (arm["name"], rate) in (tune or {}).get("pruned", ())
        _finish(place, plan, arm, trial, like=like, index=index, final=_final(outcomes, at, trial["seed"]), rule=rule,
                spike=cell in spiking, missing=(missing or {}).get(cell, ()), pruned=gone)  # fmt: skip
    return study.path


@contextlib.contextmanager
def hold_lock(folder: Path) -> Iterator[None]:
    """Hold a study's lock as its driver does, so that trials with an open attempt count as running."""
    with StudyFolder(folder).lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


# --- the plan's parts -----------------------------------------------------------------------------------------------


def _hash(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _number(text: str) -> int:
    return int(_hash(text)[:8], 16)


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _factor(name: str, levels: list[Any]) -> dict[str, Any]:
    sets = {"sets": [[{"path": RATE, "at": "", "gives": [RATE]}] for _ in levels]} if name == "lr" else {}
    return {"name": name, "levels": levels, "baseline": levels[0]} | sets


def _tuned(
    arms: list[dict[str, Any]], numbers: list[int], *, rates: Sequence[float], best: Mapping[str, float],
    seeds: Sequence[int] = (100,), method: str = "grid", pruned: Collection[tuple[str, float]] = (),
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What a plan says of tuning once it is through; gives the arms their best values."""
    common = best[arms[0]["name"]]
    runs, again = [], []
    for arm in arms:
        arm["tuning"], arm["tuned"] = {"identity": _hash("tuning", arm["id"]), "params": [RATE]}, {}
        arm["tuned"][RATE] = arm["config"]["training"]["optimizer"]["lr"] = best[arm["name"]]
        for number, rate in enumerate(rates):
            runs += [{"id": _hash("run", arm["id"], rate, seed), "arm": arm["id"], "seed": seed, "number": number,
                      "tuned": {RATE: rate}} for seed in seeds]  # fmt: skip
        if best[arm["name"]] != common:
            again += [{"id": _hash("again", arm["id"], seed), "arm": arm["id"], "seed": seed, "tuned": {RATE: common}}
                      for seed in numbers]  # fmt: skip
    halving = {"reduction": 2, "rungs": 1} if pruned else None
    ends = [min(rates), max(rates)]
    return {
        "method": method, "params": {RATE: {"log": ends, "linear": None, "values": None, "n": len(rates)}},
        "points": {RATE: list(rates)}, "beyond": {}, "seeds": list(seeds), "combinations": len(rates), "batch": 8,
        "trials": len(rates) * len(seeds), "halving": halving, "widen": False, "widened": 0, "runs": runs,
        "at_baseline": again, **(more or {}),
    }  # fmt: skip


def _cells(
    axes: Mapping[str, list[Any]], design: str, listed: Mapping[str, Mapping[str, Any]]
) -> list[tuple[str, dict[str, Any]]]:
    base = {key: levels[0] for key, levels in axes.items()}
    if design in ("full", "fractional"):
        cells = [dict(zip(axes, combination, strict=True)) for combination in itertools.product(*axes.values())]
        if design == "fractional":
            # The last factor is the product of all others; the baseline is in the fraction.
            cells = [cell for cell in cells if sum(cell[key] != base[key] for key in axes) % 2 == 0]
        return [("baseline" if cell is cells[0] else ", ".join(f"{key}={spelled(level)}" for key, level in
                cell.items()), cell) for cell in cells]  # fmt: skip
    if design == "list":
        changes = [dict(levels) for levels in listed.values()]
        return [("baseline", base), *zip(listed, (base | levels for levels in changes), strict=True)]
    changes = [{key: level} for key in axes for level in axes[key][1:]]
    if design == "pairs":
        changes += [one | other for one, other in itertools.combinations(changes, 2) if one.keys() != other.keys()]
    elif design in ("leave_one_out", "add_one"):
        changes.append({key: levels[1] for key, levels in axes.items()})
    named = [(", ".join(f"{key}={spelled(level)}" for key, level in change.items()), change) for change in changes]
    return [("baseline", base), *((name, base | change) for name, change in named)]


def _parted(
    cells: Sequence[tuple[str, dict[str, Any]]], conditions: Mapping[str, tuple[str, Any]]
) -> list[tuple[str, dict[str, Any]]]:
    """The cells without the factors whose condition does not hold; those that fall together are one."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name, levels in cells:
        kept = {
            key: level for key, level in levels.items()
            if key not in conditions or levels[conditions[key][0]] == conditions[key][1]
        }  # fmt: skip
        parts = [part for part in name.split(", ") if name == "baseline" or part.split("=")[0] in kept]
        found.setdefault(json.dumps(kept), (", ".join(parts) if conditions else name, kept))
    return list(found.values())


def _fraction(factors: list[str]) -> dict[str, Any]:
    """What a plan says of the half fraction whose last factor is the product of all others."""
    pairs = list(itertools.combinations(factors, 2))
    word = len(factors)
    named = [[":".join(pair), ":".join(rest)] for pair in pairs for rest in [[f for f in factors if f not in pair]]]
    mixed = named if word == 3 else [group for group in named if group[0].split(":")[0] == factors[0]]
    return {
        "resolution": word, "runs": 2 ** (word - 1), "full": 2**word, "aliases": mixed if word in (3, 4) else [],
        "generators": [f"{factors[-1]}={':'.join(factors[:-1])}"],
    }  # fmt: skip


def _joining(arms: list[dict[str, Any]], together: Mapping[str, str]) -> list[dict[str, Any]]:
    """The arms without those that fall together with another, which has their levels beside its own."""
    by_name = {arm["name"]: arm for arm in arms}
    also: dict[str, list[str]] = {}
    for name, other in together.items():
        also.setdefault(other, []).append(name)
    return [
        arm | ({"aliases": also[arm["name"]], "also": [by_name[name]["levels"] for name in also[arm["name"]]]}
               if arm["name"] in also else {})
        for arm in arms if arm["name"] not in together
    ]  # fmt: skip


def _owning(arm: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    parts = ("task", "model")
    rest = {key: value for key, value in own.items() if key not in parts}
    config = arm["config"] | {part: arm["config"][part] | own.get(part, {}) for part in parts}
    return arm | rest | {"config": config}


def _arm(name: str, levels: dict[str, Any]) -> dict[str, Any]:
    ratio = levels.get("ratio", 4)
    ratio = ratio if isinstance(ratio, int | float) else 4
    model: dict[str, Any] = {
        "kind": "decoder", "width": WIDTH, "depth": DEPTH, "norm": {"kind": "layer", "eps": 1e-5},
        "placement": {"kind": "pre"}, "residual": {"kind": "add"}, "position": {"kind": "learned"},
        "mixer": {"kind": "attention", "heads": HEADS, "scale": {"kind": "inverse_sqrt"}},
        "feed_forward": {"kind": "mlp", "ratio": ratio, "activation": "gelu"}, "output": {"kind": "untied"},
    }  # fmt: skip
    for factor, level in levels.items():
        if factor in ("placement", "residual"):
            model[factor] = {"kind": level}
        elif factor == "scale":
            model["mixer"]["scale"] = {"kind": "inverse_sqrt" if level == "on" else "none"}
        elif factor not in ("ratio", "stream", "lr", "task"):
            model[factor] = level
    block = DEPTH * int(4 * WIDTH**2 + 2 * ratio * WIDTH**2)
    task: dict[str, Any] = {"kind": "text", "source": "python-docs", "tokenizer": "char", "context": 64}
    task = {"kind": levels["task"]} if "task" in levels else task
    adamw = {"kind": "adamw", "lr": levels.get("lr", 1e-2), "betas": [0.9, 0.98], "weight_decay": 0.01}
    training = {
        "optimizer": adamw, "batch": 16,
        "schedule": {"kind": "cosine", "warmup": 0.1, "final": 0.1}, "clip": 1.0, "initializer": {"kind": "fan_in"},
    }  # fmt: skip
    if "stream" in levels:
        training["stream"] = levels["stream"]
    return {
        "id": _hash("arm", name, levels), "name": name, "levels": levels, "tokens": TOKENS,
        "config": {"model": model, "task": task, "training": training},
        "parameters": {"total": block + 2 * VOCABULARY * WIDTH + 64 * WIDTH, "non_embedding": block},
        "flops": 6.0 * block * TOKENS,
    }  # fmt: skip


def _final(outcomes: Outcome | Mapping[str, float] | None, arm: Mapping[str, Any], seed: int) -> float:
    if callable(outcomes):
        return outcomes(arm["name"], arm["levels"], seed)
    if outcomes and arm["name"] in outcomes:
        return outcomes[arm["name"]] + noise(arm["name"], seed)
    return default_outcome(arm["name"], arm["levels"], seed)


# --- a trial's files ------------------------------------------------------------------------------------------------


def _start(place: TrialFolder, plan: Mapping[str, Any], arm: Mapping[str, Any], trial: Mapping[str, Any]) -> None:
    place.path.mkdir()
    config = {
        "trial": trial["id"], "arm": arm["id"], "arm_name": arm["name"], "levels": arm["levels"], "seed": trial["seed"],
        "config": arm["config"] | {"steps": arm.get("steps", plan["budget"]["steps"]), "diverged": plan["diverged"],
                                   "precision": "32-true", "threads": 1},
        "observe": {"evaluations": 10, "probes": plan["probes"]}, "components": plan["components"],
        "data": plan["data"], "folder": "experiments",
    }  # fmt: skip
    place.config.write_text(dumps(config), encoding="utf-8")


def _attempt(place: TrialFolder, number: int, log: str) -> None:
    attempt = place.attempt(number)
    attempt.path.mkdir()
    attempt.log.write_text(log, encoding="utf-8")


def _fail(place: TrialFolder, number: int, error: str) -> None:
    _attempt(place, number, f'step 3\nTraceback (most recent call last):\n  File "model.py", line 3\n{error}\n')
    seal(place.attempt(number).end, {"end": "failed", "error": error, "at": "2026-11-30T06:00:03Z"})


def _finish(
    place: TrialFolder,
    plan: Mapping[str, Any],
    arm: Mapping[str, Any],
    trial: Mapping[str, Any],
    *,
    like: Mapping[str, Any],
    index: int,
    final: float,
    rule: str | None,
    spike: bool,
    missing: Collection[str],
    pruned: bool = False,
) -> None:
    steps, seed = int(arm.get("steps", plan["budget"]["steps"])), int(trial["seed"])
    metric = plan["objective"]["metric"]
    loss = final if metric == "val/loss" else BASE + noise(like["name"], seed)
    if rule is None and not math.isfinite(final):
        rule, done = "nonfinite", steps
    else:
        done = steps if rule is None else max(2, math.ceil(steps * 0.4))
    _attempt(place, 1, f"step 0 loss {INITIAL}\nstep {done} done\n")
    attempt = place.attempt(1)
    rng = np.random.default_rng([seed, _number(like["name"]), 11])
    curves = _curves(rng, plan, steps, metric=metric, final=final, loss=loss, done=done, rule=rule, spike=spike)
    write_series(attempt.curves, CURVES, curves)
    write_series(attempt.probes, PROBES, _probes(rng, like, steps, done))
    metrics: dict[str, float | None] = {metric: final, "val/loss": loss, "val/bits_per_char": loss / math.log(2)}
    metrics |= dict.fromkeys(missing)
    start = datetime(2026, 11, 30, 6, tzinfo=UTC) + timedelta(seconds=11 * index)
    seconds = 10.0 + 0.1 * (index % 7)
    seal(
        place.result,
        {
            "schema": 1, "trial": trial["id"], "arm": arm["id"], "arm_name": arm["name"], "levels": arm["levels"],
            "seed": seed, "end": "pruned" if pruned else "complete" if rule is None else "diverged",
            "reason": None if rule is None else {"rule": rule, "step": done - 1},
            **({} if rule is None else {"first_bad": _first_bad(rule, done - 1)}),
            "attempt": 1, "steps": done, "tokens": done * TOKENS,
            "metrics": metrics if rule is None else dict.fromkeys(metrics),
            "facts": {"unigram_entropy": UNIGRAM, "initial_loss": INITIAL, "clip_rate": 0.31},
            "started": _stamp(start), "sealed": _stamp(start + timedelta(seconds=seconds)),
            "seconds": seconds, "tokens_per_second": done * TOKENS / seconds, "peak_memory": 300_000_000,
            "device": "cpu", "precision": "32-true", "threads": 1,
            "versions": {"ablate-arch": "0.1.0", "python": "3.11.7", "torch": "2.13.0"},
            "components": plan["components"], "data": plan["data"],
            "files": {"curves": "a001/curves.arrow", "probes": "a001/probes.arrow"},
        },
    )  # fmt: skip


def _first_bad(rule: str, step: int) -> dict[str, Any] | None:
    """What a replay found: an overflow in the last block; nothing where the loss was over its limit."""
    last = f"block.{DEPTH - 1}.feed_forward"
    return {"step": step, "module": last, "what": "output"} if rule == "nonfinite" else None


def _curves(
    rng: np.random.Generator,
    plan: Mapping[str, Any],
    steps: int,
    *,
    metric: str,
    final: float,
    loss: float,
    done: int,
    rule: str | None,
    spike: bool,
) -> Iterator[tuple[object, ...]]:
    at = np.arange(done)
    floor = loss if math.isfinite(loss) else BASE
    falling = floor + (INITIAL - floor) * np.exp(-8 * at / steps)
    train = falling + rng.normal(0, 0.02, done)
    norms = 0.8 + 2 * np.exp(-10 * at / steps) + np.abs(rng.normal(0, 0.1, done))
    if spike:
        train[done * 3 // 4 : done * 3 // 4 + 2] += 3.0
        norms[done * 3 // 4 : done * 3 // 4 + 2] += 40.0
    if rule == "nonfinite":
        train[-1] = norms[-1] = np.nan
    elif rule is not None:
        bad = min(20, done - 1)
        train[-bad:] = INITIAL + 2.0 + np.linspace(0.1, 4.0, bad)
    warm = np.minimum(1.0, (at + 1) / max(1, steps // 10))
    rate = 1e-2 * warm * (0.55 + 0.45 * np.cos(np.pi * at / steps))
    for step in range(done):
        yield step, "train/loss", float(train[step])
        yield step, "grad_norm/global", float(norms[step])
        yield step, "lr", float(rate[step])
    start = 0.0 if metric != "val/loss" and plan["objective"]["goal"] == "max" else INITIAL
    for share in range(1, 11):
        step = round(steps * share / 10)
        if step > done or (rule is not None and step == done < steps):
            continue
        left = 0.0 if share == 10 else math.exp(-8 * step / steps)
        now = floor + (INITIAL - floor) * left if left else loss
        yield step, "val/loss", now
        yield step, "val/bits_per_char", now / math.log(2)
        if metric != "val/loss":
            yield step, metric, (final + (start - final) * left if left and math.isfinite(final) else final)


def _probes(rng: np.random.Generator, arm: Mapping[str, Any], steps: int, done: int) -> Iterator[tuple[object, ...]]:
    model = arm["config"]["model"]
    none, unscaled = model["residual"]["kind"] == "none", model["mixer"]["scale"]["kind"] == "none"
    post = model["placement"]["kind"] == "post"
    # Without residuals each block below the last one loses three decades of gradient; post-norm loses a little.
    decay = 1e-3 if none else 0.6 if post else 0.95
    probed = sorted({0, 1, 2, 5, 10, 20, 50, *range(0, steps, 50), steps - 1} & set(range(done)))

    def shake(value: float) -> float:
        return float(value * np.exp(rng.normal(0, 0.05)))

    for step in probed:
        fade = 0.2 + 0.8 * math.exp(-4 * step / steps)
        for layer, role, parameter in _parameters():
            depth = DEPTH - 1 - layer if layer is not None else 0 if role in ("head", "norm") else DEPTH
            yield step, "grad_norm", layer, role, parameter, shake(fade * decay**depth * (0.1 if role == "norm" else 1))
            yield step, "update_ratio", layer, role, parameter, shake(1e-3 * fade)
        for layer in range(DEPTH + 1):
            yield step, "stream_grad", layer, None, None, shake(0.01 * fade * decay ** (DEPTH - layer))
            yield step, "stream_rms", layer, None, None, shake(1.0 if post else 1.0 + 0.6 * layer)
        for layer in range(DEPTH):
            even = 0.35 if unscaled else 0.8
            yield step, "max_logit", layer, None, None, shake((40.0 if unscaled else 6.0) * (2 - fade))
            for head in range(HEADS):
                share = min(1.0, shake(even * (0.6 + 0.4 * fade)))
                yield step, "entropy", layer, None, f"head.{head}", share * math.log(32)
                yield step, "entropy_normalised", layer, None, f"head.{head}", share
            yield step, "saturation", layer, None, None, min(1.0, shake(0.7 if unscaled else 0.2))
            yield step, "zero_fraction", layer, None, None, min(1.0, shake(0.5))
            yield step, "dead_units", layer, None, None, min(1.0, shake(0.02))


def _parameters() -> Iterator[tuple[int | None, str, str]]:
    yield None, "embed", "embed.weight"
    yield None, "position", "position.weight"
    for layer in range(DEPTH):
        for role in ("q", "k", "v", "o"):
            yield layer, role, f"block.{layer}.mixer.{role}.weight"
        for role in ("w1", "w2"):
            yield layer, role, f"block.{layer}.feed_forward.{role}.weight"
        for part in ("mixer", "feed_forward"):
            yield layer, "norm", f"block.{layer}.{part}.norm.before.weight"
    yield None, "norm", "norm.weight"
    yield None, "head", "head.weight"
