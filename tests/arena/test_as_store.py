"""Tests of an arena's database as a store: export, import, and who may read imported reports."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import URL, Connection, text

from harness.arena.arena import alone_in
from harness.arena.data_dir import DataDir, Secrets
from harness.arena.store import board, contest
from harness.arena.store.database import open_engine
from harness.arena.store.people import Role
from harness.arena.store.preparing import prepare
from harness.board import keys
from harness.board.document import Document
from harness.board.keys import SigningKey
from harness.board.sqlite_file import FileStore
from harness.board.store import Store
from harness.cli import main as cli
from harness.cli.commands._stores import Address, open_store
from harness.cli.views.console import Terminal
from harness.protocol.errors import StoreError
from tests.arena.submitting import Add, FakeWorker, Key, submit
from tests.board import factory

Call = Callable[..., str]


@pytest.fixture
def arena(
    connection: Connection, worker: FakeWorker, data_dir: DataDir, person: Add
) -> Iterator[dict[str, str]]:
    """A running arena with counting, withdrawn, disqualified, rejudged and waiting submissions.

    The value maps the name of each submission to its id.
    """
    ada, olga = person("ada"), person("olga", Role.ORGANISER)
    ids: dict[str, str] = {}
    for name, score in (("counts", 1.5), ("withdrawn", 1.6), ("copied", 1.7), ("again", 1.1)):
        ids[name] = submit(connection, ada, name)
        worker.grade(score)
    contest.withdraw(connection, ada, ids["withdrawn"])
    contest.disqualify(connection, olga, ids["copied"], "copied")
    contest.rejudge(connection, olga, [ids["again"]], "to be looked at")
    worker.grade(1.3)
    ids["waits"] = submit(connection, ada, "waits")
    SigningKey.at(data_dir.signing_key)
    with alone_in(data_dir):
        yield ids


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """A function that runs a command, which must succeed and print nothing to stderr."""
    monkeypatch.setenv("COLUMNS", "300")

    def run(*words: str | Path) -> str:
        code = cli.run(cli.parse([str(word) for word in words]), Terminal())
        said = capsys.readouterr()
        assert (code, said.err) == (0, "")
        return said.out

    return run


@pytest.fixture
def copied(call: Call, tmp_path: Path) -> Call:
    """A function that imports an export of one store into another, and returns what that says."""

    def copy(source: str | Path, into: str | Path) -> str:
        file = tmp_path / "all.jsonl"
        file.write_text(call("export", "--store", source), encoding="utf-8")
        return call("import", file, "--store", into)

    return copy


def scores(store: Store) -> dict[str, tuple[float | None, bool]]:
    return {entry.name: (entry.score, entry.verified) for entry in store.entries()}


def counting(connection: Connection) -> dict[str, bool]:
    """Return the counting results by name, and whether they are verified."""
    return {entry.name: entry.verified for entry in board.counting(connection)}


def test_only_counting_results_are_exported_and_they_are_signed(
    arena: dict[str, str], data_dir: DataDir, copied: Call, tmp_path: Path
) -> None:
    imported = tmp_path / "imported.sqlite"
    assert copied(data_dir.folder, imported) == f"2 entered into {imported}.\n"
    assert copied(data_dir.folder, imported).startswith("0 entered")
    own = SigningKey.at(data_dir.signing_key).public
    with FileStore(imported) as store:
        assert scores(store) == {"counts": (1.5, False), "again": (1.1, False)}
        for document in store.documents():
            assert document.signature is not None and document.signature.key == own
            assert keys.fits(document.signature, document.text)


def test_an_imported_result_is_unverified_on_the_board(
    arena: dict[str, str],
    connection: Connection,
    data_dir: DataDir,
    call: Call,
    copied: Call,
    tmp_path: Path,
) -> None:
    file = tmp_path / "leaderboard.sqlite"
    with FileStore(file, create=True) as store:
        store.enter(factory.report("from a file", "bob", 1.9))
    before = board.version(connection)
    assert copied(file, data_dir.folder) == f"1 entered into {data_dir.folder}.\n"
    assert board.version(connection) > before, "whoever watches the board is told"
    assert copied(file, data_dir.folder).startswith("0 entered")
    assert counting(connection) == {"counts": True, "again": True, "from a file": False}
    (entry,) = board.counting(connection, datetime(2020, 1, 1, tzinfo=UTC))
    assert entry.name == "from a file", "a freeze concerns submissions"
    with open_store(Address(str(data_dir.folder)), key=file.with_suffix(".key")) as store:
        assert store.key == file.with_suffix(".key")
    assert "from a file" in call("leaderboard", "--store", data_dir.folder)
    copied(data_dir.folder, file)
    with FileStore(file) as store:
        assert scores(store)["from a file"] == (1.9, True)
        assert scores(store)["counts"] == (1.5, False)


def test_only_organisers_read_imported_reports_until_sources_are_open(
    arena: dict[str, str],
    connection: Connection,
    data_dir: DataDir,
    key: Key,
    person: Add,
    client: TestClient,
    rules: Path,
) -> None:
    document = Document.of(factory.report("from a file", "bob", 1.9))
    with open_store(Address(str(data_dir.folder))) as store:
        store.enter_documents([document])
    page = f"/entries/{document.id[:16]}"
    organiser, contestant = key(person("otto", Role.ORGANISER)), key(person("eve"))
    assert client.get(f"{page}.html", headers=contestant).status_code == 404
    assert client.get(f"{page}.json", headers=organiser).text == document.json
    assert client.get(f"{page}.html", headers=organiser).status_code == 200
    rules.write_text('sources = "open"\n')
    assert client.get(f"{page}.cu").text == document.report.submission.source


def test_two_arenas_exchange_their_own_results(
    arena: dict[str, str],
    data_dir: DataDir,
    secrets: Secrets,
    fresh_database: Callable[[], URL],
    copied: Call,
) -> None:
    url = fresh_database()
    other = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with open_store(Address(other), create=True) as store:
        store.enter_documents([Document.of(factory.report("before it was an arena", "bob", 1.2))])
    prepare(url, secrets)
    assert copied(data_dir.folder, other).startswith("2 entered")
    assert copied(other, data_dir.folder).startswith("1 entered")
    engine = open_engine(url, connections=1)
    with engine.begin() as connection:
        names = ("counts", "again", "before it was an arena")
        assert counting(connection) == dict.fromkeys(names, False)
    engine.dispose()


def test_a_database_of_another_version_is_refused(
    fresh_database: Callable[[], URL], secrets: Secrets
) -> None:
    url = fresh_database()
    prepare(url, secrets)
    engine = open_engine(url, connections=1)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'arena_9999'"))
    engine.dispose()
    with pytest.raises(StoreError, match="by a newer judge"):
        prepare(url, secrets)
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with (
        pytest.raises(StoreError, match="start it once with this version"),
        open_store(Address(address)),
    ):
        pass
