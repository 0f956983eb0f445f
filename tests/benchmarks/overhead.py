"""What the engine costs: ``ablate run`` against other ways to train the same trials, side by side in one run.

Run as ``make bench`` (or ``python -m tests.benchmarks.overhead --rounds 3 --steps 300``). All ways train the same 24
trials to the same numbers on the same cores: a loop written by hand and bare Lightning in plain processes with the
trials packed perfectly, ``ablate run`` with all default probes on and its storage, Ray Tune, and Hydra's joblib
launcher, each as a user would start it and with its own start-up. Printed are the medians of several rounds, taken in
turn, and where the engine's time goes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.benchmarks.ways import ablate_run, bare_lightning, by_hand, hydra_joblib, ray_tune
from tests.benchmarks.ways.trials import Measured, cores

EQUAL = 1e-5
"""Final losses that differ by more are other work, and their times are not compared."""
GOAL = 1.08

HAND, LIGHTNING, ABLATE, BARE = "by hand", "bare Lightning", "ablate run", "ablate run, no probes"
RAY, HYDRA = "Ray Tune", "Hydra, joblib"


def ways(folder: Path, steps: int, cores: int) -> dict[str, Callable[[], Measured] | str]:
    """What measures each way, or why it cannot be measured."""
    return {
        HAND: lambda: by_hand.measure(steps, cores),
        LIGHTNING: lambda: bare_lightning.measure(steps, cores),
        ABLATE: lambda: ablate_run.measure(folder / "x", steps, cores),
        BARE: lambda: ablate_run.measure(folder / "x", steps, cores, ablate_run.WITHOUT_PROBES),
        RAY: ray_tune.LACKING or (lambda: ray_tune.measure(steps, cores)),
        HYDRA: hydra_joblib.LACKING or (lambda: hydra_joblib.measure(steps, cores)),
    }


def check_equal(way: str, found: Mapping[str, float], expected: Mapping[str, float]) -> None:
    """See that a way has trained the same trials to the same numbers.

    Raises:
        RuntimeError: it has not, so that its time says nothing.
    """
    if found.keys() != expected.keys():
        raise RuntimeError(f"{way}: other trials than {HAND}")
    if wrong := [trial for trial in expected if not abs(found[trial] - expected[trial]) <= EQUAL]:
        trial = wrong[0]
        raise RuntimeError(f"{way}: {trial} came to {found[trial]}, and to {expected[trial]} {HAND}")


def ratios_to_hand(told: Mapping[str, list[Measured]]) -> list[str]:
    """One line a way: its time, and the ratio to the loop by hand in the same round."""
    lines = []
    for way, rounds in told.items():
        ratios = sorted(each.seconds / hand.seconds for each, hand in zip(rounds, told[HAND], strict=True))
        spread = f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
        median = statistics.median(each.seconds for each in rounds)
        start = f", {_part(rounds, 'start'):.1f} s of it its start-up" if "start" in rounds[0].parts else ""
        lines.append(f"{way:22} {median:7.1f} s   ratio {spread}{start}")
    return lines


def where_it_goes(told: Mapping[str, list[Measured]]) -> list[tuple[str, float]]:
    """What makes ``ablate run`` longer than the loop by hand, in seconds of the run; the sum is the difference."""
    hand_start, hand_steps = _part(told[HAND], "import"), _part(told[HAND], "train")
    hand_idle = _seconds(told[HAND]) - hand_start - hand_steps
    steps, bare = _part(told[ABLATE], "steps"), _part(told[BARE], "steps")
    return [
        ("start-up (imports, plan, first worker)", _part(told[ABLATE], "start") - hand_start),
        ("steps, Lightning around them included", bare - hand_steps),
        ("probes", steps - bare),
        ("around the steps: data, model, record", _part(told[ABLATE], "around")),
        ("idle: between trials, and the last one alone", _part(told[ABLATE], "idle") - hand_idle),
        ("after the last trial", _part(told[ABLATE], "end")),
    ]


def what_would_bring(goal: float, told: Mapping[str, list[Measured]], parts: list[tuple[str, float]]) -> str:
    """What would have to go for the ratio to be the goal, the largest first."""
    over = _seconds(told[ABLATE]) - goal * _seconds(told[HAND])
    if over <= 0:
        return f"the ratio is within {goal}"
    left, names = over, []
    for what, seconds in sorted(parts, key=lambda part: -part[1]):
        if left > 0 and seconds > 0:
            names.append(f"{min(left, seconds):.1f} s of {what}")
            left -= seconds
    return f"for a ratio of {goal}, {over:.1f} s would have to go: {'; '.join(names)}"


def _part(rounds: list[Measured], part: str) -> float:
    return statistics.median(each.parts[part] for each in rounds)


def _seconds(rounds: list[Measured]) -> float:
    return statistics.median(each.seconds for each in rounds)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--steps", type=int, default=300, help="a multiple of 10")
    options.add_argument("--only", nargs="*", help="measure these ways alone, beside the one by hand")
    asked = options.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        known = ways(Path(folder), asked.steps, cores())
        chosen = {way: each for way, each in known.items() if not asked.only or way in (HAND, *asked.only)}
        told: dict[str, list[Measured]] = {way: [] for way, each in chosen.items() if not isinstance(each, str)}
        for _ in range(asked.rounds):
            for way, measured in told.items():
                measure = chosen[way]
                assert not isinstance(measure, str)
                found = measure()
                measured.append(found)
                check_equal(way, found.losses, told[HAND][-1].losses)
    print(f"24 trials of {asked.steps} steps on {cores()} cores, {asked.rounds} rounds; all final losses are equal")
    print("\n".join(ratios_to_hand(told)))
    for way, each in chosen.items():
        if isinstance(each, str):
            print(f"{way:22} {each}")
    for other in (RAY, HYDRA):
        if other in told and ABLATE in told:
            faster = [a.seconds / b.seconds for a, b in zip(told[other], told[ABLATE], strict=True)]
            print(f"ablate run is {statistics.median(faster):.2f} x as fast as {other}")
    if {HAND, ABLATE, BARE} <= told.keys():
        parts = where_it_goes(told)
        print("what makes ablate run longer than the loop by hand, in seconds of the whole run:")
        for what, seconds in parts:
            print(f"  {what:46} {seconds:+6.1f}")
        print(
            f"  checkpoints written: {_part(told[ABLATE], 'checkpoints'):.0f} (the first is due after 30 s of a trial)"
        )
        print(what_would_bring(GOAL, told, parts))


if __name__ == "__main__":
    main()
