"""Tests of authorisation: every route with every role, in every state of the contest.

The tables are compared with the routes that exist, so a new route without a row fails. New ones of
organisers and workers must refuse everybody else.
"""

import csv
import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, Engine, text

from harness.arena.store import contest, gradings, people, watching
from harness.arena.store.people import Person, Role
from harness.arena.web.app import ROUTERS, application
from harness.arena.web.context import Site
from harness.arena.web.guard import COOKIE
from tests.arena.submitting import Add, FakeWorker, submit
from tests.board import factory
from tests.waiting import PATIENCE

SOURCE = factory.SOURCE.encode()
ROLES = ("stranger", "other", "owner", "organiser")
SENT = {"a body": {"content": SOURCE}, "a file": {"files": {"file": ("a.cu", SOURCE)}}}
NOBODY = "00000000-0000-0000-0000-000000000000"

OPEN = "200 200 200 200"
OWN = "404 404 200 200"
ORGANISERS = "401 403 403 200"
ACTS = "401 403 403 303"
"""A form of organisers."""
WORKERS = "401 401 401 401"


class Row(NamedTuple):
    """The statuses that a route answers to each role."""

    statuses: str
    sent: dict[str, Any] = {}  # noqa: RUF012 - nothing changes it
    address: str | None = None
    """The address to request, if it is not the route's own; `Scene.words` fills in its names."""


def read_routes() -> Iterator[tuple[str, Row]]:
    """Read the routes that routes.csv lists, with the fields of their forms."""
    with open(Path(__file__).with_name("routes.csv"), newline="") as file:
        for row in csv.DictReader(file):
            fields = dict(parse_qsl(row["sent"], keep_blank_values=True))
            sent = SENT.get(row["sent"]) or ({"data": fields} if fields else {})
            statuses = " ".join(row[role] for role in ROLES)
            yield row["route"], Row(statuses, sent, row["address"] or None)


ROUTES = dict(read_routes())
ENDLESS = {"GET /live/board"}
"""A stream without an end; the boards that it tells of have rows."""


def routes() -> set[str]:
    return {
        f"{method} {route.path}"
        for router in ROUTERS
        for route in router.routes
        for method in route.methods or ()  # type: ignore[attr-defined]
    }


# All other pages of organisers answer alike, and so do the requests of workers.
ROUTES |= {
    route: Row(statuses)
    for prefix, statuses in (("/organiser", ORGANISERS), ("/api/v1/workers", WORKERS))
    for route in routes() - ROUTES.keys()
    if route.split()[1].startswith(prefix)
}


def test_every_route_has_a_row() -> None:
    assert routes() == ROUTES.keys() | ENDLESS


class Scene:
    """A contest with a graded submission of its owner's."""

    def __init__(self, client: TestClient, connection: Connection, engine: Engine) -> None:
        self.client = client
        self.connection = connection
        self.engine = engine
        self.people = {
            name: people.add_person(connection, name, role)
            for name, role in (
                ("other", Role.CONTESTANT),
                ("owner", Role.CONTESTANT),
                ("organiser", Role.ORGANISER),
                ("colleague", Role.ORGANISER),
            )
        }
        self.id = submit(connection, self.people["owner"], "fast")
        worker = FakeWorker(engine)
        worker.grade(1.5)
        worker.leave()
        report = watching.status(connection, [self.id])[self.id].report or ""
        organiser = self.people["organiser"].id
        theirs = people.new_key(connection, self.people["colleague"].id, "another's")
        self.words = {
            "id": self.id,
            "entry": report[:16],
            "owner": str(self.people["owner"].id),
            "link": people.invite(connection, organiser, Role.CONTESTANT, 1, ""),
            "stranger_hash": people.hashed(theirs),
            "own_machine": str(worker.machine),
            "session": NOBODY,
            "attempt": NOBODY,
        }
        self.theirs = theirs

    def bring_to(self, state: str) -> None:
        """Bring the owner's submission to this state."""
        connection, owner = self.connection, self.people["owner"]
        if state == "withdrawn":
            contest.withdraw(connection, owner, self.id)
        elif state == "disqualified":
            contest.disqualify(connection, self.people["organiser"], self.id, "copied")
        elif state != "done":
            self.id = submit(connection, owner, "another")
            self.words |= {"id": self.id, "entry": self.id}
            if state == "grading":
                FakeWorker(self.engine).take()
            elif state == "cancelled":
                gradings.cancel(connection, self.id)

    def ask(self, route: str, role: str) -> int:
        """Request the route with a key of this role, and return the status."""
        method, address, sent = self.request(route)
        return self.client.request(method, address, headers=self.key(role), **sent).status_code

    def request(self, route: str) -> tuple[str, str, dict[str, Any]]:
        """Return a request of this route: its method, its address and what is sent."""
        method, path = route.split()
        sent = {**ROUTES[route].sent}
        if "data" in sent:
            sent["data"] = {name: self._filled(value) for name, value in sent["data"].items()}
        return method, self._filled(ROUTES[route].address or path), sent

    def key(self, role: str) -> dict[str, str]:
        if role == "stranger":
            return {}
        key = people.new_key(self.connection, self.people[role].id, "test")
        return {"Authorization": f"Bearer {key}"}

    def _filled(self, value: object) -> str:
        return str(value).format(**self.words)


