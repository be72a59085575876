"""Tests of the API: submit, watch, read and cancel, and one clear sentence for each error."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import Engine, text

from harness.arena.store.people import Role
from harness.board.document import Document
from tests.arena.submitting import Add, FakeWorker, Key
from tests.board import factory

SOURCE = factory.SOURCE.encode()
SUBMISSIONS = "/api/v1/submissions"


@pytest.fixture
def ada(person: Add, key: Key) -> dict[str, str]:
    return key(person("ada"))


def problem(answer: Response, status: int) -> str:
    """Return the sentence of an error."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    sentence = str(answer.json()["detail"])
    assert answer.json()["status"] == status
    assert not sentence[0].islower() and sentence[-1] == "."
    return sentence


@pytest.mark.parametrize("form", [False, True])
def test_a_file_is_sent_as_a_form_or_a_body(
    form: bool, client: TestClient, ada: dict[str, str]
) -> None:
    if form:
        sent = client.post(SUBMISSIONS, files={"file": ("my tile.cu", SOURCE)}, headers=ada)
    else:
        sent = client.post(f"{SUBMISSIONS}?name=my tile.cu", content=SOURCE, headers=ada)
    assert sent.status_code == 202, sent.text
    status = sent.json()
    assert (status["name"], status["author"], status["state"]) == ("my tile", "ada", "queued")
    assert (status["place"], status["seconds_left"]) == (1, None), "no worker is there"
    assert client.get(sent.headers["location"], headers=ada).json()["id"] == status["id"]
    assert client.get(f"{SUBMISSIONS}/{status['id']}/source", headers=ada).content == SOURCE
    assert [each["id"] for each in client.get(SUBMISSIONS, headers=ada).json()] == [status["id"]]
    assert client.get(f"{SUBMISSIONS}?offset=1", headers=ada).json() == []


def test_the_same_request_sent_again_is_the_same_submission(
    client: TestClient, ada: dict[str, str], person: Add, key: Key, rules: Path
) -> None:
    """Even after the end of the contest: the first request came in time."""
    headers = ada | {"Idempotency-Key": "lost-connection"}
    ids = {client.post(SUBMISSIONS, content=SOURCE, headers=headers).json()["id"] for _ in range(3)}
    assert len(ids) == 1
    anothers = key(person("bob")) | {"Idempotency-Key": "lost-connection"}
    assert client.post(SUBMISSIONS, content=SOURCE, headers=anothers).json()["id"] not in ids
    other = client.post(SUBMISSIONS, content=SOURCE + b"// more\n", headers=headers)
    assert "idempotency key" in problem(other, 409)
    rules.write_text("ends = 2026-01-01T00:00:00Z\n")
    assert client.post(SUBMISSIONS, content=SOURCE, headers=headers).json()["id"] in ids
    assert "contest ended" in problem(client.post(SUBMISSIONS, content=SOURCE, headers=ada), 403)


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        (b"", 422, "The file is empty"),
        (b"x" * (2 << 20), 413, "larger than 1 MiB"),
        (b"x" * ((1 << 20) + 1), 422, "larger than 1 MiB"),
        (b"int x;\n\0\n", 422, "Line 2 has a NUL byte"),
    ],
)
def test_an_unreadable_file_is_refused_in_a_sentence(
    content: bytes, status: int, sentence: str, client: TestClient, ada: dict[str, str]
) -> None:
    assert sentence in problem(client.post(SUBMISSIONS, content=content, headers=ada), status)
    assert client.get(SUBMISSIONS, headers=ada).json() == []


def test_an_impossible_name_or_no_file_is_refused(client: TestClient, ada: dict[str, str]) -> None:
    sent = client.post(SUBMISSIONS, params={"name": ".."}, content=SOURCE, headers=ada)
    assert "The kernel's name" in problem(sent, 422)
    sent = client.post(SUBMISSIONS, files={"other": ("a.cu", SOURCE)}, headers=ada)
    assert "no file" in problem(sent, 422)
    broken = ada | {"Content-Type": "multipart/form-data"}
    problem(client.post(SUBMISSIONS, content=b"--x\r\n", headers=broken), 400)


def test_a_graded_submission_has_a_signed_report(
    client: TestClient, ada: dict[str, str], worker: FakeWorker
) -> None:
    id = client.post(SUBMISSIONS, content=SOURCE, headers=ada).json()["id"]
    assert "no report yet" in problem(client.get(f"{SUBMISSIONS}/{id}/report", headers=ada), 409)
    worker.grade(1.5)
    document = Document.parse(
        client.get(f"{SUBMISSIONS}/{id}/report", headers=ada).text, "the arena"
    )
    assert document.signature is not None, "so that others know where it comes from"
    report = document.report
    assert report.score is not None and report.score.ratio == 1.5
    (board,) = client.get("/api/v1/board").json()
    assert board["gpu"] == factory.H100 and board["rows"][0]["author"] == "ada"


def test_an_unreadable_rule_leaves_the_former_rules_in_force(
    client: TestClient, ada: dict[str, str], rules: Path, person: Add, key: Key
) -> None:
    rules.write_text("[limits]\nin_flight = 1\n")
    assert client.post(SUBMISSIONS, content=SOURCE, headers=ada).status_code == 202
    rules.write_text("[limits]\nin_flight = none\n")
    refused = client.post(SUBMISSIONS, content=SOURCE, headers=ada)
    organiser = key(person("olga", Role.ORGANISER))
    shown = client.get("/organiser", headers=organiser).json()["rules_problem"]
    assert f"{rules} is no TOML: " in shown and "line 2" in shown
    assert "not graded yet" in problem(refused, 429)
    assert int(refused.headers["retry-after"]) > 0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nowhere", 404),
        ("GET", f"{SUBMISSIONS}/%2e%2e%2f%2e%2e%2fetc%2fpasswd", 404),
        ("GET", f"{SUBMISSIONS}/0123456789abcdef", 404),
        ("GET", f"{SUBMISSIONS}/x' OR 1=1 --", 404),
        ("DELETE", SUBMISSIONS, 405),
        ("GET", f"{SUBMISSIONS}?limit=1000000", 422),
    ],
)
def test_an_invalid_request_gets_a_sentence(
    method: str, path: str, status: int, client: TestClient, ada: dict[str, str]
) -> None:
    problem(client.request(method, path, headers=ada), status)


def test_every_answer_says_what_a_browser_may_do_with_it(client: TestClient) -> None:
    paths = "/api/v1/board", "/api/v1/submissions", "/nowhere", "/account", "/problem", "/join/x"
    for path in paths:
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy and "form-action 'self'" in policy
        assert "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == headers["cross-origin-opener-policy"] == "same-origin"
    assert client.head("/problem").status_code == 200
    charts = client.get("/").headers["content-security-policy"]
    assert "script-src 'self';" in charts and charts.count("unsafe") == 1
    assert "style-src 'self' 'unsafe-inline';" in charts


def test_health_says_what_is_missing(client: TestClient, engine: Engine) -> None:
    assert "No worker" in problem(client.get("/healthz"), 503)
    worker = FakeWorker(engine)
    assert client.get("/healthz").text == "ok\n"
    silent = text("UPDATE workers SET seen = now() - interval '16 seconds'")
    worker.do(lambda connection: connection.execute(silent))
    assert "No worker has sent a heartbeat within 15 s." in problem(client.get("/healthz"), 503)
