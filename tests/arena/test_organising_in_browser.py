"""Everything that an organiser does, in a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection

from harness.arena.store import contest, gradings, people
from harness.arena.store.people import Person, Role
from tests.arena.submitting import FakeWorker, graded, hand_in, take
from tests.arena.visiting import Visitor
from tests.board import browser

if browser.MISSING:
    pytest.skip(browser.MISSING, allow_module_level=True)

Add = Callable[..., Person]


@pytest.fixture
def olga(visitor: Visitor, connection: Connection, person: Add) -> Visitor:
    visitor.sign_in(connection, person("olga", Role.ORGANISER))
    visitor.follow("Organiser")
    return visitor


def done(connection: Connection, attempts: FakeWorker, score: float | None) -> None:
    attempt = take(attempts)
    assert attempts.finish(attempt.attempt, graded(attempt, score))


def test_inviting_and_locking_out(olga: Visitor, connection: Connection) -> None:
    olga.follow("People")
    olga.fill("note", "the course")
    olga.press("Make a link")
    olga.sees("Whoever has this link may join", ".key")
    olga.picture("invited")
    link = olga.text("[data-link]")
    assert link.startswith(f"{olga.address}/join/")
    guest = Visitor(olga.chrome, olga.address)
    guest.chrome.get(link)
    guest.fill("name", "ada")
    guest.press("Join")
    guest.sees("shown this once", ".key")
    ada = people.named(connection, "ada")
    assert ada is not None and ada.role is Role.CONTESTANT
    key = guest.text(".key code")
    organiser = people.named(connection, "olga")
    assert organiser is not None
    back = Visitor(olga.chrome, olga.address)
    back.sign_in(connection, organiser)
    back.go("organiser/people")
    back.press("Lock out", near="ada")
    back.sees("locked out")
    assert people.by_key(connection, key) is None
    back.press("Let in", near="ada")
    back.until(lambda: "locked out" not in back.text())
    assert people.by_key(connection, key) == ada


def test_an_invitation_is_ended(olga: Visitor, connection: Connection) -> None:
    olga.follow("People")
    olga.fill("note", "a mistake")
    olga.press("Make a link")
    olga.sees("Whoever has this link", ".key")
    olga.press("End it", near="a mistake")
    olga.until(lambda: "a mistake" not in olga.text())
    assert people.open_invitations(connection) == []


def test_announcing(olga: Visitor, connection: Connection) -> None:
    olga.fill("text", "Lunch is ready <b>now</b>")
    olga.press("Announce")
    olga.sees("Lunch is ready <b>now</b>", ".announcement")
    olga.go("")
    olga.sees("Lunch is ready <b>now</b>", ".announcement")
    olga.go("organiser")
    olga.press("Remove", near="Lunch is ready")
    olga.until(lambda: "Lunch" not in olga.text())
    assert contest.announced(connection) == []


def test_the_rules_are_seen_and_a_mistake_in_them_is_said(olga: Visitor, rules: Path) -> None:
    rules.write_text("[limits]\nper_day = 17\n")
    olga.follow("Rules")
    olga.sees("17 submissions")
    rules.write_text("[limits]\nper_day = many\n")
    olga.go("organiser")
    olga.sees("are not in force; those before are", "[role=alert]")
    olga.go("rules")
    olga.sees("17 submissions")


def test_some_are_rejudged_looked_at_and_then_count(
    olga: Visitor, connection: Connection, person: Add, attempts: FakeWorker
) -> None:
    ids = {name: hand_in(connection, person(name), f"of {name}") for name in ("ada", "bob", "eve")}
    for score in (1.0, 1.1, 1.2):
        done(connection, attempts, score)
    olga.go("organiser/submissions?find=of")
    olga.choose("of ada", "of eve")
    olga.fill("reason", "a fault was mended")
    olga.picture("rejudge-chosen")
    olga.press("Rejudge those chosen above")
    olga.follow("a fault was mended")
    olga.sees("0 of 2 ended")
    for score in (2.0, 2.2):
        done(connection, attempts, score)
    olga.chrome.refresh()
    olga.sees("2 of 2 ended")
    olga.picture("rejudged")

    def scores() -> list[float | None]:
        found = gradings.status(connection, ids.values())
        return [found[ids[name]].score for name in ("ada", "bob", "eve")]

    assert scores() == [1.0, 1.1, 1.2], "they were only looked at"
    olga.press("Let the new results count")
    olga.sees("applied")
    assert scores() == [2.0, 1.1, 2.2]
    olga.follow("Audit log")
    olga.sees("apply rejudging")


def test_a_rejudging_is_dropped(
    olga: Visitor, connection: Connection, person: Add, attempts: FakeWorker
) -> None:
    id = hand_in(connection, person("ada"), "mine")
    done(connection, attempts, 1.0)
    olga.go("organiser/submissions")
    olga.fill("reason", "by mistake")
    olga.press("Rejudge everything that stands")
    olga.follow("by mistake")
    olga.press("Drop them")
    olga.sees("dropped")
    assert gradings.status(connection, [id])[id].score == 1.0


def test_disqualifying_with_a_reason_and_reinstating(
    olga: Visitor, connection: Connection, person: Add, attempts: FakeWorker
) -> None:
    id = hand_in(connection, person("eve"), "copied")
    done(connection, attempts, 9.0)
    olga.go("organiser/submissions")
    olga.follow("copied")
    olga.fill("reason", "it is bob's")
    olga.press("Disqualify")
    olga.sees("Disqualified: it is bob's", ".problem")
    assert gradings.status(connection, [id])[id].disqualified == "it is bob's"
    olga.go("")
    olga.until(lambda: "copied" not in olga.text())
    olga.go(f"submissions/{id}")
    olga.press("Reinstate")
    olga.until(lambda: "Disqualified" not in olga.text())
    olga.go("organiser/audit")
    log = olga.text(".list")
    assert log.index("reinstate") < log.index("disqualify") and "it is bob's" in log
    olga.picture("audit")
