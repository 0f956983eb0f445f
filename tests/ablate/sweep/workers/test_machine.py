"""What a machine has, by the files in which Linux tells it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from ablate.sweep.workers.machine import Gpu, resident, this_machine

MEMINFO = "MemTotal:       16000 kB\nMemFree:        3000 kB\nMemAvailable:   8000 kB\n"


@pytest.fixture(autouse=True)
def sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)


def machine(root: Path, groups: str, files: Mapping[str, str]) -> tuple[int, int | None]:
    for name, text in {"proc/self/cgroup": groups, "proc/meminfo": MEMINFO, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = this_machine(root=root)
    return found.cores, found.memory


def test_without_control_groups_there_are_the_schedulers_cores_and_the_available_memory(tmp_path: Path) -> None:
    assert machine(tmp_path, "", {}) == (16, 8_192_000)


def test_without_proc_there_are_cores_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = this_machine(root=tmp_path)
    assert (found.cores, found.memory, found.gpus) == (16, None, ())
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert this_machine(root=tmp_path).cores == 1


@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 16), ("450000 100000", 4), ("50000 100000", 1)])
def test_quotas_of_version_2(tmp_path: Path, quota: str, cores: int) -> None:
    group = "sys/fs/cgroup/jobs/mine"
    files = {f"{group}/cpu.max": f"{quota}\n", f"{group}/memory.max": "max\n", f"{group}/memory.current": "5000000\n"}
    assert machine(tmp_path, "0::/jobs/mine\n", files) == (cores, 8_192_000)


def test_the_tightest_group_counts_and_what_files_left_in_memory_is_free(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/jobs/memory.max": "6000000\n",
        "sys/fs/cgroup/jobs/memory.current": "3000000\n",
        "sys/fs/cgroup/jobs/memory.stat": "anon 1000000\ninactive_file 500000\nactive_file 700000\n",
        "sys/fs/cgroup/jobs/mine/memory.max": "max\n",
        "sys/fs/cgroup/jobs/cpu.max": "200000 100000\n",
        "sys/fs/cgroup/jobs/mine/cpu.max": "800000 100000\n",
    }
    assert machine(tmp_path, "0::/jobs/mine\n", files) == (2, 3_500_000)


def test_quotas_of_version_1_in_a_container_that_does_not_see_its_path(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "4000000\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1500000\n",
        "sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 100000\n",
    }
    groups = "5:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f\n1:name=systemd:/docker/1f\n0::/docker/1f\n"
    assert machine(tmp_path, groups, files) == (3, 2_600_000)


def test_no_limit_in_version_1(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1500000\n",
    }
    assert machine(tmp_path, "5:memory:/\n1:cpu:/\n", files) == (16, 8_192_000)


def test_more_than_the_limit_in_use_leaves_nothing(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/memory.max": "1000\n", "sys/fs/cgroup/memory.current": "2000\n"}
    assert machine(tmp_path, "0::/\n", files) == (16, 0)


def test_gpus_are_named_as_this_process_may_see_them_and_weighed_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    def free(index: int) -> tuple[int, int]:
        if index:
            raise RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable")
        return 7, 9

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", free)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert this_machine("cuda").gpus == (Gpu("0"), Gpu("1"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-5")
    assert this_machine("cuda", weigh=True).gpus == (Gpu("3", 7), Gpu("GPU-5", None))
    assert this_machine("cpu").gpus == ()


def test_the_memory_of_this_process_is_more_than_an_interpreter_and_less_than_the_machine() -> None:
    held = resident()
    assert held is not None
    assert 10_000_000 < held < 100_000_000_000
