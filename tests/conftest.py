"""What all tests share: the marker `gpu`, and workers that outlive a test."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from harness.devices.available import why_no_cuda
from harness.protocol.compiler import Compile, Compiled
from harness.report import CompileError, RuntimeFault
from harness.workers.isolation import Role
from harness.workers.session import Session, open_session
from harness.workers.worker import Worker
from tests.compile_worker import Compiling
from tests.grading import lasting

pytest_plugins = ["tests.postgres"]

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("default", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=2000)
settings.load_profile("default")


# What a shell starts in the background ignores Ctrl-C; the judges that tests interrupt must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_no_cuda()
    if reason is not None:
        skip = pytest.mark.skip(reason=reason)
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def compiling() -> Iterator[Compiling]:
    """Compile source text in a worker."""
    with Worker(Role.COMPILER) as compiler:

        def compile_text(source: str) -> Compiled | CompileError | RuntimeFault:
            answer = compiler.ask(Compile(source=source))
            assert isinstance(answer, Compiled | CompileError | RuntimeFault), answer
            return answer

        yield compile_text


@pytest.fixture(scope="module")
def cpu_session() -> Iterator[Session]:
    """For gradings on the CPU device of which only the verdict counts."""
    with open_session("cpu") as session:
        yield lasting(session)
