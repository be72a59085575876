"""The pages without a script: everything that a person does is a form and a link."""

import html
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import Connection, Engine

from harness.arena.problems import NotPossible
from harness.arena.progress import GradingProgress
from harness.arena.store import contest, people, watching
from harness.arena.store.people import Person, Role
from harness.arena.web.app import application
from harness.arena.web.context import Site
from harness.protocol.report import Stage, Verdict
from problem import starter
from tests.arena.submitting import Add, FakeWorker, asking, graded, submit
from tests.board import factory

SOURCE = factory.SOURCE.encode()
HOSTILE = "<img src=x onerror=alert(1)>\"'&"


class Browser:
    """A person's: it keeps cookies and the last page."""

    def __init__(self, site: Site) -> None:
        self.client = TestClient(application(site), follow_redirects=True)
        self.page = ""

    def get(self, path: str, status: int = 200) -> str:
        return self._seen(self.client.get(path), status)

    def post(self, path: str, status: int = 200, **fields: object) -> str:
        files = fields.pop("files", None)
        return self._seen(self.client.post(path, data=fields, files=files), status)  # type: ignore[arg-type]

    def press(self, button: str, status: int = 200, near: str = "", **fields: object) -> str:
        """Press a button of the last page, as a browser does. near: HTML of its table row."""
        rows = re.findall("<tr.*?</tr>", self.page, re.DOTALL) if near else [self.page]
        row = next(row for row in rows if near in row and f">{button}</button>" in row)
        forms = re.findall("<form.*?</form>", row, re.DOTALL)
        form = next(each for each in forms if f">{button}</button>" in each)
        sent = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
        sent |= dict(re.findall(rf'name="(\w+)" value="(\w+)">{button}</button>', form))
        (method, action, id) = (
            (re.findall(rf'^<form[^>]* {name}="([^"]*)"', form) or [""])[0]
            for name in ("method", "action", "id")
        )
        names = re.findall(r'name="(\w+)"', form)
        names += re.findall(rf'form="{id}" name="(\w+)"', self.page) if id else []
        assert fields.keys() <= {*names}, "the page has these fields"
        if method == "get":
            return self._seen(self.client.get(action, params=sent | fields), status)
        return self.post(action, status, **sent | fields)

    def _seen(self, answer: Response, status: int) -> str:
        assert answer.status_code == status, answer.text[-2000:]
        self.page = answer.text
        return self.page


@pytest.fixture
def browser(site: Site) -> Callable[[], Browser]:
    return lambda: Browser(site)


@pytest.fixture
def signed_in(
    browser: Callable[[], Browser], connection: Connection
) -> Callable[[Person], Browser]:
    def sign_in(person: Person) -> Browser:
        made = browser()
        made.get("/account")
        made.post("/signin", key=people.new_key(connection, person.id, "test"))
        return made

    return sign_in


@pytest.fixture
def ada(person: Add, signed_in: Callable[[Person], Browser]) -> Browser:
    return signed_in(person("ada"))


@pytest.fixture
def olga(person: Add, signed_in: Callable[[Person], Browser]) -> Browser:
    return signed_in(person("olga", Role.ORGANISER))


def test_from_an_invitation_to_the_board(
    olga: Browser, browser: Callable[[], Browser], worker: FakeWorker
) -> None:
    invited = olga.post("/organiser/invite", role="contestant", uses=1, note="ada")
    link = re.search(r"/join/[\w-]+", invited)
    ada = browser()
    ada.get(link[0])
    assert "shown this once" in ada.post(link[0], name="ada")
    assert "arena_" in ada.page
    done = ada.post("/submit", files={"file": ("fast one.cu", SOURCE)})
    assert "queued, place 1" in done and "fast one" in done
    worker.grade(1.25)
    page = ada.get("/mine")
    assert "accepted" in page and "1.250" in page
    (id, *_) = re.findall(r"/submissions/(\w+)", page)
    assert "sources are the same" in ada.press("Compare the two chosen", of=[id, id])
    ada.get(f"/submissions/{id}")
    assert "fast one" in ada.page and "1.25" in ada.page and "Registers" in ada.page
    files = re.findall(r"/entries/\w+\.(?:cu|json)", ada.page)
    assert len(files) == 2 and "fast one" in ada.get(files[1])
    for path in ("/", "/index.html", "/runs.html"):
        assert "fast one" in browser().get(path)


def test_the_problem_page_explains_every_verdict(browser: Callable[[], Browser]) -> None:
    assert re.findall(r"<dt>([a-z]+-?[a-z]*)</dt>", browser().get("/problem")) == [*Verdict]


