"""Tests of the pages in a real Chromium, also at a phone's width and in dark colours."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import httpx
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import staleness_of
from sqlalchemy import Connection

from harness.arena.progress import GradingProgress
from harness.arena.store import contest, people, watching
from harness.arena.store.people import Person, Role
from harness.arena.web import guard
from harness.protocol.report import Stage
from tests.arena.submitting import Add, FakeWorker, graded, submit
from tests.arena.visiting import Visitor
from tests.board import browser, factory
from tests.waiting import eventually

if browser.MISSING:
    pytest.skip(browser.MISSING, allow_module_level=True)

LONG = "W" * 40
HOSTILE = "<img src=x onerror=alert(1)>"
DROP = """
const [form, files] = arguments;
const transfer = new DataTransfer();
for (const [name, text] of files) transfer.items.add(new File([text], name));
form.dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true}));
"""


def drop(visitor: Visitor, *files: tuple[str, str]) -> None:
    form = visitor.chrome.find_element(By.CSS_SELECTOR, "[data-drop]")
    visitor.chrome.execute_script(DROP, form, files)


def test_a_person_submits_watches_and_reads(
    visitor: Visitor, connection: Connection, person: Add, worker: FakeWorker, tmp_path: Path
) -> None:
    (tmp_path / "rules.toml").write_text("pseudonyms = true\n")
    visitor.sign_in(connection, person("ada"))
    browser.load_charts(visitor.chrome, True)
    browser.requests(visitor.chrome)
    browser.complaints(visitor.chrome)
    file = tmp_path / "my tile.cu"
    file.write_text(factory.SOURCE)
    visitor.fill("file", str(file))
    visitor.press("Submit")
    visitor.sees("queued, place 1", "[data-state]")
    visitor.sees("s left", "[data-left]")
    attempt = worker.take()
    so_far = GradingProgress().began(Stage.COMPILE, None).having_found([f"32 registers {HOSTILE}"])
    so_far = so_far.began(Stage.VERIFY, 70).stepped("17×5×3, uniform")
    so_far = so_far.having_found(["wrong-answer: wrong at 17×5×3: the last row of blocks"])
    worker.go_on(attempt.attempt, so_far)
    visitor.sees("step 1 of 70: 17×5×3, uniform", ".stages")
    assert visitor.text("[data-state]") == "grading"
    assert f"32 registers {HOSTILE}" in visitor.text(".stages")
    assert "wrong at 17×5×3: the last row of blocks" in visitor.text(".stages")
    visitor.sees("s left", "[data-left]")
    shown = visitor.text(".stages")
    visitor.chrome.refresh()  # what the server writes, and what a script put there, are the same
    visitor.until(lambda: visitor.text(".stages") == shown)
    worker.finish(attempt.attempt, graded(attempt, 1.25))
    visitor.sees("1.250 × cuBLAS", ".verdict")
    visitor.sees("my tile", "h1")
    visitor.go("")
    visitor.sees("my tile", "tr:has(.own)")
    asked = browser.requests(visitor.chrome)
    assert asked and all(each.startswith((visitor.address, "data:")) for each in asked)
    assert browser.complaints(visitor.chrome) == []


def test_a_page_recovers_when_its_stream_was_refused(
    visitor: Visitor,
    connection: Connection,
    ada: Person,
    worker: FakeWorker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    visitor.sign_in(connection, ada)
    id = submit(connection, ada)
    monkeypatch.setattr(guard, "STREAMS_PER_PERSON", 0)
    visitor.go(f"submissions/{id}")
    visitor.sees("queued, place 1", "[data-state]")
    worker.grade(1.25)
    monkeypatch.setattr(guard, "STREAMS_PER_PERSON", 12)
    visitor.sees("1.250 × cuBLAS", ".verdict")


def test_a_refused_page_loads_by_itself_later(visitor: Visitor, rules: Path) -> None:
    rules.write_text("[limits]\nper_address_per_minute = 30\n")

    def refused() -> bool:
        while httpx.get(f"{visitor.address}/problem").status_code == 200:
            pass
        visitor.go("problem")
        return "tries again by itself" in visitor.text()

    eventually(refused, "the page is asked for before the next request is allowed")
    rules.write_text("[limits]\nper_address_per_minute = 6000\n")
    visitor.sees("How it is launched")


def test_dropped_files_and_pasted_text_are_submitted(
    visitor: Visitor, connection: Connection, person: Add
) -> None:
    visitor.sign_in(connection, person("ada"))
    drop(visitor, ("one.cu", "x"), ("two.cu", "x"))
    visitor.sees("Drop exactly one file.", "[data-dropped]")
    drop(visitor, ("dropped.cu", factory.SOURCE))
    visitor.sees("dropped.cu is ready", "[data-dropped]")
    visitor.press("Submit")
    visitor.sees("dropped by ada", "h1")
    visitor.go("submit")
    visitor.fill("pasted", factory.SOURCE)
    visitor.fill("name", "pasted one")
    visitor.press("Submit")
    visitor.sees("pasted one by ada", "h1")
    visitor.press("Cancel")
    visitor.chrome.switch_to.alert.dismiss()
    visitor.sees("queued, place 2", "[data-state]")
    visitor.press("Cancel")
    visitor.chrome.switch_to.alert.accept()
    visitor.sees("cancelled", "[data-state]")
    assert [each.name for each in watching.recent(connection)] == ["pasted one", "dropped"]


def test_a_board_shows_new_results_by_itself(visitor: Visitor, worker: FakeWorker) -> None:
    visitor.go("")
    visitor.sees("Nothing is ranked yet", "h1")
    worker.submit("first")
    worker.grade(1.0)
    visitor.sees("first", "#ranking")
    worker.submit("second")
    worker.grade(2.0)
    visitor.sees("second", "#ranking tbody tr")
    # A visitor who has searched sees a notice, and the rows stay as they are.
    visitor.fill("find", "first")
    worker.submit("third")
    worker.grade(3.0)
    visitor.sees("has changed", "[data-changed]")
    assert "third" not in visitor.text("#ranking")


def test_a_deadline_is_given_and_shown_in_the_organisers_zone(
    visitor: Visitor, connection: Connection, person: Add, ada: Person, rules: Path
) -> None:
    rules.write_text("ends = 2026-12-19T19:00:00Z\n")
    chrome = visitor.chrome
    visitor.sign_in(connection, person("olga", Role.ORGANISER))

    def extended() -> datetime | None:
        found = people.by_id(connection, ada.id)
        return found and found.extended

    chrome.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    try:
        visitor.go("organiser/people")
        box = "//tr[contains(., 'ada')]//input[@name='until']"
        chrome.execute_script("arguments[0].value = '2026-12-20T00:30'", visitor.find(box))
        for _ in range(2):  # the page that is shown then gives the same time
            left = staleness_of(visitor.find(box))
            visitor.press("Set", near="ada")
            visitor.until(partial(left, chrome))
            assert extended() == datetime(2026, 12, 19, 19, tzinfo=UTC)
            visitor.until(lambda: visitor.find(box).get_attribute("value") == "2026-12-20T00:30")
        visitor.go("problem")
        visitor.sees("Dec 20, 2026, 12:30")
    finally:
        chrome.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


@pytest.fixture
def busy(connection: Connection, person: Add, worker: FakeWorker, rules: Path) -> str:
    """An arena with all kinds of submissions and messages. The value is a submission's id."""
    rules.write_text("pseudonyms = true\n")
    olga, ada = person("olga", Role.ORGANISER), person(LONG)
    for score in (1.0, 0.5, 2.0):
        submit(connection, ada, f"{LONG}{score}")
        worker.grade(score)
    first = watching.recent(connection, person=ada.id)[-1].id
    contest.rejudge(connection, olga, [first], "to look at it")
    people.invite(connection, olga.id, Role.CONTESTANT, 20, "the course")
    id = submit(connection, ada, "at work")
    worker.take()  # the rejudging
    attempt = worker.take()
    said = GradingProgress().began(Stage.COMPILE, None).having_found([LONG * 5, "cuda-cores"])
    worker.go_on(attempt.attempt, said.began(Stage.VERIFY, 96).stepped(LONG))
    return id


