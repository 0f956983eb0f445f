from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from pydantic import ValidationError

from ablate.registry import Registry
from ablate.slots import Executor, Need, Room
from ablate_plugins.executor import Local
from tests.ablate.sweep.stub_study import environment


def test_the_local_executor_is_found_by_its_name() -> None:
    assert Registry.installed().get("executor", "local") is Local
    assert issubclass(Local, Executor)


@pytest.mark.parametrize("parallel", [1, 4, "auto"])
def test_parallel_is_a_number_or_auto(parallel: object) -> None:
    assert Local.model_validate({"kind": "local", "parallel": parallel}).parallel == parallel


@pytest.mark.parametrize("count", [0, -1, 1.0, True, "4", "all", None])
@pytest.mark.parametrize("option", ["parallel", "per_gpu"])
def test_a_count_is_nothing_else(option: str, count: object) -> None:
    with pytest.raises(ValidationError):
        Local.model_validate({option: count})


def test_its_room_is_that_of_its_pool() -> None:
    for executor in (Local(), Local(parallel=3)):
        with contextlib.closing(executor.open()) as pool:
            need = Need("cpu", 2)
            assert pool.room(need) == executor.room(need)
    assert Local(parallel=3).room(Need()) == Room(3, "as `parallel` says")


def test_naming_an_executor_imports_neither_torch_nor_optuna() -> None:
    code = (
        "import sys; from ablate.registry import Registry; Registry.installed().get('executor', 'local');"
        "import ablate.sweep.events; sys.exit(sum(name in sys.modules for name in ('torch', 'optuna', 'sqlalchemy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], env=environment(), check=False).returncode == 0
