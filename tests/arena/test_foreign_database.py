"""An arena in somebody else's database: on a server that is not its own, over TCP, as an owner who
is no superuser."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from sqlalchemy import URL

from harness.arena.data_dir import Secrets
from harness.arena.postgres import OWNER, Server
from harness.arena.store import preparing
from harness.arena.store.database import conninfo
from harness.arena.store.preparing import DatabaseError, prepare
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
PASSWORD = "of the course: #/@?'"
SIGNATURE = "(const float* A, const float* B, float* C, int M, int N, int K)"
BROKEN = f"__global__ void matrix_multiplication_kernel{SIGNATURE} {{ int x = ; }}\n"


@pytest.fixture(scope="module")
def machine() -> Iterator[URL]:
    """A PostgreSQL as an administrator has it, reached as its superuser."""
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        made = Server(Path(folder, "cluster"), PASSWORD)  # never started as the arena's
        with open(made.folder / "pg_hba.conf", "a") as hba:
            hba.write("host all all 127.0.0.1/32 scram-sha-256\n")
        port = free_port()
        process = subprocess.Popen(
            [
                made.programs / "postgres",
                *("-D", made.folder, "-k", "", "-c", "fsync=off"),
                *("-c", "listen_addresses=127.0.0.1", "-p", str(port)),
            ],
            cwd=made.folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=made.user,
            group=made.user,
            extra_groups=[] if made.user else None,
        )
        url = URL.create(
            "postgresql+psycopg", OWNER, PASSWORD, "127.0.0.1", port=port, database=OWNER
        )
        try:
            eventually(lambda: answers(url), "the server answers")
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answers(url: URL) -> bool:
    try:
        psycopg.connect(conninfo(url)).close()
    except psycopg.OperationalError:
        return False
    return True


def say(machine: URL, *statements: str) -> None:
    with psycopg.connect(conninfo(machine), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def course(machine: URL, database: str, owner: bool = True) -> URL:
    """A database, and somebody who is to keep an arena in it."""
    password = PASSWORD.replace("'", "''")
    user = f"{database}_course"
    say(
        machine,
        f"CREATE ROLE {user} LOGIN PASSWORD '{password}'",
        f"CREATE DATABASE {database} {f'OWNER {user}' if owner else ''}",
    )
    return machine.set(username=user, database=database)


def refused(url: URL, match: str) -> None:
    with pytest.raises(DatabaseError, match=match) as caught:
        prepare(url, Secrets.fresh())
    assert "\n" not in str(caught.value) and PASSWORD not in str(caught.value)


def test_an_arena_is_run_in_it(machine: URL, tmp_path: Path) -> None:
    url = course(machine, "contest").set(drivername="postgresql")
    data, port = tmp_path / "data", free_port()
    data.mkdir()
    (data / "rules.toml").write_text("quick = true\n")
    with open(tmp_path / "output", "w+") as output:
        arena = subprocess.Popen(
            [
                *(sys.executable, "-m", "harness", "arena", "--data", str(data)),
                *("--port", str(port)),
                *("--database", url.render_as_string(hide_password=False)),
            ],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:

            def key() -> str | None:
                found = re.search(r"organiser's key is (\S+)", Path(output.name).read_text())
                return found and found[1]

            headers = {"Authorization": f"Bearer {eventually(key, 'the key is shown')}"}
            started = "The arena is at"
            eventually(lambda: started in Path(output.name).read_text(), "it answers")
            with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1/", headers=headers) as api:
                id = api.post("submissions", content=BROKEN).json()["id"]

                def verdict() -> str | None:
                    return str(api.get(f"submissions/{id}").json()["verdict"] or "")

                assert eventually(verdict, "it is judged") == "compile-error"

            def logged() -> list[str]:
                lines = Path(output.name).read_text().splitlines()
                about = [json.loads(line) for line in lines if id in line]
                return [line["message"] for line in about if line.get("submission") == id]

            assert eventually(lambda: logged()[1:], "its log says so") == ["graded"]
        finally:
            arena.terminate()
            arena.wait()
    assert not (data / "database").exists(), "it has no server of its own"
    prepare(url.set(drivername="postgresql+psycopg"), Secrets.fresh())  # moved to another machine


def test_too_old(machine: URL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "OLDEST_POSTGRES", 99)
    refused(course(machine, "old"), r"is PostgreSQL \d\d; 99 or newer is needed")


def test_not_its_owner(machine: URL) -> None:
    url = course(machine, "anothers", owner=False)
    refused(url, "anothers_course does not own the database anothers: .* OWNER TO anothers_course;")


def test_another_encoding(machine: URL) -> None:
    url = course(machine, "ascii", owner=False).set(database="latin")
    say(
        machine,
        "CREATE DATABASE latin OWNER ascii_course ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0",
    )
    refused(url, "is in LATIN1; make one with ENCODING 'UTF8'")


@pytest.mark.parametrize(
    ("part", "wrong", "why"),
    [
        ("password", "guessed", 'password authentication failed for user "postgres"'),
        ("username", "nobody_of_that_name", "password authentication failed"),
        ("database", "no_such", 'database "no_such" does not exist'),
        ("port", 1, "Connection refused"),
        ("host", "nowhere.invalid", "could not|failed to|Name or service"),
    ],
)
def test_what_cannot_be_reached_says_why(
    part: str, wrong: str | int, why: str, machine: URL
) -> None:
    url = machine.set(**{part: wrong})
    refused(url, f"cannot reach the database .*: .*({why}).*; look at the address")
