"""Fixtures that all tests share, the marker `gpu`, and workers that outlive a test."""

import gc
import os
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

from harness.devices.available import why_no_cuda
from harness.judge.stages import rounds
from harness.judge.workers.session import Choice, Session, open_session
from tests import sharing
from tests.grading import lasting, with_parts

pytest_plugins = ["tests.postgres", "tests.board.browser"]

settings.register_profile("default", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=2000)
settings.load_profile("default")


# Parallel test processes are given a width, and without a terminal commands wrap nothing.
os.environ.pop("COLUMNS", None)

# No time may depend on the zone of the machine, which is often UTC.
os.environ["TZ"] = "Asia/Kolkata"
time.tzset()

# What a shell starts in the background ignores Ctrl-C, and what nohup starts ignores SIGHUP; the
# judges that tests interrupt must not.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


LONGEST = "test_solutions.py"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector: none of the million objects is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, and skip tests of a GPU without one."""
    items.sort(key=lambda item: item.path.name != LONGEST)
    reason = why_no_cuda()
    if reason is not None:
        skip = pytest.mark.skip(reason=reason)
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def share_results(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give the processes of this test run a folder in common."""
    own = tmp_path_factory.getbasetemp()
    in_common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    sharing.folders[:] = [in_common / "shared"]
    sharing.folders[0].mkdir(exist_ok=True)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test put temporary files into its own folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.fixture
def no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let measurements of a fake GPU begin without warming up."""
    monkeypatch.setattr(rounds, "MIN_WARM_UP_SECONDS", 0.0)


@pytest.fixture(scope="session")
def cpu_workers() -> Iterator[Session]:
    with open_session("cpu") as session:
        yield session


@pytest.fixture(scope="session")
def cpu_session(cpu_workers: Session) -> Session:
    """A session for gradings on the CPU device of which only the verdict counts."""
    return lasting(cpu_workers)


@pytest.fixture
def shared_workers(cpu_workers: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands in this process grade with workers that other tests have started, which saves a
    second."""
    shared = lasting(cpu_workers, disassembles=True)

    def opened(choice: Choice, arch: str | None = None) -> AbstractContextManager[Session]:
        if choice == "cuda" or (choice == "auto" and why_no_cuda() is None and arch is None):
            return open_session(choice, arch)
        if arch is None:
            return nullcontext(shared)
        info = shared.info.model_copy(update={"arch": arch})
        return nullcontext(with_parts(shared, arch=arch, info=info))

    monkeypatch.setattr("harness.judge.workers.session.open_session", opened)
