"""Background work has a thread of its own."""

from __future__ import annotations

import threading

from harness.protocol import background
from tests.waiting import PATIENCE, eventually


def test_who_begins_something_goes_on_and_has_its_result_later() -> None:
    go = threading.Event()

    def product(a: int, *, b: int) -> tuple[int, threading.Thread]:
        assert go.wait(PATIENCE)
        return a * b, threading.current_thread()

    begun = background.begin(product, 6, b=7)
    assert not begun.done()
    go.set()
    number, thread = begun.result(PATIENCE)
    assert number == 42 and "product" in thread.name
    eventually(lambda: not thread.is_alive(), "the thread ends with its work")
