"""Tests of hostile requests over a real connection: slow, huge, cut off or invalid; never a 5xx."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import Connection

from harness.arena.store import people, watching
from harness.arena.store.people import Role
from tests.arena.submitting import Add, Key
from tests.board import factory
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from schemathesis import Case

SOURCE = factory.SOURCE.encode()


def connect(address: str) -> socket.socket:
    split = urlsplit(address)
    assert split.hostname and split.port
    return socket.create_connection((split.hostname, split.port), timeout=PATIENCE)


def head(key: dict[str, str], length: int) -> bytes:
    lines = ["POST /api/v1/submissions HTTP/1.1", "Host: x", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in key.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_request_whose_body_stalls_times_out(
    address: str, person: Add, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.arena.web.guard.BODY_SECONDS", 0.5)
    with connect(address) as link:
        link.sendall(head(key(person("ada")), 1000) + b"x" * 10)
        assert link.recv(1000).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("declared", [True, False])
def test_a_huge_body_is_not_read_to_its_end(
    declared: bool, address: str, person: Add, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.arena.web.guard.MAX_READ", 1000)
    sent = head(key(person("ada")), 1 << 40)
    if not declared:
        sent = sent.replace(b"Content-Length: %d" % (1 << 40), b"Transfer-Encoding: chunked")
    with connect(address) as link:
        link.sendall(sent + (b"" if declared else b"7d0\r\n" + b"x" * 2000))
        assert link.recv(1000).startswith(b"HTTP/1.1 413")


def test_a_connection_lost_during_a_submission_leaves_nothing(
    address: str, person: Add, key: Key, connection: Connection
) -> None:
    with connect(address) as link:
        link.sendall(head(key(person("ada")), len(SOURCE)) + SOURCE[:100])
        link.shutdown(socket.SHUT_WR)
        while link.recv(1000):  # until the other side has given up, too
            pass
    assert watching.recent(connection) == []
    assert httpx.get(f"{address}/api/v1/board").status_code == 200


def test_no_request_of_the_schema_causes_a_server_error(
    address: str, rules: Path, connection: Connection, person: Add
) -> None:
    import schemathesis
    from schemathesis.checks import not_a_server_error

    rules.write_text("[limits]\nper_address_per_minute = 1000000\n")
    key = people.new_key(connection, person("olga", Role.ORGANISER).id, "test")
    # Not in this process: what schemathesis starts there outlives the test.
    schema = schemathesis.openapi.from_url(f"{address}/api/v1/openapi.json")
    schema = schema.exclude(path_regex="/events$")  # endless until a worker grades

    for operation in schema.get_all_operations():

        @settings(max_examples=10, suppress_health_check=list(HealthCheck), deadline=None)
        @given(case=operation.ok().as_strategy())
        def holds(case: Case) -> None:
            case.call_and_validate(
                headers={"Authorization": f"Bearer {key}"}, checks=(not_a_server_error,)
            )

        holds()
