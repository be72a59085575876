"""The web process as it is run behind a proxy, with TLS, under a path: a real one of each."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from sqlalchemy import URL, Connection

from harness.arena.processes import COOKIE_VARIABLE, DATABASE_VARIABLE
from harness.arena.store import people
from harness.arena.store.people import Person
from tests.arena.test_foreign_database import free_port
from tests.board import factory
from tests.waiting import eventually

ROOT = "/arena"


@pytest.fixture
def web(rules: Path, web_url: URL) -> Iterator[int]:
    """The arena's web process as `arena run --root /arena --https --proxy 127.0.0.1` starts it."""
    rules.write_text("[limits]\nper_address_per_minute = 60\n")
    port = free_port()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "harness.arena.web.server", "--port", str(port)),
            *("--root", ROOT, "--secure", "--proxy", "127.0.0.1"),
            *("--rules", str(rules), "--signing-key", str(rules.with_name("key.pem"))),
        ],
        stdin=subprocess.PIPE,
        env={
            **os.environ,
            DATABASE_VARIABLE: web_url.render_as_string(hide_password=False),
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


class Proxy:
    """Takes TLS off, takes the path off, says for whom it asks, and passes everything on as it
    comes: one connection for each request."""

    def __init__(self, to: int, certificate: Path) -> None:
        self._to = to
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self.port = 0

    def __enter__(self) -> Proxy:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for each in asyncio.all_tasks() - {asyncio.current_task()}:
            each.cancel()  # what is live has no end

    async def _pass_on(self, asked: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        head = await asked.readuntil(b"\r\n\r\n")
        first, *headers = head.decode().rstrip().split("\r\n")
        kept = [each for each in headers if not each.lower().startswith(("connection:", "x-for"))]
        stranger = next((each[9:] for each in headers if each.startswith("x-test: ")), "10.0.0.1")
        length = next((int(each[16:]) for each in headers if "content-length" in each.lower()), 0)
        body = await asked.readexactly(length)
        first = first.replace(f" {ROOT}/", " /", 1)
        told = f"X-Forwarded-For: {stranger.strip()}", "X-Forwarded-Proto: https"
        back, on = await asyncio.open_connection("127.0.0.1", self._to)
        try:
            on.write(
                "\r\n".join([first, *kept, *told, "Connection: close", "", ""]).encode() + body
            )
            while part := await back.read(65536):
                answer.write(part)
                await answer.drain()
        except ConnectionError:
            pass  # the visitor has gone
        finally:
            on.close()
            answer.close()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Of 127.0.0.1, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    path = tmp_path / "certificate.pem"
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(pem)
    )
    return path


@pytest.fixture
def visitor(web: int, certificate: Path) -> Iterator[httpx.Client]:
    """A browser's requests, by https alone."""
    with Proxy(web, certificate) as proxy:
        context = ssl.create_default_context(cafile=str(certificate))
        address = f"https://127.0.0.1:{proxy.port}{ROOT}"
        with httpx.Client(base_url=address, verify=context, timeout=60) as client:
            yield client


@pytest.fixture
def key(connection: Connection, person: Callable[..., Person]) -> str:
    return people.new_key(connection, person("ada").id, "test")


def test_a_person_signs_in_submits_and_watches(visitor: httpx.Client, key: str) -> None:
    page = visitor.get("/account")
    assert f'href="{ROOT}/assets/site.css"' in page.text
    assert visitor.get("/assets/site.css").status_code == 200
    answer = visitor.post("/signin", data={"key": key})
    assert answer.headers["location"] == f"{ROOT}/submit"
    cookie = answer.headers["set-cookie"].lower()
    assert "secure" in cookie and "httponly" in cookie and f"path={ROOT}/" in cookie
    assert visitor.get("/submit").status_code == 200, "the cookie came along"
    bearer = {"Authorization": f"Bearer {key}"}
    sent = visitor.post("/api/v1/submissions", content=factory.SOURCE, headers=bearer)
    assert sent.status_code == 202
    assert sent.headers["location"] == f"{ROOT}/api/v1/submissions/{sent.json()['id']}"
    # What is live comes at once, and not when it is over: nobody grades here.
    with visitor.stream("GET", f"/api/v1/submissions/{sent.json()['id']}/events") as events:
        first = next(events.iter_lines())
    assert first == "event: status"


def test_each_address_behind_the_proxy_has_a_limit_of_its_own(visitor: httpx.Client) -> None:
    def asks(address: str) -> int:
        return visitor.get("/rules", headers={"x-test": address}).status_code

    assert eventually(lambda: asks("10.0.0.7") == 429, "one address has asked too much")
    assert asks("10.0.0.8") != 429