def test_text_of_many_lines_stays_so(ada: Browser) -> None:
    """A browser sends the lines of a text area with carriage returns."""
    assert html.escape(starter.text()) in ada.get("/problem").replace("&#34;", "&quot;")
    page = ada.post("/submit", 422, pasted="int x;\r\n\tint y;\0", name="x")
    assert ">int x;\n\tint y;\N{REPLACEMENT CHARACTER}</textarea>" in page


def test_the_same_form_sent_twice_is_one_submission(ada: Browser, connection: Connection) -> None:
    once = re.search(r'name="once" value="(\w+)"', ada.get("/submit"))
    for _ in range(2):
        ada.post("/submit", pasted=factory.SOURCE, once=once[1])
    assert len(watching.recent(connection)) == 1


def test_cancelling_and_withdrawing(ada: Browser, worker: FakeWorker) -> None:
    ada.post("/submit", pasted=factory.SOURCE)
    id = re.findall(r"/submissions/(\w+)/cancel", ada.page)[0]
    assert "data-live" in ada.page
    cancelled = ada.press("Cancel")
    assert "cancelled" in cancelled
    # What follows a submission reads its page again when that is over: it would, without end.
    assert "data-live" not in cancelled
    ada.post("/submit", pasted=factory.SOURCE, name="second")
    worker.grade(1.0)
    assert "second" in ada.get("/index.html")
    id = re.findall(r"/submissions/(\w+)", ada.get("/mine"))[0]
    ada.get(f"/submissions/{id}")
    assert "Withdrawn" in ada.press("Withdraw from the board")
    assert "second" not in ada.get("/index.html")
    ada.post("/submit", pasted=factory.SOURCE, name="third")
    id = re.findall(r"/submissions/(\w+)/cancel", ada.page)[0]
    ada.post(f"/submissions/{id}/withdraw")
    assert worker.fetch() is None, "nobody grades what was withdrawn"


def test_the_rules_say_on_which_model_everything_is_graded(
    ada: Browser, olga: Browser, engine: Engine, worker: FakeWorker, rules: Path
) -> None:
    rules.write_text('gpu = "NVIDIA H200"\n')
    ada.post("/submit", files={"file": ("tile.cu", SOURCE)})
    assert "gradings on the GPU model NVIDIA H200 only" in olga.get("/organiser")
    assert "NVIDIA H200" in olga.get("/problem")
    assert worker.fetch() is None, "this worker has no such GPU"
    wanted = FakeWorker(engine, asking("GPU-1", model="NVIDIA H200"))
    wanted.grade(report=factory.report(gpu="NVIDIA H200"))
    rules.write_text("")
    olga.post("/organiser/rejudge", which="all", reason="again")
    assert worker.fetch() is None and wanted.fetch() is not None, "a rejudging needs that GPU, too"


def test_disqualifying_says_why_and_is_written_down(
    person: Add,
    signed_in: Callable[[Person], Browser],
    olga: Browser,
    worker: FakeWorker,
    connection: Connection,
) -> None:
    bob = person("bob")
    id = submit(connection, bob, "cheat")
    worker.grade(9.0)
    assert "cheat" in olga.get("/index.html")
    olga.get(f"/submissions/{id}")
    assert "needs a reason" in olga.press("Disqualify", 422, reason=" ")
    olga.get(f"/submissions/{id}")
    olga.press("Disqualify", reason="copied from cuBLAS")
    assert "cheat" not in olga.get("/index.html")
    assert "copied from cuBLAS" in signed_in(bob).get(f"/submissions/{id}")
    lines = [(line.actor, line.action, line.subject) for line in contest.audit_log(connection)]
    assert ("olga", "disqualify", id) in lines
    signed_in(bob).post(f"/submissions/{id}/withdraw")
    olga.get(f"/submissions/{id}")
    olga.press("Reinstate")
    page = signed_in(bob).get(f"/submissions/{id}")
    assert "copied" not in page and "Withdrawn" in page


