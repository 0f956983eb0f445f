"""How many trials run at once, for machines of all kinds."""

from __future__ import annotations

import pytest

from ablate.slots import Need, Room
from ablate.sweep.workers.machine import Gpu, Machine
from ablate.sweep.workers.placing import Seats, seats

GB = 10**9


def cpu(cores: int, memory: int | None = None) -> Machine:
    return Machine("cpu", cores, memory)


def cuda(*free: int | None, cores: int = 64) -> Machine:
    return Machine("cuda", cores, None, tuple(Gpu(str(index), each) for index, each in enumerate(free)))


@pytest.mark.parametrize(
    ("cores", "threads", "room"),
    [
        (8, 1, Room(8, "one for each of 8 cores")),
        (1, 1, Room(1, "on one core")),
        (8, 3, Room(2, "with 3 threads each on 8 cores")),
        (1, 4, Room(1, "with 4 threads each on 1 core")),
    ],
)
def test_a_trial_for_every_threads_cores_where_memory_is_not_known(cores: int, threads: int, room: Room) -> None:
    assert seats(Need("cpu", threads, 10**15), cpu(cores)) == Seats(room)


def test_memory_limits_and_says_so() -> None:
    need = Need("cpu", 1, 2 * GB)
    assert seats(need, cpu(8, 100 * GB)).room == Room(8, "one for each of 8 cores")
    short = "for lack of memory: one may take 2.1 GB, and 8.2 GB are free; there are 8 cores"
    assert seats(need, cpu(8, 10 * GB)).room == Room(3, short, short=True)


def test_there_is_always_one() -> None:
    text = "for lack of memory: one may take 2.1 GB, and 0.0 GB are free; there are 2 cores"
    assert seats(Need("cpu", 1, 2 * GB), cpu(2, 0)).room == Room(1, text, short=True)
    assert seats(Need("cpu", 1, 2 * GB), cpu(1, 0)).room == Room(1, "on one core")


def test_what_was_measured_counts_where_it_is_more() -> None:
    need = Need("cpu", 1, 2 * GB)
    assert seats(need, cpu(8, 20 * GB), measured=4 * GB).room.places == 4
    assert seats(need, cpu(8, 20 * GB), measured=GB).room.places == 7


@pytest.mark.parametrize("machine", [cpu(2, 0), cuda(GB, GB), Machine("mps", 2, None)])
def test_a_number_of_the_users_is_taken_as_it_is(machine: Machine) -> None:
    need = Need(machine.device, 8, 10**15)
    assert seats(need, machine, parallel=5, measured=10**15) == Seats(Room(5, "as `parallel` says"))


def test_one_device_of_another_kind_takes_one_trial() -> None:
    assert seats(Need("mps"), Machine("mps", 8, None)).room.places == 1
    assert seats(Need("cuda"), cuda()).room.places == 1


def test_gpus_take_as_many_each_as_is_said() -> None:
    assert seats(Need("cuda"), cuda(None)) == Seats(Room(1, "one on one GPU"), (1,))
    assert seats(Need("cuda"), cuda(None, None)) == Seats(Room(2, "one for each of 2 GPUs"), (1, 1))
    assert seats(Need("cuda"), cuda(None, None), per_gpu=3) == Seats(Room(6, "3 for each of 2 GPUs"), (3, 3))


def test_gpus_take_as_many_as_their_memory_holds() -> None:
    need = Need("cuda", 1, 4 * GB)
    found = seats(need, cuda(80 * GB, 20 * GB, GB), per_gpu="auto")
    assert found == Seats(Room(17, "on 3 GPUs, where one may take 4.6 GB"), (14, 3, 0))
    assert seats(need, cuda(80 * GB, 20 * GB), per_gpu="auto", measured=10 * GB).gpus == (6, 1)


def test_a_trial_on_a_gpu_has_a_core() -> None:
    assert seats(Need("cuda", 1, GB), cuda(80 * GB, 80 * GB, cores=8), per_gpu="auto").gpus == (4, 4)
    assert seats(Need("cuda", 2, GB), cuda(80 * GB, 80 * GB, cores=8), per_gpu="auto").gpus == (2, 2)
    assert seats(Need("cuda", 4, GB), cuda(80 * GB, 80 * GB, cores=2), per_gpu="auto").gpus == (1, 1)


def test_a_gpu_that_tells_nothing_takes_one_and_of_full_ones_the_emptiest_does() -> None:
    assert seats(Need("cuda", 1, GB), cuda(None, 80 * GB, cores=20), per_gpu="auto").gpus == (1, 10)
    full = seats(Need("cuda", 1, 4 * GB), cuda(GB, 2 * GB, GB), per_gpu="auto")
    text = "for lack of memory: one may take 4.6 GB, and 2.0 GB are free"
    assert full == Seats(Room(1, text, short=True), (0, 1, 0))
