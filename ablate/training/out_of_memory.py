"""What an error says of memory; no torch, so that a worker can ask before it has any."""

from __future__ import annotations

import errno
import re
import sys
from typing import Any

_SAID = re.compile(
    r"out of memory"  # CUDA, MPS and XPU, also as a RuntimeError or an AcceleratorError of a kernel's launch
    r"|can't allocate memory|not enough memory"  # the CPU's allocator, on Linux and macOS, and on Windows
    r"|unable to mmap|_STATUS_ALLOC_FAILED|std::bad_alloc",  # files in memory; cuBLAS, cuDNN, cuSOLVER; C++
    re.IGNORECASE,
)


class OutOfMemoryError(MemoryError):
    """A trial needs more memory than there is, and cannot be made smaller; says why."""


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether memory was too short: the error itself, or what it was raised from, says so."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if _says_so(link):
            return True
        seen.add(id(link))
        link = link.__cause__
    return False


def first_line(error: BaseException) -> str:
    """What an error says first; where it says nothing, its type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _says_so(error: BaseException) -> bool:
    torch: Any = sys.modules.get("torch")
    if isinstance(error, MemoryError) or (torch is not None and isinstance(error, torch.OutOfMemoryError)):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and _SAID.search(str(error)) is not None
