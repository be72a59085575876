"""Stores in files and in PostgreSQL: what both keep, and what moves between them."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, inspect, text

from harness.board import keys, names
from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.store import Store
from harness.cli.commands._stores import open_store
from harness.protocol.errors import StoreError
from harness.protocol.report import Report
from tests.board import factory
from tests.board.conftest import Call
from tests.board.stores import KINDS, New, Where

TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)


def test_report_and_index_come_back_as_they_were(where: Where) -> None:
    report = factory.report("tile", "ada", 0.75, seed=2**64 + 1)
    with where.open() as store:
        id = store.enter(report)
    with where.open(create=False) as store:
        (entry,) = store.entries()
        kept = store.document(id)
    assert kept.text == Document.of(report).text and kept.signature is not None
    assert entry == Entry.of(report, id)._replace(verified=True)
    assert [type(value) for value in entry] == [type(value) for value in Entry.of(report, id)]
    assert (entry.seed, entry.quick, entry.on_gpu) == (str(2**64 + 1), False, True)


def test_any_text_is_kept_or_refused(where: Where) -> None:
    model = factory.report("tile", "ada", source=factory.SOURCE)

    @given(name=TEXTS, author=TEXTS, printed=TEXTS)
    @settings(max_examples=30)
    def holds(name: str, author: str, printed: str) -> None:
        submission = model.submission.model_copy(update={"name": name, "author": author})
        report = model.model_copy(update={"submission": submission, "printed": printed})
        name, author = names.normalised(name), names.normalised(author)
        if names.file_problem(name) or names.problem(author):
            with pytest.raises(StoreError, match="cannot be the name of"):
                store.enter(report)
            return
        kept = store.document(store.enter(report)).report
        assert (kept.submission.name, kept.submission.author) == (name, author)
        assert kept.printed == printed

    with where.open() as store:
        holds()


def everything(where: Where) -> tuple[list[str], list[Entry]]:
    """Return what is in a store, apart from what it trusts."""
    with where.open(create=False) as store:
        entries = [entry._replace(verified=False) for entry in store.entries()]
        return [document.text for document in store.documents()], sorted(entries)


@pytest.fixture
def pair(new: New) -> tuple[Where, Where]:
    """Return two places, one of each kind. The tests move reports in both directions."""
    one, other = KINDS
    return new(one), new(other)


def copied(call: Call, source: Where, into: Where) -> str:
    """Import an export of one store into another, and return the sentence about it."""
    file = source.key.with_suffix(".jsonl")
    file.write_text(call("export", "--store", source.address.text)[1], encoding="utf-8")
    code, out, err = call("import", file, "--store", into.address.text)
    assert (code, err) == (0, "")
    return out


def test_merging_in_any_order_gives_the_same(
    pair: tuple[Where, Where], new: New, call: Call
) -> None:
    one, other = pair
    reports = [factory.report("naïve 🚀", f"author {i}", day=i) for i in range(4)]
    reports += [factory.rejected(), factory.wrong()]

    def fill(where: Where, some: list[Report]) -> None:
        with where.open() as store:
            for report in some:
                store.enter(report)

    def merge(source: Where, into: Where) -> str:
        out = copied(call, source, into)
        return out.partition(" into ")[0] + out.rpartition(f"{into.address}")[2]

    fill(one, reports[:4])
    fill(other, reports[2:])
    third = new("sqlite")
    assert merge(one, third) == "4 entered.\n"
    assert merge(other, one) == "2 entered, 2 already there.\n"
    assert merge(third, other) == "2 entered, 2 already there.\n"
    assert everything(one) == everything(other)
    assert merge(other, one) == "0 entered, 6 already there.\n"
    assert len(everything(one)[1]) == 6


def verified(store: Store) -> dict[str, bool]:
    return {entry.name: entry.verified for entry in store.entries()}


def test_signatures_move_with_reports(pair: tuple[Where, Where], call: Call) -> None:
    one, other = pair
    with one.open() as store:
        own = store.enter(factory.report("own"))
        stranger = Document.of(factory.report("stranger"))
        store.enter_documents([stranger])
    with other.open() as store:
        store.enter(factory.report("native"))
    copied(call, one, other)
    with other.open(create=False) as store:
        assert verified(store) == {"own": False, "stranger": False, "native": True}
        document = store.document(own)
        assert document.signature is not None and keys.fits(document.signature, document.text)
        assert store.document(stranger.id).signature is None
    copied(call, other, one)
    with one.open(create=False) as store:
        assert verified(store) == {"own": True, "stranger": False, "native": False}


def test_of_several_signatures_a_trusted_one_comes_first(where: Where, tmp_path: Path) -> None:
    document = Document.of(factory.report())
    others = [keys.SigningKey.at(tmp_path / f"{number}.key") for number in range(3)]
    with where.open() as store:
        store.enter_documents(document.signed(key.sign(document.text)) for key in others)
        first = min(key.public for key in others)
        kept = store.document(document.id).signature
        assert kept is not None and kept.key == first
        while keys.SigningKey.at(where.key).public < first:
            where.key.unlink()  # otherwise it might come first by chance
        store.enter(document.report)
        kept = store.document(document.id).signature
        assert kept is not None and kept.key == keys.SigningKey.at(where.key).public


def test_a_password_is_not_shown(new: New, call: Call) -> None:
    where = new("postgresql")
    with where.open() as store:
        assert "***" in store.name
        password = where.address.text.split(":")[2].split("@")[0]
        assert password and password not in store.name
    code, _, err = call("leaderboard", "--store", where.address.text.replace(password, "wrong"))
    assert code == 2 and err.count("\n") == 1
    assert "cannot be used" in err and password not in err


def test_a_database_asks_for_a_key(new: New) -> None:
    address = new("postgresql").address
    with open_store(address, create=True) as store, pytest.raises(StoreError, match="--key"):
        store.enter(factory.report())


@pytest.mark.parametrize(
    "address", ["mysql://host/base", "postgresql://host", "http://host/x", "://", "postgres"]
)
def test_a_wrong_address_is_refused_in_one_sentence(address: str, call: Call) -> None:
    code, _, err = call("leaderboard", "--store", address)
    assert code == 2 and err.count("\n") == 1
    assert "is no store" in err or "there is no" in err


@pytest.mark.parametrize("address", ["mysql://host/base", "."])
def test_a_wrong_address_needs_no_package_of_the_arena(
    address: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setitem(sys.modules, "harness.arena.as_store", None)
    code, _, err = call("leaderboard", "--store", address)
    assert code == 2 and "postgresql://OWNER@HOST/DATABASE" in err


def test_another_programs_database_is_left_alone(new: New) -> None:
    where = new("postgresql")
    engine = create_engine(where.address.text.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE photos (title text)"))
    with pytest.raises(StoreError, match="there is no store"), where.open():
        pass
    with engine.begin() as connection:
        assert inspect(connection).get_table_names() == ["photos"]
    engine.dispose()