def test_a_rejudging_is_looked_at_before_it_counts(olga: Browser, worker: FakeWorker) -> None:
    id = worker.submit("again", "bob")
    worker.grade(1.0)
    gone = worker.submit("gone", "bob")
    worker.grade(1.0)
    olga.post(f"/submissions/{gone}/withdraw")
    listed, all_of_them = "/organiser/submissions", "Rejudge all that count"
    olga.get(listed)
    nothing = olga.press("Rejudge the chosen submissions", 422, reason="a fault was repaired")
    assert "Choose the submissions" in nothing
    olga.get(listed)
    assert "needs a reason" in olga.press(all_of_them, 422, reason=" ")
    olga.get(listed)
    olga.press(all_of_them, reason="a fault was repaired")
    number = re.findall(r"/organiser/rejudgings/(\d+)", olga.page)[0]
    address = f"/organiser/rejudgings/{number}"
    olga.get(address)
    assert "not ended yet" in olga.post(f"{address}/apply", 422)
    worker.grade(2.0)
    assert worker.status(id).score == 1.0, "not yet"
    page = olga.get(address)
    assert "1.000" in page and "2.000" in page
    assert "gone" not in page, "what was withdrawn does not count"
    olga.press("Apply the new results")
    assert worker.status(id).score == 2.0
    assert "applied or dropped already" in olga.post(f"{address}/drop", 422)
    olga.get(listed)
    olga.press("Rejudge the chosen submissions", ids=id, reason="why not")
    olga.get(re.findall(r"/organiser/rejudgings/\d+", olga.page)[0])
    olga.press("Drop the new results")
    assert worker.fetch() is None and worker.status(id).score == 2.0


def test_an_organiser_finds_submissions_and_stays_in(
    olga: Browser, person: Add, connection: Connection
) -> None:
    for name in ("tile 100%", "tile_50"):
        submit(connection, person(name[:4] + name[-2]), name)
    assert "tile 100%" in olga.get("/organiser/submissions?find=100%25")
    assert "tile_50" not in olga.page
    assert "tile_50" in olga.get("/organiser/submissions?find=TILE5")
    assert "No submission matches" in olga.get("/organiser/submissions?find=%25%25")
    own = people.named(connection, "olga").id
    assert "lock yourself out" in olga.post("/organiser/people", 422, id=own, disabled=True)


def test_everybody_reads_the_rules(browser: Callable[[], Browser], rules: Path) -> None:
    assert "it does not end" in browser().get("/problem")
    rules.write_text(
        'ends = 2999-12-19T18:00:00Z\nsources = "after-end"\n'
        'estimates = true\n[leagues]\ncores = ["a rule of an earlier version"]\n'
        "[limits]\nin_flight = 3\n"
    )
    page = browser().get("/problem")
    for said in ("2999-12-19 18:00 UTC", "after the end everybody does", "3 submis"):
        assert said in page


def test_a_page_without_scripts_shows_findings_so_far(
    person: Add, signed_in: Callable[[Person], Browser], connection: Connection, worker: FakeWorker
) -> None:
    ada = person("ada")
    id = submit(connection, ada)
    attempt = worker.take()
    said = GradingProgress().began(Stage.COMPILE, None).having_found([f"warning: {HOSTILE}"])
    said = (
        said.began(Stage.VERIFY, 96).stepped("a case").having_found(["wrong-answer: the last row"])
    )
    assert worker.go_on(attempt.attempt, said)
    page = signed_in(ada).get(f"/submissions/{id}")
    assert "wrong-answer: the last row" in page and "step 1 of 96" in page and "a case" in page
    assert "s left" in page and "<noscript>" in page
    assert HOSTILE not in page and "warning: &lt;img" in page
    assert worker.finish(attempt.attempt, graded(attempt, 1.25))
    page = signed_in(ada).get(f"/submissions/{id}")
    assert "1.250" in page and "the last row" not in page and "<noscript>" not in page


def test_no_field_of_a_stranger_is_markup(
    person: Add, olga: Browser, worker: FakeWorker, connection: Connection
) -> None:
    bob = person("bob")
    id = submit(connection, bob, f"kernel {HOSTILE}")
    worker.grade(1.0)
    contest.disqualify(connection, bob, id, HOSTILE)
    contest.reinstate(connection, bob, id)
    people.new_key(connection, bob.id, HOSTILE)
    people.invite(connection, bob.id, Role.CONTESTANT, 1, HOSTILE)
    found = ["/", f"/compare?of={id}&of={id}", "/organiser", f"/live/submissions/{id}"]
    odd = [f"/organiser/submissions?find={HOSTILE}", f"/compare?of={HOSTILE}", f"/{HOSTILE}.html"]
    for path in (paths := [*odd, *found]):
        answer = olga.client.get(path)
        assert path in odd or answer.is_success, f"no link leads to {path}"
        shown = answer.text if "html" in answer.headers["content-type"] else ""
        assert HOSTILE not in shown and "<img src=x" not in shown, path
        links = re.findall(r'href="(/[^"#]*)', answer.text) if path not in odd else []
        paths += {*map(html.unescape, links)} - {*paths}
    assert {"/mine", "/account", f"/organiser/people/{bob.id}", "/runs.html"} <= {*paths}


