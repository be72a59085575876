"""A store's words, its halves and its signatures, each in a file of a report or two."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness.board.document import Document, StoreError
from harness.board.signing import SigningKey
from harness.board.store import Store, _recheck, kept_document
from harness.protocol.report import Signature
from tests.board.factory import report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of two reports, which are in it as somebody's claims."""
    with Store(tmp_path / "board.sqlite", "create") as store:
        store.enter_documents([Document.of(report("one")), Document.of(report("two"))])
    return tmp_path / "board.sqlite"


def change(path: Path, *statements: str) -> None:
    """As nobody should."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def ids(path: Path) -> list[str]:
    with Store(path) as store:
        return sorted(entry.id for entry in store.entries())


def said(store: Store, id: str) -> str:
    with pytest.raises(StoreError) as error:
        store.document(id)
    return str(error.value)


def test_what_is_not_there_or_was_altered_is_named(path: Path) -> None:
    one, other = ids(path)
    change(path, f"UPDATE reports SET report = replace(report, 'ada', 'eve') WHERE id = '{one}'")
    with Store(path) as store:
        assert said(store, "nobody") == f"there is no entry nobody in {path}."
        assert f"(the report of entry {one[:12]} was altered)" in said(store, one)
        assert store.document(other).id == other


@pytest.mark.parametrize("half", ["entries", "reports"])
def test_each_half_of_an_entry_is_missed(path: Path, half: str) -> None:
    one, _ = ids(path)
    with Store(path) as store:
        store.check()
        assert [document.id for document in store.documents()] == ids(path)
    change(path, f"DELETE FROM {half} WHERE id = '{one}'")
    with Store(path) as store, pytest.raises(StoreError, match="1 entries have lost their other"):
        store.check()


def test_reports_come_in_the_order_of_their_ids(path: Path) -> None:
    backwards = "SELECT id, 0 AS graded_here, NULL AS handed_in FROM entries ORDER BY id DESC"
    change(path, "DROP VIEW standing", f"CREATE VIEW standing AS {backwards}")
    with Store(path) as store:
        assert [document.id for document in store.documents()] == ids(path)


def test_of_several_signatures_the_own_comes_first_and_then_the_least(path: Path) -> None:
    one, _ = ids(path)
    keys = [digit * 64 for digit in "53a"]
    # Without the index by which SQLite would find them in order.
    change(path, "DROP TABLE signatures", "CREATE TABLE signatures (id TEXT, key TEXT, value TEXT)")
    with Store(path) as store:
        document = store.document(one)
        store.enter_documents(document.signed(Signature(key=key, value="0" * 128)) for key in keys)
        with store._database.reading() as connection:
            for own in (*keys, ""):
                kept = kept_document(connection, one, own)
                assert kept is not None and kept.signature is not None
                assert kept.signature.key == (own or "3" * 64)


def test_what_is_refused_when_all_is_entered_again_is_set_aside(path: Path) -> None:
    one, other = ids(path)
    change(path, f"UPDATE reports SET report = 'none' WHERE id = '{one}'")
    with Store(path) as store:
        with store._database.writing() as connection:
            _recheck(connection)
        (reason,) = store.refused()
        assert reason.startswith("a report is not a report that this judge can read (")
        assert [entry.id for entry in store.entries()] == [other]


def test_a_store_has_a_key_when_it_has_signed(path: Path) -> None:
    with Store(path) as store:
        assert store._own_key() == "" and not path.with_suffix(".key").exists()
        assert not any(entry.own for entry in store.entries())
        made = store.own(report("three"))
        assert made.signature is not None and store._own_key() == made.signature.key


def test_a_key_that_cannot_be_used_says_what_to_do(path: Path) -> None:
    key = path.with_suffix(".key")
    key.write_text("no key")
    with Store(path) as store, pytest.raises(StoreError) as error:
        store.own(report())
    assert str(error.value).startswith(f"{key}, the store's signing key, cannot be used: ")
    assert str(error.value).endswith(
        " Restore it, or delete it, and what was signed with it becomes a claim."
    )


def test_a_database_that_names_no_key_asks_for_one() -> None:
    class Database:
        name, key = "the arena's", None

    database: Any = Database()
    store = Store(database)
    assert store.name == "the arena's" and store._own_key() == ""
    with pytest.raises(StoreError) as error:
        store.own(report())
    assert str(error.value) == (
        "the arena's does not say which key signs what is graded here: name its file with --key. "
        "It is made where there is none."
    )


def test_what_was_graded_here_is_the_stores_own_and_is_signed_when_it_is_read(path: Path) -> None:
    """An arena's database says of an entry that its own workers graded it."""
    one, other = ids(path)
    graded = f"SELECT id, id = '{one}' AS graded_here, NULL AS handed_in FROM entries"
    change(path, "DROP VIEW standing", f"CREATE VIEW standing AS {graded}")
    with Store(path) as store:
        assert store.document(one).signature is None  # it has no key yet
        own = SigningKey.at(path.with_suffix(".key")).public
        found, claim = store.document(one), store.document(other)
        assert found.signature is not None and found.signature.key == own
        assert claim.signature is None
        assert Document.parse(found.json, "it") == found
        assert {entry.id: bool(entry.own) for entry in store.entries()} == {one: True, other: False}
        stranger = SigningKey.at(path.with_name("stranger.key"))
        store.enter_documents([claim.signed(stranger.sign(claim.text))])
        store.enter_documents([found.signed(stranger.sign(found.text))])
        for id, key in ((one, own), (other, stranger.public)):
            signature = store.document(id).signature
            assert signature is not None and signature.key == key
        store.enter_documents([found])
        signature = store.document(one).signature
        assert signature is not None and signature == found.signature
