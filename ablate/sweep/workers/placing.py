"""How many trials this machine runs at once, and on which of its GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ablate.slots import Need, Room
from ablate.sweep.workers.machine import Gpu, Machine

Count = int | Literal["auto"]

SHARE = 0.85
"""What trials may take of the memory that is free; the rest is for what no estimate counts."""
PRELOADED = 350_000_000
"""Bytes of the process that holds what all workers share: Python, torch, Lightning. Measured."""
WORKER = 100_000_000
"""Bytes that a worker takes for itself before a model is there. Measured."""
CONTEXT = 600_000_000
"""Bytes that a process takes of a GPU before a tensor is there: the driver's context, the kernels of libraries."""


@dataclass(frozen=True)
class Seats:
    """What the room of a machine is made of."""

    room: Room
    gpus: tuple[int, ...] = ()
    """How many trials each GPU takes; empty where the user says how many there are in all, or where none is used."""


def seats(need: Need, machine: Machine, parallel: Count = "auto", per_gpu: Count = 1, measured: int = 0) -> Seats:
    """How many trials run at once.

    Args:
        need: what a trial needs.
        machine: what there is.
        parallel: how many in all, which is taken as it is; ``auto``: as many as there is room for.
        per_gpu: how many share a GPU; ``auto``: as many as its memory holds.
        measured: bytes that a trial has been seen to take; the estimate counts where it is more.
    """
    if parallel != "auto":
        return Seats(Room(parallel, "as `parallel` says"))
    if need.device == "cpu":
        return Seats(_on_cores(need, machine, measured))
    if need.device != "cuda" or not machine.gpus:
        return Seats(Room(1, "as there is one device"))
    return _on_gpus(need, machine, per_gpu, measured)


def _on_cores(need: Need, machine: Machine, measured: int) -> Room:
    cores = max(1, machine.cores // need.threads)
    each = max(WORKER + need.memory, measured)
    if machine.memory is not None:
        free = max(0, int(SHARE * machine.memory) - PRELOADED)
        if free // each < cores and cores > 1:
            limit = f"for lack of memory: one may take {_gigabytes(each)}, and {_gigabytes(free)} are free"
            return Room(max(1, free // each), f"{limit}; there are {machine.cores} cores", short=True)
    if need.threads > 1:
        return Room(cores, f"with {need.threads} threads each on {_number(machine.cores, 'core')}")
    return Room(cores, f"one for each of {machine.cores} cores" if cores > 1 else "on one core")


def _on_gpus(need: Need, machine: Machine, per_gpu: Count, measured: int) -> Seats:
    gpus = machine.gpus
    if per_gpu != "auto":
        each = "one" if per_gpu == 1 else f"{per_gpu}"
        where = f"for each of {len(gpus)} GPUs" if len(gpus) > 1 else "on one GPU"
        return Seats(Room(per_gpu * len(gpus), f"{each} {where}"), (per_gpu,) * len(gpus))
    each_takes = CONTEXT + max(need.memory, measured)
    # A trial on a GPU keeps a core busy with launching what the GPU computes.
    most = max(1, machine.cores // need.threads // len(gpus))
    held = tuple(min(most, _holds(gpu, each_takes)) for gpu in gpus)
    if not any(held):
        emptiest = max(gpus, key=lambda gpu: gpu.free or 0)
        limit = (
            f"for lack of memory: one may take {_gigabytes(each_takes)}, and {_gigabytes(emptiest.free or 0)} are free"
        )
        return Seats(Room(1, limit, short=True), tuple(int(gpu is emptiest) for gpu in gpus))
    limit = f"on {_number(len(gpus), 'GPU')}, where one may take {_gigabytes(each_takes)}"
    return Seats(Room(sum(held), limit), held)


def _holds(gpu: Gpu, each: int) -> int:
    return 1 if gpu.free is None else int(SHARE * gpu.free) // each


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
