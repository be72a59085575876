"""Each restriction of a worker, tested by a confined process that tries to break it."""

import os
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from harness.judge.workers import isolation
from harness.judge.workers.isolation import Role, confine
from harness.judge.workers.worker import Worker
from tests.forked import in_fork, python
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[3]
READERS = [Role.COMPILER, Role.CPU]


def attempt(role: Role, scratch: Path, *codes: str, needs: str = "") -> list[str]:
    """Return the result of each of these attempts of a confined process, which is in `scratch`.

    needs: skip the test if this system does not enforce this, and the report does not claim it.
    """

    def work() -> tuple[tuple[str, ...], list[str]]:
        os.chdir(scratch)
        return confine(role, scratch), [_result(code, scratch) for code in codes]

    found = in_fork(work)
    if not isinstance(found, tuple):
        return [f"ended {found}"] * len(codes)
    enforced, results = found
    if needs and not any(needs in rule for rule in enforced):
        pytest.skip(f"this system does not enforce: {needs}")
    return results


def _result(code: str, scratch: Path) -> str:
    try:
        exec(code, {"Path": Path, "scratch": scratch})
    except BaseException as error:
        return f"{type(error).__name__} {getattr(error, 'errno', '')} {error}"
    return "done"


def rules(role: Role, scratch: Path) -> tuple[str, ...]:
    """Return the restrictions that the report claims for a role."""
    found: tuple[str, ...] = in_fork(lambda: confine(role, scratch))
    return found


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def listening() -> Iterator[int]:
    """Give a port on which a server listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("role", Role)
def test_the_scratch_folder_can_be_used(role: Role, scratch: Path) -> None:
    code = "p = Path(scratch, 'x'); p.write_text('1'); assert p.read_text() == '1'; p.unlink()"
    assert attempt(role, scratch, code) == ["done"]


@pytest.mark.parametrize("role", Role)
def test_nothing_is_changed_elsewhere(role: Role, scratch: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("still here")
    folders = (tmp_path, Path.home(), ROOT / "harness")
    paths = [folder / "matmul-arena-was-here" for folder in folders]
    try:
        codes = (
            *(f"open({str(path)!r}, 'w')" for path in paths),
            f"Path({str(victim)!r}).unlink()",
            f"Path({str(victim)!r}).rename(Path(scratch, 'mine'))",
            f"import os; os.truncate({str(victim)!r}, 0)",
        )
        results = attempt(role, scratch, *codes, needs="scratch folder")
        assert all("Error" in result for result in results), results
        assert not any(path.exists() for path in paths)
        assert victim.read_text() == "still here"
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("role", READERS)
def test_nothing_else_is_read(role: Role, scratch: Path, tmp_path: Path) -> None:
    secret, link = tmp_path / "secret", scratch / "link"
    secret.write_text("a secret")
    link.symlink_to(secret)
    others = ("/etc/passwd", "/proc/1/environ", "/proc/self/environ", "README.md", ".git/config")
    paths = [secret, link, *(ROOT / path for path in others if (ROOT / path).exists())]
    codes = (f"open({str(path)!r}).read(1)" for path in paths)
    results = attempt(role, scratch, *codes, needs="reads only")
    assert all(result.startswith("PermissionError") for result in results), results


@pytest.mark.parametrize("role", READERS)
def test_there_is_no_network(role: Role, scratch: Path, listening: int) -> None:
    if not {"no network", "no TCP"} & {*rules(role, scratch)}:
        pytest.skip("this system enforces neither")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.3)
        connecting = (
            f"import socket; socket.create_connection(('127.0.0.1', {listening}), 5)",
            "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
            f"s.sendto(b'secret', {server.getsockname()})",
        )
        result, _ = attempt(role, scratch, *connecting)
        assert "Error" in result, result
        if "no network" in rules(role, scratch):
            with pytest.raises(TimeoutError):
                server.recv(10)


def test_the_cuda_role_keeps_the_loopback(scratch: Path, listening: int) -> None:
    """compute-sanitizer speaks to the program that it watches over TCP."""
    code = f"import socket; socket.create_connection(('127.0.0.1', {listening}), 5)"
    assert attempt(Role.CUDA, scratch, code) == ["done"]
    assert not {"no network", "no TCP"} & {*rules(Role.CUDA, scratch)}


@pytest.mark.parametrize("role", READERS)
def test_memory_is_bounded(role: Role, scratch: Path) -> None:
    (result,) = attempt(role, scratch, "bytearray(17 << 30)")
    assert result.startswith("MemoryError")


@pytest.mark.skipif(os.geteuid() == 0, reason="the system does not count root's processes")
def test_processes_are_bounded(scratch: Path) -> None:
    code = (
        "import threading, time\n"
        "for _ in range(400): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    )
    (result,) = attempt(Role.COMPILER, scratch, code)
    assert result.startswith("RuntimeError")


GIB = 1 << 30
NOBODY = 65_533


@pytest.mark.parametrize(
    ("role", "seconds", "memory", "more"),
    [
        (Role.COMPILER, 120, 8, 256),
        (Role.CPU, 3600, 16, 256),
        (Role.CUDA, 3600, None, 1024),
        (Role.CHECKER, 3600, None, 1024),
    ],
)
def test_each_role_has_and_reports_its_limits(
    role: Role,
    seconds: int,
    memory: int | None,
    more: int,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An ordinary user also has a limit of tasks, beyond those that there are."""
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    monkeypatch.setattr(isolation, "tasks", lambda: 70)
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: GIB,
        resource.RLIMIT_NOFILE: 1024,
        resource.RLIMIT_AS: memory * GIB if memory else resource.getrlimit(resource.RLIMIT_AS)[1],
        resource.RLIMIT_NPROC: 70 + more,
    }

    def work() -> tuple[tuple[str, ...], list[int]]:
        return confine(role, scratch), [resource.getrlimit(each)[1] for each in limits]

    enforced, found = in_fork(work)
    assert dict(zip(limits, found, strict=True)) == limits
    memories = [f"memory {memory} GiB"] if memory else []
    expected = [f"CPU time {seconds} s", "file size 1 GiB", "1024 open files", *memories]
    assert [*enforced][: len(expected) + 1] == [*expected, f"{more} processes and threads"]


