"""What a process has set for all that is computed in it, so that no trial hands its settings on to the next one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

Settings = Mapping[str, object]


def settings() -> Settings:
    """Whatever a trial's result may depend on and a component can set for the whole process, by name.

    The number of threads is not among them, which every trial sets, nor are generators, which are keyed.
    """
    return {"the working folder": _folder(), **_of_torch()}


def changed(before: Settings, after: Settings) -> list[str]:
    """The names of what differs; what came with a later import has changed nothing."""
    return [name for name, value in before.items() if after.get(name) != value]


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return None


def _of_torch() -> dict[str, object]:
    if "torch" not in sys.modules:  # a trainer that does not compute with torch must not pay for its import
        return {}
    import torch  # noqa: PLC0415

    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    attention = (cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled())
    return {
        "torch's default dtype": torch.get_default_dtype(),
        "torch's default device": torch.get_default_device(),
        "torch's gradients": (torch.is_grad_enabled(), torch.is_anomaly_enabled()),
        "torch's deterministic algorithms": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "torch's precision of matrix products": (torch.get_float32_matmul_precision(), cudnn.allow_tf32),
        "torch's cuDNN": (cudnn.enabled, cudnn.benchmark, cudnn.deterministic),
        "torch's oneDNN": torch.backends.mkldnn.enabled,
        "torch's kernels of attention": (*attention, cuda.cudnn_sdp_enabled()),
        "torch's reductions in half precision": (
            cuda.matmul.allow_fp16_reduced_precision_reduction,
            cuda.matmul.allow_bf16_reduced_precision_reduction,
        ),
    }
