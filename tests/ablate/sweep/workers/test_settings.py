"""What a trial may have set for its whole process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from ablate.registry import Registry
from ablate.sweep.workers.settings import changed, settings
from ablate.training.trial import train
from tests.trial_maker import make_trial

SETTERS: dict[str, tuple[Callable[[Any], object], Any, Any]] = {
    "torch's default dtype": (torch.set_default_dtype, torch.float64, torch.float32),
    "torch's default device": (torch.set_default_device, "meta", None),
    "torch's gradients": (torch.autograd.set_detect_anomaly, True, False),
    "torch's deterministic algorithms": (torch.use_deterministic_algorithms, True, False),
    "torch's precision of matrix products": (torch.set_float32_matmul_precision, "high", "highest"),
    "torch's cuDNN": (partial(setattr, torch.backends.cudnn, "benchmark"), True, False),
    "torch's oneDNN": (partial(setattr, torch.backends.mkldnn, "enabled"), False, True),
    "torch's kernels of attention": (torch.backends.cuda.enable_flash_sdp, False, True),
    "torch's reductions in half precision": (
        partial(setattr, torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"), False, True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTERS)
def test_what_a_component_can_set_for_the_whole_process_is_noticed(name: str) -> None:
    put, odd, usual = SETTERS[name]
    before = settings()
    put(odd)
    try:
        assert changed(before, settings()) == [name]
    finally:
        put(usual)
    assert changed(before, settings()) == []


def test_the_list_is_whole() -> None:
    assert set(settings()) == {*SETTERS, "the working folder"}


def test_a_folder_that_is_gone_is_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    before = settings()
    gone.rmdir()
    assert changed(before, settings()) == ["the working folder"]


def test_a_trial_of_ours_changes_nothing(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial", steps=2)
    before = settings()
    train(folder, 1, Registry.installed())
    assert changed(before, settings()) == []
