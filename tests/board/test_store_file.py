"""Stores in files: foreign, damaged and locked ones, and those of earlier versions."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from sqlalchemy import REAL, BigInteger, Boolean, Float, Integer, create_engine

from harness.board import keys, schema, sqlite_file, tables
from harness.board.entry import INDEXED
from harness.board.sqlite_file import FileStore
from harness.protocol.errors import StoreError
from tests.board import factory


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE photos (title)")


def torn(path: Path) -> None:
    with FileStore(path, create=True) as store:
        for day in range(40):
            store.enter(factory.report(day=day))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def older(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute("CREATE TABLE reports (id TEXT, report TEXT)")


def changed(statement: str) -> Callable[[Path], None]:
    """Return what makes a store with one report, and then changes it."""

    def make(path: Path) -> None:
        with FileStore(path, create=True) as store:
            store.enter(factory.report(score=0.9))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)

    return make


UNUSABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "notes": (lambda path: path.write_text("somebody's notes\n" * 400), "is no leaderboard"),
    "JSON": (lambda path: path.write_text("{}"), "is damaged or is no leaderboard"),
    "of another program": (of_another_program, "of another program"),
    "torn": (torn, "damaged"),
    "older": (older, r"is older than version 0\.1"),
    "newer": (changed("UPDATE alembic_version SET version_num = 'board_9999'"), "newer judge"),
    "altered": (changed("UPDATE reports SET report = replace(report, '0.9', '1.9')"), "altered"),
    "halved": (changed("DELETE FROM entries"), "1 entries have lost their other half"),
}


@pytest.mark.parametrize(("make", "why"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_file_that_cannot_be_used_is_left_alone(
    make: Callable[[Path], object], why: str, path: Path
) -> None:
    make(path)
    before = path.read_bytes()
    refused = pytest.raises(StoreError, match=rf"leaderboard\.sqlite .*{why}")
    with refused, FileStore(path, create=True) as store:
        list(store.documents())
    assert path.read_bytes() == before


VERSION_0_1 = Path(__file__).with_name("before") / "version-0.1.sqlite"
"""A file of version 0.1: three reports of its own, one that another key signed, one that no key
signed, and a report that was set aside."""


def content(path: Path) -> list[tuple[object, ...]]:
    """Return everything that was entered into a file of version 0.1."""
    with closing(sqlite3.connect(path)) as connection:
        return [
            row
            for query in (
                "SELECT * FROM reports ORDER BY id",
                f"SELECT {', '.join(INDEXED[:-2])} FROM entries ORDER BY id",
                "SELECT * FROM signatures ORDER BY id, key",
                "SELECT * FROM refused",
            )
            for row in connection.execute(query)
        ]


def test_a_store_of_version_0_1_opens_and_loses_nothing(path: Path) -> None:
    shutil.copy(VERSION_0_1, path)
    private = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
    path.with_suffix(".key").touch(0o600)
    path.with_suffix(".key").write_bytes(
        private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    before = content(path)
    with FileStore(path) as store:
        assert {(entry.name, entry.verified) for entry in store.entries()} == {
            ("tile", True),
            ("wide", True),
            ("broken", True),
            ("claimed", False),
            ("laptop", False),
        }
        signed = [document for document in store.documents() if document.signature]
        assert [keys.fits(d.signature, d.text) for d in signed if d.signature] == [True] * 4
        store.enter(factory.report("new"))
    assert len(content(path)) == len(before) + 3
    assert set(before) < set(content(path))


def test_migrations_end_at_the_present_tables(path: Path) -> None:
    shutil.copy(VERSION_0_1, path)
    FileStore(path).close()
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": _other_type})
        differences = compare_metadata(context, tables.metadata)
        assert {each[1].name for each in differences} == {"refused"}, "it is not read"
    engine.dispose()


def _other_type(_: object, __: object, ___: object, found: object, wanted: object) -> bool:
    """Compare types: SQLite's strict tables have no booleans and one kind of integer."""
    kinds = {Boolean: Integer, BigInteger: Integer, Float: REAL}
    return not isinstance(found, kinds.get(type(wanted), type(wanted)))


def test_a_migration_that_fails_leaves_the_old_version(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FileStore(path, create=True) as store:
        id = store.enter(factory.report())
    folder = Path(shutil.copytree(schema.MIGRATIONS, tmp_path / "migrations"))
    (folder / "versions" / "board_next.py").write_text(
        "from alembic import op\n"
        f"revision, down_revision = 'next', {schema.HEAD!r}\n"
        "def upgrade():\n"
        "    op.execute('ALTER TABLE entries ADD COLUMN colour TEXT')\n"
        "    op.execute('ALTER TABLE nowhere ADD COLUMN x TEXT')\n"
    )
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", folder)
        patch.setattr(schema, "REVISIONS", (*schema.REVISIONS, "next"))
        patch.setattr(schema, "HEAD", "next")
        with pytest.raises(StoreError, match="nowhere"):
            FileStore(path)
    assert path.read_bytes() == before
    with FileStore(path) as store:
        assert [entry.id for entry in store.entries()] == [id]


def test_a_writer_waits_for_another_and_then_gives_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.01)
    one, other = FileStore(path, create=True), FileStore(path)
    with closing(one), closing(other):
        with one.writing():
            with pytest.raises(StoreError, match="stayed locked by another program"):
                other.writing().__enter__()
            with other.reading() as connection:  # readers do not wait
                connection.exec_driver_sql("PRAGMA user_version")
        with one.reading(), other.writing():
            pass
