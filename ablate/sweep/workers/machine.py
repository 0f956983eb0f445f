"""What this machine has for trials: the cores and the memory that this process may use, and its GPUs."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Gpu:
    """A GPU that this process may use."""

    name: str
    """What CUDA_VISIBLE_DEVICES is to be for it alone."""
    free: int | None = None
    """Bytes of its memory that nobody has taken; None where nobody has asked."""


@dataclass(frozen=True)
class Machine:
    """What there is for trials on a device."""

    device: str
    cores: int
    memory: int | None
    """Bytes that processes can still take; None where the system does not tell, as without ``/proc``."""
    gpus: tuple[Gpu, ...] = ()


def this_machine(device: str = "cpu", *, weigh: bool = False, root: Path = Path("/")) -> Machine:
    """Look at what there is for trials on a device.

    Args:
        device: GPUs are looked for where it is ``cuda``; torch is imported for it.
        weigh: ask each GPU how much of its memory is free.
        root: where ``proc`` and ``sys`` lie.
    """
    return Machine(device, _cores(root), _memory(root), _gpus(weigh) if device == "cuda" else ())


def resident() -> int | None:
    """Bytes of memory that this process holds now; None where the system does not tell."""
    with contextlib.suppress(OSError):
        if found := re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text()):
            return int(found[1]) * 1024
    return None


def _cores(root: Path) -> int:
    """Cores that this process may be scheduled on, or fewer where a quota grants less of their time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for group in _groups(root, "cpu"):
        granted = _words(group / "cpu.max") or _words(group / "cpu.cfs_quota_us") + _words(group / "cpu.cfs_period_us")
        if len(granted) == 2 and granted[0] not in ("max", "-1"):
            cores = min(cores, int(granted[0]) // int(granted[1]))
    return max(1, cores)


def _memory(root: Path) -> int | None:
    """Bytes that new processes can take, within the limits of the control groups that this process is in."""
    found = _figure(root / "proc/meminfo", "MemAvailable:")
    if found is None:
        return None
    free = 1024 * found
    for group in _groups(root, "memory"):
        for limit, used, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            granted, taken = _words(group / limit), _words(group / used)
            if granted and taken and granted[0] != "max":
                # What files have left in memory is given up when a process needs it.
                given_up = _figure(group / "memory.stat", cache) or 0
                free = min(free, int(granted[0]) - int(taken[0]) + given_up)
    return max(0, free)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The control groups of this process, of version 1 and 2, with all those around them.

    In a container their paths may be the host's, and not be there; the outermost, which is, is then the container's.
    """
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            mount = root / "sys/fs/cgroup" / controllers
            inner = Path(path.lstrip("/"))
            yield from (mount / each for each in (inner, *inner.parents) if (mount / each).is_dir())


def _words(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return path.read_text().split()
    return []


def _figure(path: Path, name: str) -> int | None:
    """The number beside a name in a file of such lines."""
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    return None


def _gpus(weigh: bool) -> tuple[Gpu, ...]:
    import torch  # noqa: PLC0415  # only where there is a GPU, and then the plan has imported it

    count = torch.cuda.device_count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",")[:count] if visible else [str(index) for index in range(count)]
    free: list[int | None] = [None] * count
    if weigh:
        for index in range(count):
            with contextlib.suppress(RuntimeError):  # it lets nobody else in; it is then taken for one trial
                free[index] = torch.cuda.mem_get_info(index)[0]
    return tuple(Gpu(name, bytes_free) for name, bytes_free in zip(names, free, strict=True))
