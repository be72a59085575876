"""The program that a tool watches waits for its job."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.devices.cuda.watched_job import give_job, given_job


def test_a_job_is_waited_for(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(given_job, tmp_path, os.getpid())
        give_job(tmp_path / "job", tmp_path)
        assert waiting.result() == tmp_path / "job"


def test_waiting_ends_with_the_process_that_gives_jobs(tmp_path: Path) -> None:
    gone = os.fork()
    if not gone:
        os._exit(0)
    os.waitpid(gone, 0)
    assert given_job(tmp_path, gone) is None
