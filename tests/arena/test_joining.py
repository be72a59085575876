"""Machines that join an arena over the network: through the gate, with a key, and no other way."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, Engine, make_url, text

from harness.arena.build import Build
from harness.arena.certificate import certificate
from harness.arena.machines import new_key
from harness.arena.place import Place, Secrets
from harness.arena.postgres import Server
from harness.arena.processes import DATABASE_VARIABLE
from harness.arena.queue import conninfo
from harness.arena.store import gradings, roles
from harness.arena.store.membership import REVOKED
from harness.arena.store.people import Person
from harness.arena.store.preparing import set_build
from harness.arena.sweeper import sweep_once
from harness.arena.worker_key import WorkerKey
from harness.devices.available import why_no_cuda
from harness.protocol.errors import UsageError
from harness.protocol.report import Verdict
from tests.arena.handing_in import graded, hand_in, joined, take
from tests.waiting import PATIENCE, eventually

Add = Callable[..., Person]


@pytest.fixture(scope="module")
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def gate(server: Server, secrets: Secrets, place: Place, port: int) -> Iterator[str]:
    """Listens; its certificate."""
    pem = certificate(place.certificate)
    address = roles.worker(server.url, secrets).set(password=None)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "harness.arena.gate", "--host", "127.0.0.1"),
            *("--port", str(port), "--certificate", str(place.certificate)),
        ],
        stdin=subprocess.PIPE,
        env={
            **os.environ,
            DATABASE_VARIABLE: address.render_as_string(hide_password=False),
        },
    )
    eventually(lambda: _listens(port), "listening")
    yield pem
    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def key(server: Server, owner: Engine, gate: str, port: int, empty: None) -> WorkerKey:
    with owner.begin() as link:
        return new_key(link, server.url, "lab-3", ("127.0.0.1", port), gate)


def code_of(key: WorkerKey, query: str = "SELECT 1") -> object:
    with key.conninfo() as address, psycopg.connect(address, connect_timeout=10) as link:
        row = link.execute(query).fetchone()  # type: ignore[call-overload]
        return row[0] if row else None


def command(path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness", "worker", "--arena", str(path), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    """The last line, once it has ended by itself."""
    output, _ = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in output
    return output.strip().splitlines()[-1]


def test_a_key_is_read_as_it_was_written(key: WorkerKey, tmp_path: Path) -> None:
    path = tmp_path / "lab-3.key"
    key.write(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert WorkerKey.read(path).text == key.text
    with pytest.raises(UsageError, match="already"):
        key.write(path)


def test_over_the_network_a_machine_may_do_what_a_worker_does_and_no_more(key: WorkerKey) -> None:
    assert code_of(key, "SELECT judge FROM arena_edition()") == Build.here().judge
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        code_of(key, "SELECT count(*) FROM submissions")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        code_of(key, "SELECT arena_new_machine('mine', 'x')")


@pytest.mark.parametrize("login", ["postgres", "arena_web", "arena_worker"])
def test_no_login_but_a_machines_comes_in_even_with_its_password(
    login: str, key: WorkerKey, secrets: Secrets
) -> None:
    password = {"postgres": secrets.owner, "arena_web": secrets.web, "arena_worker": secrets.worker}
    other = WorkerKey(key.address.set(username=login, password=password[login]), key.certificate)
    with pytest.raises(psycopg.OperationalError, match="closed"):
        code_of(other)


def test_without_tls_nothing_is_heard(key: WorkerKey) -> None:
    plain = key.address.update_query_dict({"sslmode": "disable"})
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(conninfo(plain), connect_timeout=10)


def test_an_arena_with_another_certificate_is_not_the_arena(key: WorkerKey, tmp_path: Path) -> None:
    other = WorkerKey(key.address, certificate(tmp_path / "other.pem"))
    other.write(tmp_path / "key")
    assert "is not the arena that this key is of" in said(command(tmp_path / "key"))


def test_a_revoked_machine_is_out_at_once_though_it_is_connected(
    key: WorkerKey, owner: Engine, tmp_path: Path
) -> None:
    with key.conninfo() as address, psycopg.connect(address, autocommit=True) as link:
        link.execute("SELECT * FROM arena_edition()")
        with owner.begin() as connection:
            connection.execute(text("SELECT arena_revoke_machine(id) FROM machines"))
        with pytest.raises(REVOKED):
            link.execute("SELECT * FROM arena_edition()")
    key.write(tmp_path / "key")
    assert "revoked it; ask its organiser" in said(command(tmp_path / "key"))


def test_a_wrong_password_is_one_sentence(key: WorkerKey, tmp_path: Path) -> None:
    WorkerKey(key.address.set(password="guess"), key.certificate).write(tmp_path / "key")
    process = command(tmp_path / "key")
    assert "does not know this key" in said(process)
    assert process.returncode == 2


def test_a_machine_without_a_gpu_says_so(key: WorkerKey, tmp_path: Path) -> None:
    if why_no_cuda() is None:
        pytest.skip("there is a GPU")
    key.write(tmp_path / "key")
    assert "this machine brings no GPU" in said(command(tmp_path / "key"))


def test_another_judge_is_refused_on_joining(key: WorkerKey, owner: Engine, tmp_path: Path) -> None:
    key.write(tmp_path / "key")
    with owner.begin() as link:
        link.execute(text("UPDATE edition SET source = 'another'"))
    try:
        assert "check out here what the arena runs" in said(command(tmp_path / "key"))
    finally:
        with owner.begin() as link:
            set_build(link, Build.here())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is no worker's key"),
        ("hello\n", "is no worker's key"),
        ("postgresql://a:b@arena.example.org/arena\n", "does not say sslmode=verify-full"),
        ("postgresql://a:b@arena.example.org/arena?sslmode=require\n", "sslmode=verify-full"),
        (
            "postgresql://a:b@127.0.0.1/arena\n-----BEGIN CERTIFICATE-----\nxx\n",
            "certificate is damaged",
        ),
        ("postgresql://a:b@127.0.0.1:1/arena\n", "no arena answers at 127.0.0.1:1"),
    ],
)
def test_what_is_no_key_is_one_sentence(content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(content)
    process = command(tmp_path / "key")
    assert sentence in said(process)
    assert process.returncode == 2


@contextmanager
def quick(owner: Engine) -> Iterator[None]:
    with owner.begin() as link:
        set_build(link, Build.here(quick=True))
    try:
        yield
    finally:
        with owner.begin() as link:
            set_build(link, Build.here())


def test_a_machine_joins_grades_and_is_drained(
    key: WorkerKey, owner: Engine, connection: Connection, person: Add, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    key.write(path)
    with quick(owner):
        process = command(path, "--device", "cpu", "--workers", "2")
        try:
            ids = [hand_in(connection, person("ada"), "one"), hand_in(connection, person("bob"))]
            eventually(
                lambda: all(gradings.status(connection, [id])[id].state.final for id in ids),
                "graded",
            )
            verdicts = {gradings.status(connection, [id])[id].verdict for id in ids}
            assert Verdict.JUDGE_ERROR not in verdicts
            names = connection.execute(text("SELECT DISTINCT worker FROM attempts")).scalars()
            assert all(name.endswith(f"on {socket.gethostname()}") for name in names)
            alive = text("SELECT count(*) FROM workers WHERE seen IS NOT NULL")
            eventually(lambda: connection.execute(alive).scalar_one() == 2, "both are there")
            drained = command(path, "--drain")
            assert said(drained) == "They have left."
            assert said(process) == "The workers of this machine have left the arena."
            assert (drained.returncode, process.returncode) == (0, 0)
            assert said(command(path, "--drain")) == "No worker of this machine is at the arena."
        finally:
            process.kill()
            process.wait()


def test_a_machine_that_is_stopped_gives_back_what_it_holds(
    key: WorkerKey, owner: Engine, connection: Connection, person: Add, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    key.write(path)
    endless = Path(__file__).parent.parent / "submissions/time-limit/endless_loop.cu"
    id = hand_in(connection, person("ada"))
    with owner.begin() as link:
        link.execute(text("UPDATE submissions SET source = :s"), {"s": endless.read_text()})
    with quick(owner):
        process = command(path, "--device", "cpu")
        try:
            eventually(
                lambda: bool(gradings.status(connection, [id])[id].progress.stages),
                "in the middle",
            )
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait()
    assert gradings.status(connection, [id])[id].state == "queued"


def test_a_machine_that_vanished_comes_back_with_an_old_result_and_it_does_not_count(
    key: WorkerKey, server: Server, owner: Engine, connection: Connection, person: Add
) -> None:
    id = hand_in(connection, person("ada"))
    with key.conninfo() as address:
        far = joined(make_url(address))
        old = take(connection, far)
        assert sweep_once(owner, lease_seconds=-1).again == (id,)
        near = joined(server.url.set(username=key.address.username, password=key.address.password))
        new = take(connection, near)
        assert near.finish(new.attempt, graded(new, 1.0))
        assert not far.finish(old.attempt, graded(old, 9.0))
        assert far.take(1) is None
        far.close()
        near.close()
    assert gradings.status(connection, [id])[id].score == 1.0


def test_the_gate_ends_what_does_not_speak_tls(gate: str, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as link:
        link.sendall(b"GET / HTTP/1.1\r\n\r\n")
        while link.recv(1024):
            pass
