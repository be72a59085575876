"""A course: its roster, deadlines, late submissions, gradebook; a student without a clone."""

import csv
import io
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, text

from harness.arena.problems import NotPossible
from harness.arena.progress import GradingProgress
from harness.arena.rules import Rules, RulesError, Sources, read
from harness.arena.store import course, people
from harness.arena.store.people import Person, Role
from harness.protocol.report import Accuracy, Stage
from tests.arena.submitting import Add, FakeWorker, Key, graded, submit
from tests.board import factory
from tests.judge.explain.solutions import recorded

ROSTER = "\ufeffName;Login;Section\nAda Lovelace;ada@example.org;A\nBob;bob@example.org;B\n"


@pytest.fixture
def organiser(person: Add, key: Key) -> dict[str, str]:
    return key(person("olga", Role.ORGANISER))


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def links(
    client: TestClient, organiser: dict[str, str], roster: str = ROSTER
) -> list[dict[str, str]]:
    """Import a roster, and return the lines of the answer; a link is the path of an address."""
    answer = client.post("/organiser/roster", data={"roster": roster}, headers=organiser)
    return lines(answer.text.replace("http://testserver", ""))


def test_a_roster_gives_each_student_a_personal_link(
    client: TestClient, organiser: dict[str, str], connection: Connection
) -> None:
    made = links(client, organiser)
    assert [each["login"] for each in made] == ["ada@example.org", "bob@example.org"]
    path = made[0]["link"]
    connection.execute(text("UPDATE invitations SET expires = expires - interval '29 days'"))
    assert "Ada Lovelace" in client.get(path).text
    assert client.post(path, data={"name": "somebody else"}).status_code == 200
    ada = people.named(connection, "ada lovelace")
    assert ada is not None and (ada.login, ada.section) == ("ada@example.org", "A")
    assert links(client, organiser) == [], "whoever has joined, or has a link, gets no second one"
    links(client, organiser, ROSTER.replace(";B", ";C"))
    assert people.open_invitations(connection)[0]["section"] == "C", "the roster's newest"
    connection.execute(text("UPDATE invitations SET expires = now()"))
    (bob,) = links(client, organiser)
    assert bob["login"] == "bob@example.org" and bob["link"] != made[1]["link"]


def test_namesakes_of_a_roster_all_join(
    client: TestClient, organiser: dict[str, str], connection: Connection
) -> None:
    roster = "Name\tE-mail\tGroup\nOlga\ta@x.org\tA\nPriya\tb@x.org\tB\nPriya\tc@x.org\tB\n"
    for each in links(client, organiser, roster):
        assert client.post(each["link"], data={"name": each["name"]}).status_code == 200
    found = {(each.name, each.login, each.section) for each in people.everybody(connection)}
    joined = {("Olga 2", "a@x.org", "A"), ("Priya", "b@x.org", "B"), ("Priya 2", "c@x.org", "B")}
    assert found == {("olga", None, None), *joined}


def test_a_program_does_with_a_key_what_the_forms_do(
    client: TestClient, organiser: dict[str, str], connection: Connection, worker: FakeWorker
) -> None:
    def get(path: str) -> Any:
        return client.get(f"/organiser{path}", headers=organiser).json()

    def post(path: str, **data: object) -> httpx.Response:
        return client.post(f"/organiser{path}", data=data, headers=organiser)

    link = post("/invite", uses=2, note="late ones").json()["link"]
    assert client.post(link.removeprefix("http://testserver"), data={"name": "ada"})
    other = post("/invite", role="organiser").json()["link"]
    assert client.post(other.removeprefix("http://testserver"), data={"name": "otto"})
    roles = {each["name"]: each["role"] for each in get("/people")["everybody"]}
    assert roles == {"olga": "organiser", "ada": "contestant", "otto": "organiser"}
    (ada,) = (each["id"] for each in get("/people")["everybody"] if each["name"] == "ada")
    assert post("/people/extend", id=ada, until="2026-12-20T19:00+01:00").status_code == 303
    (until,) = (each["extended"] for each in get("/people")["everybody"] if each["id"] == ada)
    assert datetime.fromisoformat(until) == datetime(2026, 12, 20, 18, tzinfo=UTC)
    key = {"Authorization": f"Bearer {post('/people/key', id=ada).json()['key']}"}
    assert client.get("/who", headers=key).json()["name"] == "ada"
    (invitation,) = get("/people")["invitations"]
    assert post("/invitations/end", id=invitation["id"]).status_code == 303
    assert get("/people")["invitations"] == []
    person = people.by_id(connection, ada)
    submit(connection, person, "fast")
    worker.grade(1.0)
    (status,) = get("/submissions")
    assert (status["author"], status["verdict"]) == ("ada", "accepted")
    post("/rejudge", which="chosen", ids=status["id"], reason="again")
    (rejudging,) = get("")["rejudgings"]
    found = get(f"/rejudgings/{rejudging['id']}")
    assert [each["submission"] for each in found["changes"]] == [status["id"]]
    assert post(f"/rejudgings/{rejudging['id']}/drop").status_code == 303
    assert get("/audit")["audit"][0]["action"] == "drop rejudging"
    refused = post(f"/rejudgings/{rejudging['id']}/drop")
    assert refused.status_code == 422 and "no such rejudging" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("roster", "said"),
    [
        ("", "names no column name"),
        ("name,section\nAda,A\n", "names no column login"),
        ("name,login\nAda,\n", "line 2 of the roster has no name or no login"),
        ("name,login\nAda,a\nBob,a\n", "the login a is twice"),
        ("name,login\nAda,a\n<b>,b\n", "in line 3 of the roster, a name has"),
        ("name,login\n", "from 1 to"),
    ],
)
def test_a_roster_that_cannot_be_read_is_said(roster: str, said: str) -> None:
    with pytest.raises(NotPossible, match=said):
        course.read_roster(roster)


NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RULES = Rules.model_validate(
    {
        "ends": NOON,
        "deadlines": {"B": NOON + 2 * HOUR},
        "late": {"days": 1, "factor": 0.5},
    }
)


@pytest.mark.parametrize(
    ("after", "section", "extension", "closed", "late"),
    [
        (-1, "A", None, False, False),
        (1, "A", None, False, True),
        (1, "B", None, False, False),
        (3, "B", None, False, True),
        (5, "A", 6, False, False),
        (7, "A", 6, False, True),
        (1, "B", 0, False, False),
        (25, "A", None, True, True),
        (25, "B", None, False, True),
    ],
)
def test_a_deadline_is_of_the_section_and_of_the_person(
    after: int, section: str, extension: int | None, closed: bool, late: bool
) -> None:
    extended = None if extension is None else NOON + extension * HOUR
    member = SimpleNamespace(section=section, extended=extended)
    at = NOON + after * HOUR
    assert (RULES.closed(at, member) is not None) == closed
    assert RULES.is_late(at, member) == late


def test_sources_are_open_once_every_section_has_ended() -> None:
    rules = RULES.model_copy(update={"sources": Sources.AFTER_END})
    found = [rules.sources_open(NOON + hours * HOUR) for hours in (-1, 1, 3)]
    assert found == [False, False, True]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("points = [{score = 2, points = 1}, {score = 1, points = 2}]", "must rise"),
        ("ends = 9999-12-31T23:59:59-12:00", "ends: .* less than"),
        ("ends = 2026", "ends: .* greater than"),
        ("[late]\ndays = inf", "days: .* less than"),
    ],
)
def test_rules_that_cannot_be_are_said(written: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(written)
    with pytest.raises(RulesError, match=said):
        read(path)


def test_the_gradebook_has_the_best_result_of_everybody(
    client: TestClient,
    organiser: dict[str, str],
    worker: FakeWorker,
    person: Add,
    key: Key,
    rules: Path,
    connection: Connection,
) -> None:
    rules.write_text(
        "points = [{score = 0, points = 9}, {score = 1.5, points = 20}]\n"
        f"ends = {datetime.now(UTC) + 24 * HOUR}\n[late]\ndays = 9\nfactor = 0.5\n"
    )
    person("nobody")
    for score in (0.9, 1.5, 1.2, 2.0, 3.0, 4.0):
        worker.submit(f"kernel {score}")
        accurate = Accuracy(grade="B" if score == 1.5 else "C", sizes=())
        report = factory.report(f"kernel {score}", "ada", score)
        worker.grade(report=report.model_copy(update={"accuracy": accurate}))
    change = "UPDATE submissions SET {} WHERE name = '{}'"
    late = "received = now() + interval '2 days'"
    for what, score in ((late, 2.0), ("withdrawn = now()", 3.0), ("disqualified = 'copied'", 4.0)):
        connection.execute(text(change.format(what, f"kernel {score}")))
    ada = people.named(connection, "ada")
    assert "The best score is 2.000." in client.get("/mine", headers=key(ada)).text
    first, second = lines(client.get("/organiser/gradebook.csv", headers=organiser).text)
    assert (first["name"], first["score"], first["points"]) == ("ada", "1.5", "20.0")
    assert (first["submissions"], first["kernel"], first["late"]) == ("6", "kernel 1.5", "False")
    assert (first["accuracy"], second["accuracy"]) == ("B", "")
    assert (second["name"], second["submissions"], second["points"]) == ("nobody", "0", "0.0")


def test_a_history_shows_what_changed_since_the_attempt_before(
    client: TestClient,
    organiser: dict[str, str],
    connection: Connection,
    worker: FakeWorker,
    ada: Person,
    key: Key,
) -> None:
    ids = []
    for name, score in (("one", 1.0), ("two", 1.5), ("two", 1.4), ("broken", None)):
        ids.append(submit(connection, ada, name))
        worker.grade(score, None if score else factory.wrong("broken", "ada"))
    for path, reader in (("/mine", key(ada)), (f"/organiser/people/{ada.id}", organiser)):
        page = client.get(path, headers=reader).text
        assert "4 submissions, 3 accepted. The best score is 1.500." in page
        changes = re.findall(r'compare\?of=(\w+)&amp;of=(\w+)".*>([^<]+)</a>', page)
        words = ("+50.0 %", "same file", "source")
        assert changes == [*zip(ids, ids[1:], words, strict=False)][::-1]
        assert ids[-1] not in client.get(f"{path}?offset=1", headers=reader).text
    page = client.get(f"/submissions/{ids[1]}", headers=key(ada)).text
    assert f"/compare?of={ids[0]}&amp;of={ids[1]}" in page
    assert client.get("/organiser/people/0", headers=organiser).status_code == 404


def test_no_cell_of_a_csv_is_a_formula() -> None:
    cells = [(f"{first}1",) for first in ("=", "+", "-", "@", "\t", "a")]
    assert course.as_csv(("name",), iter(cells)) == "name\n'=1\n'+1\n'-1\n'@1\n'\t1\na1\n"


def test_one_person_gets_an_extension(
    client: TestClient,
    organiser: dict[str, str],
    connection: Connection,
    ada: Person,
    key: Key,
    rules: Path,
) -> None:
    rules.write_text("ends = 2026-01-01T00:00:00Z\n")

    def submits() -> int:
        sent = client.post("/api/v1/submissions", content=factory.SOURCE, headers=key(ada))
        return sent.status_code

    assert submits() == 403
    form = {"id": ada.id, "until": "2999-01-01T00:00"}
    assert client.post("/organiser/people/extend", data=form, headers=organiser).status_code == 303
    assert submits() == 202
    assert people.by_id(connection, ada.id).extended == datetime(2999, 1, 1, tzinfo=UTC)
    for until in ("tomorrow", "9999-12-31T23:00-12:00", "0001-01-01T00:00+12:00"):
        wrong = form | {"until": until}
        refused = client.post("/organiser/people/extend", data=wrong, headers=organiser)
        assert refused.status_code == 422 and "write a time as" in refused.text.lower()
    refused = client.post("/organiser/people/extend", json=form, headers=organiser)
    assert refused.status_code == 415 and "as a form" in refused.text


def test_a_student_submits_with_one_file_of_the_standard_library(
    address: str, connection: Connection, worker: FakeWorker, person: Add, tmp_path: Path
) -> None:
    script = tmp_path / "submit.py"
    script.write_bytes(httpx.get(f"{address}/submit.py").content)
    kernel = tmp_path / "my kernel.cu"
    kernel.write_text(factory.SOURCE)
    key = people.new_key(connection, person("ada").id, "laptop")
    # No site-packages, and no path to this project.
    command = [sys.executable, "-S", "-I", str(script), str(kernel)]
    environment = {"PATH": os.environ["PATH"], "MATMUL_ARENA_KEY": key}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)
    assert process.stderr is not None
    assert process.stderr.readline() == "place 1 in the queue\n"
    task = worker.take()
    progress = GradingProgress()
    for stage in (Stage.COMPILE, Stage.VERIFY):
        progress = progress.began(stage, None)
        assert worker.go_on(task.attempt, progress)
        assert process.stderr.readline() == f"{stage}\n", "each is said once"
    assert worker.finish(task.attempt, graded(task, 1.5))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "my kernel.cu: accepted, score 1.500" in output


def test_two_counted_kernels_are_compared_unit_by_unit(
    client: TestClient, connection: Connection, worker: FakeWorker, ada: Person, key: Key
) -> None:
    ids = []
    for name in ("10_no_bank_conflicts", "11_double_buffering"):
        ids.append(submit(connection, ada, name))
        evidence = recorded(name)
        counted = {"kernel": evidence.facts, "counters": evidence.counters}
        worker.grade(report=factory.report(name, "ada", 1.0).model_copy(update=counted))
    page = client.get(f"/compare?of={ids[0]}&of={ids[1]}", headers=key(ada)).text
    assert "should be 1.0" in page and "Units of the GPU" in page and "latency" in page
