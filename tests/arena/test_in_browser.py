"""Everything that a person does, in a real Chromium: with a keyboard, on a phone, in the dark."""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Connection

from harness.arena.progress import GradingProgress
from harness.arena.store import contest, gradings, people
from harness.arena.store.attempts import Attempts
from harness.arena.store.people import Person, Role
from harness.report import Stage
from tests.arena.handing_in import graded, hand_in, joined, take
from tests.leaderboard import browser, factory

if browser.MISSING:
    pytest.skip(browser.MISSING, allow_module_level=True)

from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

Add = Callable[..., Person]
SCREENSHOTS = os.environ.get("MATMUL_ARENA_SCREENSHOTS")
"""A folder, where somebody wants to look at the pages."""

LONG = "W" * 40
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser.chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def attempts(worker_url: URL) -> Iterator[Attempts]:
    made = joined(worker_url)
    yield made
    made.close()


def signed_in(chrome: Chrome, address: str, connection: Connection, person: Person) -> None:
    chrome.delete_all_cookies()
    chrome.get(f"{address}/account")
    key = people.new_key(connection, person.id, "test")
    field = chrome.find_element(By.NAME, "key")
    field.send_keys(key, Keys.ENTER)
    until(chrome, lambda: chrome.current_url.endswith("/submit"))


def until(chrome: Chrome, holds: Callable[[], Any]) -> None:
    def safely(_: Chrome) -> bool:
        try:
            return bool(holds())
        except Exception:  # the page is being replaced
            return False

    WebDriverWait(chrome, 30).until(safely)


def text(chrome: Chrome, selector: str = "main") -> str:
    return chrome.find_element(By.CSS_SELECTOR, selector).text


def test_submit_watch_and_read(
    chrome: Chrome,
    address: str,
    connection: Connection,
    person: Add,
    attempts: Attempts,
    tmp_path: Path,
) -> None:
    browser.resize(chrome, 1280)
    signed_in(chrome, address, connection, person("ada"))
    browser.requests(chrome)
    browser.complaints(chrome)
    wrong = tmp_path / "empty.cu"
    wrong.write_text("")
    chrome.find_element(By.NAME, "file").send_keys(str(wrong))
    chrome.find_element(By.CSS_SELECTOR, "main button[type=submit]").click()
    until(chrome, lambda: "The file is empty" in text(chrome, "[role=alert]"))
    browser.complaints(chrome)  # a browser notes the 422
    file = tmp_path / "my tile.cu"
    file.write_text(factory.SOURCE)
    chrome.find_element(By.NAME, "file").send_keys(str(file))
    chrome.find_element(By.CSS_SELECTOR, "main button[type=submit]").click()
    until(chrome, lambda: "queued, place 1" in text(chrome, "[data-state]"))
    assert "s left" in text(chrome, "[data-left]")
    attempt = take(connection, attempts)
    so_far = GradingProgress().began(Stage.COMPILE, None).having_found([f"32 registers {HOSTILE}"])
    so_far = so_far.began(Stage.VERIFY, 70).stepped("17×5×3, uniform")
    so_far = so_far.having_found(["wrong-answer: wrong at 17×5×3: the last row of blocks"])
    attempts.go_on(attempt.attempt, so_far)
    until(chrome, lambda: "step 1 of 70: 17×5×3, uniform" in text(chrome, ".stages"))
    assert text(chrome, "[data-state]") == "grading"
    assert f"32 registers {HOSTILE}" in text(chrome, ".stages")
    assert "wrong at 17×5×3: the last row of blocks" in text(chrome, ".stages")
    assert "s left" in text(chrome, "[data-left]")
    picture(chrome, "submission-live")
    shown = text(chrome, ".stages")
    chrome.refresh()  # what the server writes, and what a script put there, are the same
    assert text(chrome, ".stages") == shown
    attempts.finish(attempt.attempt, graded(attempt, 1.25))
    until(chrome, lambda: "1.250 × cuBLAS" in text(chrome, ".verdict"))
    chrome.find_element(By.LINK_TEXT, "The whole report").click()
    until(chrome, lambda: "my tile" in text(chrome, "h1"))
    asked = browser.requests(chrome)
    assert asked and all(each.startswith((address, "data:")) for each in asked)
    assert browser.complaints(chrome) == []


