"""The supervisor starts again whatever ends, and ends everything with itself."""

from __future__ import annotations

import threading

from harness.arena.supervisor import Part, Supervisor
from tests.waiting import PATIENCE, eventually

FOREVER = "import time; time.sleep(1000)"


def test_a_part_that_is_killed_is_started_again_and_all_end_together() -> None:
    parts = [Part(name, "timeit", ["-n", "1", FOREVER], {}) for name in ("one", "other")]
    supervisor = Supervisor(None, parts)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        eventually(lambda: all(part.process is not None for part in parts), "started")
        first, other = parts[0].process, parts[1].process
        assert first is not None and other is not None
        first.kill()
        eventually(lambda: parts[0].process not in (None, first), "started again")
        assert parts[1].process is other
        processes = [part.process for part in parts]
    finally:
        supervisor.stop()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert all(process is not None and process.poll() is not None for process in processes)


def test_workers_end_before_the_web_service() -> None:
    """They give back what they grade."""
    ended = []

    class Noted(Part):
        def look(self) -> None:
            supervisor.stop()

        def reap(self) -> None:
            ended.append(self.name)

    names = ["web", "cpu-0", "cpu-1"]
    supervisor = Supervisor(None, [Noted(name, "none", [], {}) for name in names])
    supervisor.run()
    assert ended == ["cpu-0", "cpu-1", "web"]


def test_a_part_that_falls_at_once_is_started_less_and_less_often() -> None:
    part = Part("falls", "no_such_module", [], {})
    waits = []
    for _ in range(4):
        part.wait, wait = 0.0, part.wait
        part.look()
        part.wait = wait
        process = part.process
        assert process is not None
        process.wait()
        part.look()
        waits.append(part.wait)
    assert waits == sorted(waits) and waits[0] < waits[-1]