@pytest.fixture
def scene(client: TestClient, connection: Connection, engine: Engine) -> Scene:
    return Scene(client, connection, engine)


def at(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


STATES = {
    "before": f"begins = {at(1)}\nends = {at(9)}\n",
    "running": f"begins = {at(-1)}\nends = {at(9)}\n",
    "frozen": f"begins = {at(-9)}\nfrozen_from = {at(-1)}\nends = {at(9)}\n",
    "ended": f"begins = {at(-9)}\nfrozen_from = {at(-2)}\nends = {at(-1)}\n",
    "thawed": f"begins = {at(-9)}\nfrozen_from = {at(-2)}\nends = {at(-1)}\nthawed = true\n",
}


CLOSED = {"POST /submit": "401 403 403 303", "POST /api/v1/submissions": "401 403 403 202"}
THAWS = {"POST /organiser/thaw": ACTS}
SOURCES_OPEN = dict.fromkeys(
    (route for route, row in ROUTES.items() if row.statuses == OWN), OPEN
) | {
    "POST /api/v1/submissions/{id}/cancel": "403 403 409 409",
    "POST /submissions/{id}/{what}": "404 404 303 303",
}
CHANGED: dict[str, dict[str, str]] = {
    "before": CLOSED,
    "running": {},
    "frozen": THAWS,
    "ended": CLOSED | THAWS | SOURCES_OPEN,
    "thawed": CLOSED | THAWS | SOURCES_OPEN,
}
"""The routes that answer differently in a state of the contest, with their statuses by role."""

DEPEND_ON_STATE = {route for changed in CHANGED.values() for route in changed}

LAST = (
    "POST /organiser/disqualify",
    "POST /submissions/{id}/{what}",
    "POST /organiser/reinstate",
    "POST /organiser/thaw",
    "POST /signout/everywhere",
)


@pytest.mark.parametrize("state", STATES)
def test_every_route_answers_every_role_in_every_state(
    state: str, scene: Scene, rules: Path
) -> None:
    rules.write_text(f'sources = "after-end"\n{STATES[state]}')
    wrong = []
    routes = ROUTES if state == "running" else DEPEND_ON_STATE
    for route in sorted(routes, key=lambda route: (route in LAST, route)):
        statuses = CHANGED[state].get(route, ROUTES[route].statuses)
        for role, expected in zip(ROLES, statuses.split(), strict=True):
            before = len(contest.audit_log(scene.connection, limit=1000))
            found = scene.ask(route, role)
            if found != int(expected):
                wrong.append(f"{route} as {role}: {found}, not {expected}")
            acted = route.startswith("POST /organiser") and found < 400
            noted = len(contest.audit_log(scene.connection, limit=1000)) > before
            if noted < (acted or route == "POST /signin"):
                wrong.append(f"{route} as {role} is not in the audit log")
    assert wrong == []
    assert people.by_key(scene.connection, scene.theirs), "nobody revokes another's key"


REPORTS = ("GET /entries/{short}.{kind}", "GET /compare", "GET /api/v1/submissions/{id}/report")
READS = (
    "GET /submissions/{id}",
    "GET /api/v1/submissions/{id}",
    "GET /api/v1/submissions/{id}/source",
)
STREAMS = ("GET /live/submissions/{id}", "GET /api/v1/submissions/{id}/events")
"""These streams end with the grading, so the tests ask for them after that."""

SUBMISSION_STATES = {
    "queued": (409, 200, True),
    "grading": (409, 200, True),
    "done": (200, 409, True),
    "cancelled": (409, 409, True),
    "withdrawn": (200, 409, True),
    "disqualified": (200, 409, False),
}
"""For each state: the status of a request for the report, the status when the owner cancels, and
whether others may read the submission if sources are open."""


@pytest.mark.parametrize("sources", ["private", "open"])
@pytest.mark.parametrize("state", SUBMISSION_STATES)
def test_submissions_are_read_and_cancelled_as_the_table_says(
    state: str, sources: str, scene: Scene, rules: Path
) -> None:
    rules.write_text(f'sources = "{sources}"\n')
    scene.bring_to(state)
    report, cancels, is_open = SUBMISSION_STATES[state]
    others_read = sources == "open" and is_open
    expected = dict.fromkeys(REPORTS, report) | dict.fromkeys(READS, 200)
    if state not in ("queued", "grading"):
        expected |= dict.fromkeys(STREAMS, 200)
    for route, status in expected.items():
        others = status if others_read else 404
        found = [scene.ask(route, role) for role in ROLES]
        assert found == [others, others, status, status], route
    page = scene.client.get(f"/submissions/{scene.id}", headers=scene.key("owner")).text
    assert ("No worker is there" in page) == (state == "queued")
    page = scene.client.get(f"/submissions/{scene.id}", headers=scene.key("other")).text
    assert "<form" not in page, "no button leads to a refusal"
    assert scene.id not in scene.client.get("/compare", headers=scene.key("other")).text
    cancel = "POST /api/v1/submissions/{id}/cancel"
    found = [scene.ask(cancel, role) for role in ROLES]
    others = 403 if others_read else 404
    assert found == [others, others, cancels, 409]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
def test_a_form_of_another_site_is_refused(headers: dict[str, str], scene: Scene) -> None:
    session = people.sign_in(scene.connection, scene.people["organiser"].id)
    headers = {**headers, "Cookie": f"{COOKIE}={session}"}
    for route in sorted(routes()):
        if route.startswith("POST /"):
            _, address, sent = scene.request(route)
            found = scene.client.post(
                address, data=sent.get("data"), files=sent.get("files"), headers=headers
            )
            assert found.status_code == 403, route
            assert "another site" in found.text
    assert people.by_session(scene.connection, session) == scene.people["organiser"]


def test_a_form_of_the_arena_is_taken(scene: Scene) -> None:
    for said in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": "http://testserver"}):
        session = people.sign_in(scene.connection, scene.people["owner"].id)
        headers = {**said, "Cookie": f"{COOKIE}={session}"}
        assert scene.client.post("/signout", headers=headers).status_code == 303


@pytest.mark.parametrize(
    ("ends", "left"),
    [
        ("it expires", ["provider's", "key", "new key"]),
        ("its key expires", ["provider's"]),
        ("everywhere", ["key", "new key"]),
        ("locked out", []),
        ("keys reset", []),
        ("signed out", ["provider's", "key", "new key"]),
    ],
)
def test_a_session_ends(
    ends: str, left: list[str], connection: Connection, client: TestClient, person: Add, ada: Person
) -> None:
    key = people.new_key(connection, ada.id, "laptop", days=1)
    session = client.post("/signin", data={"key": key}).cookies[COOKIE]
    page = client.post("/account/keys", data={"label": "phone", "days": 1}).text
    new_key = re.search(r"arena_[\w-]+", page)[0]
    client.cookies.clear()
    of_provider, of_bob = (people.sign_in(connection, each.id) for each in (ada, person("bob")))
    cookies = {"own": session, "provider's": of_provider, "bob's": of_bob}
    ways = {name: {"Cookie": f"{COOKIE}={token}"} for name, token in cookies.items()}
    keys = {"key": key, "new key": new_key}
    ways |= {name: {"Authorization": f"Bearer {token}"} for name, token in keys.items()}

    def accepted() -> set[str]:
        return {name for name, way in ways.items() if client.get("/mine", headers=way).is_success}

    connection.execute(text("UPDATE sessions SET expires = expires - interval '13 days'"))
    assert accepted() == ways.keys()
    match ends:
        case "it expires":
            late = text("UPDATE sessions SET expires = now() WHERE hash = :hash")
            connection.execute(late, {"hash": people.hashed(session)})
        case "its key expires":
            connection.execute(text("UPDATE keys SET expires = expires - interval '1 day'"))
        case "everywhere":
            client.post("/signout/everywhere", headers=ways["own"])
        case "locked out":
            people.set_disabled(connection, ada.id, True)
        case "keys reset":
            new = people.reset_keys(connection, ada.id, "new")
            assert people.by_key(connection, new) == ada
        case "signed out":
            client.post("/signout", headers=ways["own"])
    assert accepted() == {*left, "bob's"}


@pytest.mark.parametrize("state", STATES)
def test_a_frozen_board_says_so_to_all_but_organisers(
    state: str, scene: Scene, rules: Path
) -> None:
    """The only result was submitted a moment ago, so after every freeze in the table."""
    rules.write_text(STATES[state])
    frozen = state in ("frozen", "ended")
    assert bool(scene.client.get("/api/v1/board").json()) == (not frozen)
    assert ("The board is frozen" in scene.client.get("/").text) == frozen
    earlier = text("UPDATE submissions SET received = received - interval '3 hours'")
    scene.connection.execute(earlier)
    rules.write_text(f"{STATES[state]}\n")
    assert scene.client.get("/api/v1/board").json(), "when it was graded makes no difference"
    assert scene.client.get("/api/v1/board", headers=scene.key("organiser")).json()


def test_an_organiser_thaws_the_board_from_the_page(scene: Scene, rules: Path) -> None:
    rules.write_text(STATES["ended"])
    assert scene.client.get("/api/v1/board").json() == []
    assert scene.ask("POST /organiser/thaw", "organiser") == 303
    assert scene.client.get("/api/v1/board").json() != []
    rules.write_text(STATES["frozen"])
    assert scene.client.get("/api/v1/board").json() == [], "a later freeze is another one"


def test_no_cache_keeps_a_source_or_report_and_no_browser_takes_it_for_a_page(scene: Scene) -> None:
    organiser = scene.key("organiser")
    kinds = {"cu": "plain", "source": "plain", "csv": "csv"}
    kinds |= dict.fromkeys(("json", "report", "who"), "json")
    entry = scene.words["entry"]
    paths = [f"/entries/{entry}.{kind}" for kind in ("html", "json", "cu")]
    paths += [f"/api/v1/submissions/{scene.id}/{what}" for what in ("report", "source")]
    for path in (*paths, f"/submissions/{scene.id}", "/mine", "/who", "/organiser/gradebook.csv"):
        answer = scene.client.get(path, headers=organiser)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store"), path
        assert kinds.get(re.split("[/.]", path)[-1], "html") in answer.headers["content-type"], path


def test_a_private_board_is_for_those_who_take_part(scene: Scene, rules: Path) -> None:
    rules.write_text("private_board = true\n")
    for route in ("GET /", "GET /{name}.html", "GET /api/v1/board"):
        assert scene.ask(route, "stranger") == 401
        assert scene.ask(route, "other") == 200


@pytest.mark.parametrize("sources", ["private", "open"])
def test_boards_link_to_what_their_reader_may_read(sources: str, scene: Scene, rules: Path) -> None:
    rules.write_text(f'sources = "{sources}"\n')
    for path, role in itertools.product(("/", "/runs.html"), ("stranger", "other", "organiser")):
        text = scene.client.get(path, headers=scene.key(role)).text
        links = {link.partition("#")[0] for link in re.findall(r'href="/?(entries/[^"]*)"', text)}
        assert bool(links) == (sources == "open" or role == "organiser"), (path, role)
        for link in links:
            answer = scene.client.get(f"/{link}", headers=scene.key(role))
            assert answer.status_code == 200, (link, role)


def test_others_know_a_contestant_by_a_pseudonym(scene: Scene, rules: Path) -> None:
    owner, client = scene.people["owner"], scene.client
    pseudonym = owner.pseudonym
    boards = ["/", "/runs.html", "/api/v1/board"]
    paths = [*boards, "/compare?of={id}&of={entry}", "/submissions/{id}"]
    paths += [f"/entries/{{entry}}.{kind}" for kind in ("html", "json")]
    paths += [f"/api/v1/submissions/{{id}}{what}" for what in ("", "/report", "/events")]
    for hidden in (True, False):
        rules.write_text(f'sources = "open"\npseudonyms = {str(hidden).lower()}\n')
        for path, role in itertools.product(paths, ROLES):
            text = client.get(path.format(**scene.words), headers=scene.key(role)).text
            known = not hidden or role == "organiser" or (role == "owner" and path not in boards)
            found = re.search(r"\bowner\b", text) is not None
            assert (found, pseudonym in text) == (known, not known), (path, role)
        report = client.get("/api/v1/submissions/{id}/report".format(**scene.words))
        assert ('"signature":' in report.text) != hidden
        shown = pseudonym if hidden else "owner"
        assert client.get("/who", headers=scene.key("owner")).json()["author"] == shown
        account = client.get("/account", headers=scene.key("owner")).text
        assert (pseudonym in account) == hidden
    people.set_disabled(scene.connection, owner.id, True)
    rules.write_text("pseudonyms = true\n")
    assert pseudonym in client.get("/").text, "also of who is locked out"


def test_a_stream_tells_no_name_that_has_a_pseudonym(
    address: str, connection: Connection, worker: FakeWorker, ada: Person, rules: Path
) -> None:
    rules.write_text('sources = "open"\npseudonyms = true\n')
    events = f"{address}/api/v1/submissions/{submit(connection, ada)}/events"
    with httpx.stream("GET", events, timeout=PATIENCE) as stream:
        lines = stream.iter_lines()
        assert stream.headers["x-accel-buffering"] == "no", "proxies send each event at once"
        first = [next(lines), next(lines)][1]
        worker.grade(1.0)
        shown = [first, *(line for line in lines if line.startswith("data: "))]
    assert '"done"' in shown[-1]
    assert all(ada.pseudonym in line and '"ada"' not in line for line in shown)


def test_others_failures_are_listed_only_where_the_rules_say(
    scene: Scene, rules: Path, worker: FakeWorker
) -> None:
    submit(scene.connection, scene.people["other"], "broken")
    worker.grade(report=factory.wrong("broken", "other"))
    assert "broken" not in scene.client.get("/runs.html").text
    assert "broken" in scene.client.get("/runs.html", headers=scene.key("organiser")).text
    rules.write_text("failures = true\n")
    assert "broken" in scene.client.get("/runs.html").text


def test_every_route_answers_odd_input_below_500(scene: Scene) -> None:
    for path in (
        "/entries/%00000000000000000.json",
        "/compare?of=%00",
        "/organiser/submissions?find=%00",
        "/join/%00",
        "/submissions/%00",
        "/%00.html",
    ):
        assert scene.client.get(path).status_code in (400, 404), path
    organiser = scene.key("organiser")
    for path, data in (
        ("/organiser/invite", {"note": "a\0b"}),
        ("/organiser/disqualify", {"id": scene.id, "reason": "a\0b"}),
        ("/account/keys", {"label": "a\0b"}),
    ):
        assert scene.client.post(path, data=data, headers=organiser).status_code == 400, path


def test_a_failure_of_ours_has_the_headers_of_every_answer(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("harness.arena.web.pages.starter.text", fails)
    answer = TestClient(application(site), raise_server_exceptions=False).get("/problem")
    assert answer.status_code == 500 and "log says why" in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "script-src 'self'" in answer.headers["content-security-policy"]
