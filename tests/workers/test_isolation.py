"""Each rule that a worker is held to, proved by a process that is held to it and tries."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.workers.isolation import Role
from harness.workers.worker import Worker
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the rules are Linux's")

ROOT = Path(__file__).resolve().parent.parent.parent
READERS = [Role.COMPILER, Role.CPU]

PROGRAM = """
import sys
from pathlib import Path
import problem
from harness.workers.isolation import Role, confine
enforced = confine(Role(sys.argv[1]), Path(sys.argv[2]))
print("\\n".join(enforced))
print("---")
try:
    exec(sys.argv[3])
except BaseException as error:
    print(type(error).__name__, getattr(error, "errno", ""))
else:
    print("done")
"""


def attempt(role: Role, code: str, scratch: Path) -> tuple[list[str], str]:
    """What was enforced on a process, and what became of its attempt."""
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM, role, str(scratch), code],
        capture_output=True,
        text=True,
        cwd=scratch,
        env={"PYTHONPATH": str(ROOT), "HOME": str(scratch), "TMPDIR": str(scratch)},
        timeout=PATIENCE,
        check=False,
    )
    enforced, _, result = child.stdout.partition("---\n")
    return enforced.splitlines(), result.strip() or f"ended {child.returncode} {child.stderr}"


def landlocked(enforced: list[str]) -> bool:
    return any("scratch folder" in phrase for phrase in enforced)


def held(role: Role, phrase: str, tmp_path: Path) -> None:
    """Skip where this system does not have the rule: then the report does not claim it either."""
    enforced, _ = attempt(role, "pass", tmp_path)
    if not any(phrase in found for found in enforced):
        pytest.skip(f"this system does not enforce: {phrase}")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def listening() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("role", Role)
def test_the_scratch_folder_can_be_used(role: Role, scratch: Path) -> None:
    code = "p = Path(sys.argv[2], 'x'); p.write_text('1'); assert p.read_text() == '1'; p.unlink()"
    assert attempt(role, code, scratch)[1] == "done"


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("where", ["outside", "home", "judge"])
def test_nothing_is_written_elsewhere(
    role: Role, where: str, scratch: Path, tmp_path: Path
) -> None:
    held(role, "scratch folder", scratch)
    folder = {"outside": tmp_path, "home": Path.home(), "judge": ROOT / "harness"}[where]
    path = folder / "matmul-arena-was-here"
    try:
        _, result = attempt(role, f"open({str(path)!r}, 'w')", scratch)
        assert result.startswith("PermissionError") and not path.exists()
    finally:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("role", Role)
def test_nothing_is_removed_or_renamed_elsewhere(role: Role, scratch: Path, tmp_path: Path) -> None:
    held(role, "scratch folder", scratch)
    victim = tmp_path / "victim"
    victim.write_text("still here")
    for code in (
        f"Path({str(victim)!r}).unlink()",
        f"Path({str(victim)!r}).rename(Path(sys.argv[2], 'mine'))",
        f"import os; os.truncate({str(victim)!r}, 0)",
    ):
        result = attempt(role, code, scratch)[1]
        assert "Error" in result, (code, result)
    assert victim.read_text() == "still here"


@pytest.mark.parametrize("role", READERS)
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/proc/1/environ", "/proc/self/environ", "README.md", ".git/config"]
)
def test_nothing_else_is_read(role: Role, path: str, scratch: Path) -> None:
    held(role, "reads only", scratch)
    result = attempt(role, f"print(open({str(ROOT / path)!r}).read(1))", scratch)[1]
    assert result.startswith("PermissionError"), result


@pytest.mark.parametrize("role", READERS)
def test_no_symlink_leads_out(role: Role, scratch: Path, tmp_path: Path) -> None:
    held(role, "reads only", scratch)
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    (scratch / "link").symlink_to(secret)
    result = attempt(role, "print(Path(sys.argv[2], 'link').read_text())", scratch)[1]
    assert result.startswith("PermissionError") and "a secret" not in result


@pytest.mark.parametrize("role", READERS)
def test_nobody_is_called_on_the_network(role: Role, scratch: Path, listening: int) -> None:
    enforced, result = attempt(
        role, f"import socket; socket.create_connection(('127.0.0.1', {listening}), 5)", scratch
    )
    if not {"no network", "no TCP"} & set(enforced):
        pytest.skip("this system enforces neither")
    assert "Error" in result, result


@pytest.mark.parametrize("role", READERS)
def test_nothing_is_sent_without_a_connection(role: Role, scratch: Path) -> None:
    held(role, "no network", scratch)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.3)
        port = server.getsockname()[1]
        code = (
            "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
            f"s.sendto(b'secret', ('127.0.0.1', {port}))"
        )
        attempt(role, code, scratch)
        with pytest.raises(TimeoutError):
            server.recv(10)


def test_the_cuda_role_keeps_the_loopback(scratch: Path, listening: int) -> None:
    """compute-sanitizer speaks to the program that it watches over TCP."""
    code = f"import socket; socket.create_connection(('127.0.0.1', {listening}), 5)"
    enforced, result = attempt(Role.CUDA, code, scratch)
    assert result == "done" and not {"no network", "no TCP"} & set(enforced)


@pytest.mark.parametrize("role", READERS)
def test_memory_is_bounded(role: Role, scratch: Path) -> None:
    enforced, result = attempt(role, "bytearray(17 << 30)", scratch)
    assert any(phrase.startswith("memory") for phrase in enforced)
    assert result.startswith("MemoryError")


@pytest.mark.parametrize("role", Role)
def test_files_are_bounded(role: Role, scratch: Path) -> None:
    code = (
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "f = open(Path(sys.argv[2], 'x'), 'wb'); f.truncate(2 << 30)"
    )
    assert attempt(role, code, scratch)[1].startswith("OSError 27")


@pytest.mark.parametrize("role", Role)
def test_open_files_are_bounded(role: Role, scratch: Path) -> None:
    code = "kept = [open('/dev/null') for _ in range(2000)]"
    assert attempt(role, code, scratch)[1].startswith("OSError 24")


@pytest.mark.skipif(os.geteuid() == 0, reason="the system does not count root's processes")
def test_processes_are_bounded(scratch: Path) -> None:
    code = (
        "import threading, time\n"
        "for _ in range(400): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    )
    assert attempt(Role.COMPILER, code, scratch)[1].startswith("RuntimeError")


def test_cpu_time_is_bounded(scratch: Path) -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_CPU))"
    assert "(120, 120)" in attempt(Role.COMPILER, code, scratch)[1]


def test_rules_hold_every_thread(scratch: Path) -> None:
    """A worker is confined before it loads what starts threads."""
    held(Role.COMPILER, "reads only", scratch)
    with Worker(Role.COMPILER) as worker:
        worker.start()
        process = worker.process_id
        assert process is not None
        from harness.protocol.compiler import Compile

        worker.ask(Compile(source="__global__ void k() {}"))
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        held_to = {
            line
            for task in tasks
            for line in (task / "status").read_text().splitlines()
            if line.startswith("NoNewPrivs:")
        }
    assert held_to == {"NoNewPrivs:\t1"}


def test_a_worker_has_nothing_of_the_users_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    with Worker(Role.COMPILER) as worker:
        worker.start()
        environment = Path(f"/proc/{worker.process_id}/environ").read_bytes()
    assert b"hunter2" not in environment


def test_a_worker_dies_with_the_judge(tmp_path: Path) -> None:
    program = (
        "from harness.workers.worker import Worker; from harness.workers.isolation import Role\n"
        "from harness.protocol.device import Describe; import time\n"
        "w = Worker(Role.CPU); w.ask(Describe())\n"
        "print(w.process_id, w.scratch, flush=True); time.sleep(1000)\n"
    )
    environment = dict(os.environ, TMPDIR=str(tmp_path), PYTHONPATH=str(ROOT))
    judge = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert judge.stdout is not None
    process = int(judge.stdout.readline().split()[0])
    judge.kill()
    judge.wait()
    judge.stdout.close()
    eventually(lambda: _has_ended(process), "the worker ended")


def _has_ended(process: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return True
