"""Tests of signing in through a real OpenID provider, which they start."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import oidc_provider_mock
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection

from harness.arena.store import contest, course, people
from harness.arena.store.people import Role


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with oidc_provider_mock.run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def provider(rules: Path, issuer: str) -> str:
    """The address of a provider that the rules name."""
    rules.write_text(
        f'[openid]\nissuer = "{issuer}"\nclient_id = "arena"\nclient_secret = "secret"\n'
    )
    return issuer


def vouch(provider: str, subject: str, **claims: object) -> None:
    """Register a person with the provider."""
    httpx.put(f"{provider}/users/{subject}", json=claims).raise_for_status()


def sign_in(client: TestClient, subject: str) -> httpx.Response:
    """Sign in as a browser does: go to the provider, name the subject there, and come back."""
    there = client.get("/openid/begin").headers["location"]
    assert "code_challenge_method=S256" in there, "a code that others read is of no use"
    answer = httpx.post(there, data={"sub": subject})
    assert answer.status_code == 302, answer.text
    returned = urlsplit(answer.headers["location"])
    return client.get(f"{returned.path}?{returned.query}")


def name_of(client: TestClient) -> str:
    return str(client.get("/who").json()["name"])


def test_a_person_signs_in_and_is_recognised_later(
    client: TestClient, provider: str, connection: Connection
) -> None:
    vouch(provider, "4711", preferred_username="ada", email="ada@example.org")
    other = {"issuer": "https://elsewhere.example.org", "subject": "4711"}
    people.add_person(connection, "ada", Role.CONTESTANT, **other)
    assert "Sign in with your account" in client.get("/account").text
    for _ in range(2):
        assert sign_in(client, "4711").status_code == 303
        assert name_of(client) == "ada 2", "a namesake gets a number"
        client.cookies.clear()
    assert [each.name for each in people.everybody(connection)] == ["ada", "ada 2"]
    actions = [line["action"] for line in contest.audit_log(connection)]
    assert actions == ["sign in", "sign in", "join"]


ROSTER = "name,e-mail,group\nAda Lovelace,Ada@example.org,Monday\n"
BEFORE, AFTER, NEVER = "before", "after", "never"


@pytest.mark.parametrize(
    ("imported", "claims", "name", "section"),
    [
        (BEFORE, {"email": "ada@example.org"}, "Ada Lovelace", "Monday"),
        (AFTER, {"email": "ada@example.org"}, "ada", "Monday"),
        (BEFORE, {"email": "ada@example.org", "email_verified": False}, "ada", None),
        (BEFORE, {"email": "ada@example.org", "email_verified": "false"}, "ada", None),
        (BEFORE, {"email": "eve@example.org"}, "eve", None),
        (BEFORE, {"email": "eve@example.org", "class": "Tuesday"}, "eve", "Tuesday"),
        (NEVER, {"email": "ada@example.org", "class": ["Tuesday", "all"]}, "ada", "Tuesday"),
    ],
)
def test_people_get_their_section_from_the_roster_or_a_claim(
    imported: str,
    claims: dict[str, object],
    name: str,
    section: str | None,
    client: TestClient,
    provider: str,
    rules: Path,
    connection: Connection,
) -> None:
    rules.write_text(f'{rules.read_text()}section = "class"\n')
    organiser = people.add_person(connection, "organiser", Role.ORGANISER)
    vouch(provider, "4711", **claims)
    roster = course.read_roster(ROSTER)
    if imported == BEFORE:
        course.import_roster(connection, organiser, roster)
    sign_in(client, "4711")
    if imported == AFTER:
        assert course.import_roster(connection, organiser, roster) == [], "they need no link"
    assert name_of(client) == name
    (joined,) = [each for each in people.everybody(connection) if each.name == name]
    assert joined.section == section


def test_joining_by_link_and_by_provider_is_one_person(
    client: TestClient, provider: str, connection: Connection
) -> None:
    organiser = people.add_person(connection, "organiser", Role.ORGANISER)
    ((_, link),) = course.import_roster(connection, organiser, course.read_roster(ROSTER))
    ada = people.join(connection, link, "")
    vouch(provider, "4711", email="ada@example.org")
    assert sign_in(client, "4711").status_code == 303
    assert name_of(client) == "Ada Lovelace"
    vouch(provider, "4711", email="ada@elsewhere.example.org")
    vouch(provider, "666", email="ada@example.org")
    for subject, name in (("4711", "Ada Lovelace"), ("666", "ada")):
        client.cookies.clear()
        sign_in(client, subject)
        assert name_of(client) == name, "the provider's subject counts from now on"
    people.set_disabled(connection, ada.id, True)
    client.cookies.clear()
    answer = sign_in(client, "4711")
    assert answer.status_code == 422 and "locked you out" in answer.text
    assert len(people.everybody(connection)) == 3


def test_an_unrequested_code_signs_no_one_in(client: TestClient, provider: str) -> None:
    answer = client.get("/openid/back?code=stolen&state=guessed")
    assert answer.status_code == 403 and "did not confirm" in answer.text
    assert "set-cookie" not in answer.headers


def test_a_provider_that_does_not_answer_is_reported(client: TestClient, rules: Path) -> None:
    rules.write_text(
        '[openid]\nissuer = "http://127.0.0.1:9"\nclient_id = "a"\nclient_secret = "b"\n'
    )
    assert "does not answer" in client.get("/openid/begin").text


@pytest.mark.parametrize(
    ("claim", "status"),
    [("cs", 303), (["law", "cs"], 303), ("law", 403), ("physics", 403), (None, 403)],
)
def test_only_people_with_the_required_claim_sign_in(
    claim: str | list[str] | None, status: int, client: TestClient, provider: str, rules: Path
) -> None:
    rules.write_text(f'{rules.read_text()}require = {{ department = "cs" }}\n')
    vouch(provider, "4711", name="ada", **({"department": claim} if claim else {}))
    assert sign_in(client, "4711").status_code == status