def test_pages_pass_axe_and_fit_a_phone(
    visitor: Visitor, connection: Connection, busy: str
) -> None:
    olga = people.named(connection, "olga")
    link = people.invite(connection, olga.id, Role.CONTESTANT, 1, "axe")
    number = contest.rejudgings(connection)[0]["id"]
    entry = [each for each in watching.recent(connection) if each.report][-1]
    visitor.go("account")
    pages = (
        *("", "runs.html", "submit", "mine", "account", "organiser", "organiser/submissions"),
        *("organiser/people", "organiser/audit", f"submissions/{busy}", f"submissions/{entry.id}"),
        *(f"organiser/rejudgings/{number}", f"compare?of={entry.id}&of={entry.id}"),
        *(f"join/{link}", "problem", "nowhere.html"),
    )
    look(visitor, "account")
    visitor.sign_in(connection, olga)
    for path in pages:
        look(visitor, path)
        visitor.sees("Organiser", "nav")


def look(visitor: Visitor, path: str) -> None:
    """Check a page on a phone in light colours and on a wide screen in dark colours.

    The page is loaded once. In dark colours axe checks the contrast only, as nothing else differs.
    """
    browser.resize(visitor.chrome, 360)
    browser.colours(visitor.chrome, "light")
    visitor.go(path)
    for scheme, width, rules in (("light", 360, ()), ("dark", 1280, ("color-contrast",))):
        browser.resize(visitor.chrome, width)
        browser.colours(visitor.chrome, scheme)  # type: ignore[arg-type]
        assert browser.barriers(visitor.chrome, *rules) == [], (path, scheme, width)
        wide = visitor.chrome.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width, (path, wide)
        for table in visitor.chrome.find_elements(By.TAG_NAME, "table"):
            columns = len(table.find_elements(By.CSS_SELECTOR, "thead th"))
            assert columns <= 7, (path, columns)
