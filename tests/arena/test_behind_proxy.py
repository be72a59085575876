"""The web process behind a proxy with TLS, under a path."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Connection, Engine

from harness.arena.processes import COOKIE_VARIABLE, DATABASE_VARIABLE, Settings
from harness.arena.store import people
from tests.arena.submitting import Add, free_port
from tests.board import factory
from tests.waiting import eventually

ROOT = "/arena"


@pytest.fixture
def web(rules: Path, engine: Engine) -> Iterator[int]:
    """The arena's web process as `arena run --root /arena --https --proxy 127.0.0.1` starts it."""
    rules.write_text("[limits]\nper_address_per_minute = 60\n")
    port = free_port()
    settings = Settings(
        rules=rules,
        signing_key=rules.with_name("key.pem"),
        port=port,
        root=ROOT,
        secure=True,
        proxy="127.0.0.1",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.arena.web.server", settings.model_dump_json()],
        stdin=subprocess.PIPE,
        env={
            **os.environ,
            DATABASE_VARIABLE: engine.url.render_as_string(hide_password=False),
            COOKIE_VARIABLE: "test",
        },
    )
    try:
        eventually(lambda: reached(f"http://127.0.0.1:{port}/account"), "the web process answers")
        yield port
    finally:
        process.terminate()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


def reached(address: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(address).status_code == 200
    return False


@pytest.fixture
def visitor(web: int) -> Iterator[httpx.Client]:
    """A person behind a proxy that removes TLS and the path."""
    headers = {"X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "https"}
    with httpx.Client(base_url=f"http://127.0.0.1:{web}", headers=headers, timeout=60) as client:
        yield client


@pytest.fixture
def key(connection: Connection, person: Add) -> str:
    return people.new_key(connection, person("ada").id, "test")


def test_a_person_signs_in_submits_and_watches(visitor: httpx.Client, key: str) -> None:
    """Each address behind the proxy has its own limit of requests."""
    page = visitor.get("/account")
    assert f'href="{ROOT}/assets/site.css"' in page.text
    assert visitor.get("/assets/site.css").status_code == 200
    answer = visitor.post("/signin", data={"key": key})
    assert answer.headers["location"] == f"{ROOT}/submit"
    cookie_text = answer.headers["set-cookie"]
    cookie = cookie_text.lower()
    assert "strict-transport-security" in answer.headers
    for attribute in ("secure", "httponly", "samesite=lax", f"path={ROOT}/"):
        assert attribute in cookie
    session = re.search(r"arena_session=([^;]+)", cookie_text)
    assert session is not None
    assert visitor.get("/submit", cookies={"arena_session": session[1]}).status_code == 200
    bearer = {"Authorization": f"Bearer {key}"}
    sent = visitor.post("/api/v1/submissions", content=factory.SOURCE, headers=bearer)
    assert sent.status_code == 202
    assert sent.headers["location"] == f"{ROOT}/api/v1/submissions/{sent.json()['id']}"
    # Events arrive at once, not at the end: no worker grades here.
    with visitor.stream(
        "GET", f"/api/v1/submissions/{sent.json()['id']}/events", headers=bearer
    ) as events:
        first = next(events.iter_lines())
    assert first == "event: status"

    def asks(address: str) -> int:
        return visitor.get("/problem", headers={"X-Forwarded-For": address}).status_code

    assert eventually(lambda: asks("10.0.0.7") == 429, "one address has asked too much")
    assert asks("10.0.0.8") != 429
