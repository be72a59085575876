"""How the program that a tool watches waits: for its context and for its job."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.devices.cuda.watched_job import give_job, given_job, is_open, let_open
from tests.waiting import eventually


def test_a_context_is_created_once_and_before_the_job_where_it_may_be(tmp_path: Path) -> None:
    created: list[bool] = []
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(
            given_job, tmp_path, os.getpid(), lambda: created.append(is_open(tmp_path))
        )
        let_open(tmp_path)
        eventually(lambda: is_open(tmp_path), "a context")
        let_open(tmp_path)
        give_job(tmp_path / "job", tmp_path)
        assert waiting.result() == tmp_path / "job"
    assert created == [False]


def test_without_leave_no_context_is_created(tmp_path: Path) -> None:
    give_job(tmp_path / "job", tmp_path)
    assert given_job(tmp_path, os.getpid(), lambda: 1 / 0) == tmp_path / "job"  # type: ignore[arg-type,return-value]


def test_a_job_that_nobody_is_left_to_give_is_not_waited_for(tmp_path: Path) -> None:
    gone = os.fork()
    if not gone:
        os._exit(0)
    os.waitpid(gone, 0)
    assert given_job(tmp_path, gone, lambda: None) is None