@pytest.mark.parametrize("name", ["", " ", "-x", "a" * 61, "<b>", "a/b", "a\u202eb", "\x00"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(NotPossible, match="letters"):
        people.proper_name(name)


@pytest.mark.parametrize("other", ["ADA", "\uff21da"])
def test_a_name_is_taken_in_any_case_and_width(
    other: str, connection: Connection, person: Add
) -> None:
    person("Ada")
    with pytest.raises(NotPossible, match="taken"):
        person(other)


def test_a_link_for_one_lets_one_in(
    olga: Browser,
    browser: Callable[[], Browser],
    connection: Connection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    olga.get("/organiser/people")
    made = olga.press("Make a link", uses=1)
    link = re.findall(r"http://testserver(/join/[\w-]+)", made)[0]
    olga.press("Make a link", uses=7, note="late ones")
    assert "late ones" not in olga.press("End it", near="late ones")
    one, other = browser(), browser()
    one.get(link)
    other.get(link)
    assert "The name" in one.post(link, 422, name="olga")
    one.post(link, name="one")
    assert "used up" in other.post(link, 404, name="other")
    logged = [vars(each).get("path", "") for each in caplog.records]
    assert "/join/…" in logged and link not in logged
    assert people.named(connection, "other") is None
    phone = re.search(r"arena_[\w-]+", one.press("Make a key", label="phone", days=0))
    assert "Your key" in one.press("Revoke", near="first key"), "the session was opened with it"
    one.client.headers["Authorization"] = f"Bearer {phone[0]}"
    olga.get("/organiser/people")
    for button, status in (("Lock out", 401), ("Let in", 200), ("New key", 401)):
        one.get("/mine", 200 if status == 401 else 401)
        olga.press(button, near="<bdi>one<")
        one.get("/mine", status)


def test_a_long_list_has_pages(olga: Browser, connection: Connection) -> None:
    organiser = people.named(connection, "olga")
    for number in range(51):
        submit(connection, organiser, f"tile {number}")
        contest.note(connection, organiser, "test", str(number))
    submit(connection, organiser, "other")
    for path, rows, last in (
        ("/mine", 2, "tile 0"),
        ("/organiser/submissions?find=tile", 1, "tile 0"),
        ("/organiser/audit", 2, "sign in"),
    ):
        (older,) = re.findall(r'href="([^"]*)">Older', olga.get(path))
        assert olga.page.count("<tr") == 51 and ">Newer" not in olga.page
        page = olga.get(path.partition("?")[0] + html.unescape(older))
        assert page.count("<tr") == 1 + rows and last in page, path
        assert ">Newer" in page and ">Older" not in page


def test_behind_a_proxy_that_leaves_the_path(
    site: Site, connection: Connection, person: Add
) -> None:
    key = people.new_key(connection, person("ada").id, "test")
    settings = site.settings.model_copy(update={"root": "/arena"})
    client = TestClient(application(replace(site, settings=settings)), follow_redirects=False)
    answer = client.post("/arena/signin", data={"key": key})
    assert answer.status_code == 303 and answer.headers["location"] == "/arena/submit"
    page = client.get("/arena/index.html").text
    assert 'href="/arena/assets/site.css"' in page and 'href="/arena/submit"' in page
    assert client.get("/arena/assets/site.css").status_code == 200
    assert "Path=/arena/;" in client.post("/arena/signout").headers["set-cookie"]


def test_a_long_board_leads_from_the_best_to_others(
    site: Site, browser: Callable[[], Browser], worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.arena.web.boards.MAX_ROWS", 2)
    for score in (1.0, 2.0, 3.0):
        worker.submit(f"kernel {score}")
        worker.grade(score)
    reader = browser()
    best = reader.get("/")
    assert "The best 2 of 3 kernels." in best, re.findall(r"<bdi>[^<]*", best)
    assert "<bdi>kernel 1.0" not in best
    assert "<bdi>kernel 1.0" in reader.get("/?all=true")
    runs = reader.get("/runs.html")
    assert "The newest 2 of 3 runs." in runs and "<bdi>kernel 1.0" not in runs
    assert "<bdi>kernel 1.0" in reader.get("/runs.html?all=true")