def test_a_board_shows_what_is_new_by_itself(
    chrome: Chrome, address: str, connection: Connection, person: Add, attempts: Attempts
) -> None:
    browser.resize(chrome, 1280)
    ada = person("ada")
    hand_in(connection, ada, "first")
    attempt = take(connection, attempts)
    attempts.finish(attempt.attempt, graded(attempt, 1.0))
    chrome.get(f"{address}/")
    until(chrome, lambda: "first" in text(chrome, "#ranking"))
    hand_in(connection, ada, "second")
    attempt = take(connection, attempts)
    attempts.finish(attempt.attempt, graded(attempt, 2.0))
    until(chrome, lambda: "second" in text(chrome, "#ranking tbody tr"))
    # Whoever searches is told, and not disturbed.
    chrome.find_element(By.NAME, "find").send_keys("first")
    hand_in(connection, ada, "third")
    attempt = take(connection, attempts)
    attempts.finish(attempt.attempt, graded(attempt, 3.0))
    until(chrome, lambda: "has changed" in text(chrome, "[data-changed]"))
    assert "third" not in text(chrome, "#ranking")


@pytest.fixture
def busy(connection: Connection, person: Add, attempts: Attempts) -> str:
    """An arena in which a lot has happened; a submission's id."""
    olga, ada = person("olga", Role.ORGANISER), person(LONG)
    for score in (1.0, 2.0):
        hand_in(connection, ada, f"{LONG}{score}")
        attempt = take(connection, attempts)
        attempts.finish(attempt.attempt, graded(attempt, score))
    id = hand_in(connection, ada, "waiting")
    done = gradings.recent(connection, person=ada.id)[-1].id
    contest.rejudge(connection, olga, [done], "to look at it")
    contest.announce(connection, olga, "The contest ends on Friday. " + LONG)
    people.invite(connection, olga.id, Role.CONTESTANT, 20, "the course")
    return id


def test_no_barrier_that_axe_knows_and_nothing_wider_than_a_phone(
    chrome: Chrome, address: str, connection: Connection, busy: str
) -> None:
    axe = (importlib.resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    olga = people.named(connection, "olga")
    assert olga is not None
    link = people.invite(connection, olga.id, Role.CONTESTANT, 1, "axe")
    number = contest.rejudgings(connection)[0].id
    entry = next(each for each in gradings.recent(connection) if each.report)
    signed_in(chrome, address, connection, olga)
    paths = {
        "board": "",
        "runs": "runs.html",
        "submit": "submit",
        "mine": "mine",
        "account": "account",
        "organiser": "organiser",
        "submission": f"submissions/{busy}",
        "rejudging": f"organiser/rejudgings/{number}",
        "compare": f"compare?a={entry.id}&b={entry.id}",
        "join": f"join/{link}",
        "problem": "nowhere.html",
    }
    for scheme, width in (("light", 360), ("dark", 1280)):
        browser.resize(chrome, width)
        browser.colours(chrome, scheme)  # type: ignore[arg-type]
        for name, path in paths.items():
            chrome.get(f"{address}/{path}")
            chrome.execute_script(axe)
            found = chrome.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
            assert found["passes"], name
            barriers = [
                (each["id"], [node["html"][:120] for node in each["nodes"][:3]])
                for each in found["violations"]
            ]
            assert barriers == [], (name, scheme, width)
            wide = chrome.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, (name, wide)
            picture(chrome, f"{name}-{scheme}-{width}")


def picture(chrome: Chrome, name: str) -> None:
    if SCREENSHOTS:
        browser.screenshot(chrome, Path(SCREENSHOTS, f"{name}.png"))
