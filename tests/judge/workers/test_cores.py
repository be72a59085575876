"""Each GPU has two cores for measuring, if at least two more are left for other work."""

import os
import threading

import pytest

from harness.judge.workers.cores import Cores, set_affinity, shared_out
from harness.judge.workers.isolation import Role
from harness.judge.workers.worker import Worker


def test_each_gpu_has_neighbouring_cores() -> None:
    assert shared_out(2, [8, 7, 6, 5, 4, 3, 2, 1, 0]) == [
        Cores(frozenset({0, 1}), frozenset({2, 3})),
        Cores(frozenset({4, 5}), frozenset({6, 7, 8})),
    ]


def test_cores_are_shared_only_if_enough_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    for gpus, cores, enough in ((1, 4, True), (1, 3, False), (3, 11, False)):
        assert (shared_out(gpus, range(cores)) is not None) is enough
    monkeypatch.setattr(os, "sched_getaffinity", {0: {3, 5, 7, 9}}.__getitem__)
    assert shared_out(1) == [Cores(frozenset({3, 5}), frozenset({7, 9}))]


def test_a_process_is_held_with_all_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    held: dict[int, object] = {}
    monkeypatch.setattr(os, "sched_setaffinity", held.__setitem__)
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    try:
        set_affinity(os.getpid(), frozenset({1}))
        assert {os.getpid(), thread.native_id} <= held.keys() and set(held.values()) == {
            frozenset({1})
        }
    finally:
        waiting.set()
        thread.join()


def test_a_worker_keeps_to_its_cores() -> None:
    core = frozenset(list(os.sched_getaffinity(0))[:1])
    with Worker(Role.COMPILER) as worker:
        worker.set_affinity(core)
        worker.start()
        assert os.sched_getaffinity(worker.process_id) == core
        set_affinity(worker.process_id, frozenset(os.sched_getaffinity(0)))
        assert os.sched_getaffinity(worker.process_id) == os.sched_getaffinity(0)