@pytest.mark.parametrize(
    ("visible", "closed"),
    [
        ("GPU-a", ["/dev/nvidia1", "/dev/nvidia3"]),
        ("GPU-c", ["/dev/nvidia0", "/dev/nvidia1"]),
        ("GPU-d", []),
        ("0,1", []),
        (None, []),
    ],
)
def test_a_worker_opens_no_gpu_but_its_own(
    visible: str | None, closed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bus, (uuid, minor) in enumerate([("GPU-a", 0), ("GPU-b", 1), ("GPU-c", 3)]):
        (tmp_path / f"0000:0{bus}:00.0").mkdir()
        text = f"Model: \t\t NVIDIA H200\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
        (tmp_path / f"0000:0{bus}:00.0" / "information").write_text(text)
    (tmp_path / "0000:09:00.0").mkdir()
    (tmp_path / "0000:09:00.0" / "information").write_text("Model: \t\t Unknown\n")
    (tmp_path / "0000:0a:00.0" / "information").mkdir(parents=True)
    monkeypatch.setattr(isolation, "_GPUS", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert sorted(map(str, isolation._files_of_other_gpus())) == closed


def test_a_device_file_that_is_closed_cannot_be_written_to(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "_files_of_other_gpus", list)
    assert "no GPU but its own" not in rules(Role.CUDA, scratch)
    monkeypatch.setattr(isolation, "_files_of_other_gpus", lambda: [Path("/dev/zero")])
    codes = (f"Path('/dev/{name}').write_bytes(b'1')" for name in ("null", "zero"))
    null, zero = attempt(Role.CUDA, scratch, *codes, needs="no GPU but its own")
    assert null == "done" and zero.startswith("PermissionError 13")


def test_rules_hold_every_thread(scratch: Path) -> None:
    """A worker is confined before it imports modules that start threads."""
    attempt(Role.COMPILER, scratch, needs="reads only")
    with Worker(Role.COMPILER) as worker:
        worker.start()
        process = worker.process_id
        from harness.protocol.compiler import Compile

        worker.ask(Compile(source="__global__ void k() {}"))
        held_to: set[str] = set()
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended since
                status = (task / "status").read_text()
                held_to |= {line for line in status.splitlines() if line.startswith("NoNewPrivs:")}
    assert held_to == {"NoNewPrivs:\t1"}


def test_a_worker_dies_with_the_judge(tmp_path: Path) -> None:
    program = (
        "from harness.judge.workers.worker import Worker\n"
        "from harness.judge.workers.isolation import Role\n"
        "from harness.protocol.device import Describe; import time\n"
        "w = Worker(Role.CPU); w.ask(Describe())\n"
        "print(w.process_id, w.scratch, flush=True); time.sleep(1000)\n"
    )
    judge = python("-c", program, env={**os.environ, "TMPDIR": str(tmp_path)})
    process = int(judge.stdout.readline().split()[0])
    os.kill(process, signal.SIGSTOP)  # it does not notice that the judge hangs up
    judge.kill()
    judge.communicate()
    eventually(lambda: _has_ended(process), "the worker ended")


def _has_ended(process: int) -> bool:
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
