"""A backup of an arena that runs becomes another arena with everything in it."""

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import URL, Connection, text

from harness.arena.arena import alone_in, database
from harness.arena.backup import backup, restore
from harness.arena.data_dir import DataDir
from harness.arena.rules import RulesFile
from harness.arena.states import State
from harness.arena.store import board, contest, people, watching, workers
from harness.arena.store.database import open_engine
from harness.arena.store.people import Person, Role
from harness.arena.store.tables import metadata
from harness.board import keys, tables
from harness.board.document import Document
from harness.board.keys import SigningKey
from harness.board.store import enter_document
from harness.protocol.errors import UsageError
from tests.arena.submitting import FakeWorker, kept_report, submit, waiting_jobs
from tests.board import factory


def test_everything_comes_back(
    connection: Connection,
    worker: FakeWorker,
    data_dir: DataDir,
    ada: Person,
    tmp_path: Path,
    fresh_database: Callable[[], URL],
) -> None:
    key = people.new_key(connection, ada.id, "laptop")
    done = submit(connection, ada, "done")
    worker.grade(1.5)
    waiting = submit(connection, ada, "waiting")
    file = tmp_path / "arena.backup"
    contest.rejudge(connection, ada, [done], "again")
    people.sign_in(connection, ada.id)
    people.invite(connection, ada.id, Role.CONTESTANT, 1, "")
    signing_key, imported = SigningKey.at(data_dir.signing_key), Document.of(factory.report())
    enter_document(connection, imported.signed(signing_key.sign(imported.text)))
    data_dir.rules.write_text('title = "the contest"\n')
    own = signing_key.public
    keys.add_to_list(data_dir.signing_key, "1" * 64, "the lab")
    RulesFile(data_dir.rules).thaw()
    killed = tmp_path / ".unfinished-backup-arena.backup-killed"
    killed.mkdir()
    with alone_in(data_dir):  # as the arena that runs
        backup(data_dir, None, file)
    assert file.stat().st_mode & 0o777 == 0o600 and not killed.exists()
    other, url = DataDir(tmp_path / "other"), fresh_database()
    restore(other, url, file)
    rules = RulesFile(other.rules).now
    assert rules.thawed and rules.title == "the contest", "the board stays thawed"
    assert keys.trusted(other.signing_key) == {own, "1" * 64}
    engine = open_engine(url, connections=1)
    with engine.connect() as there:
        found = watching.status(there, [done, waiting])
        assert (found[done].score, found[waiting].place) == (1.5, 1)
        assert kept_report(there, found[done].report) == kept_report(connection, found[done].report)
        assert people.by_key(there, key) == ada
        for table in (*metadata.tables, *tables.metadata.tables):
            count = text(f"SELECT count(*) FROM {table}")
            assert there.scalar(count) == connection.scalar(count) > 0, table
        assert waiting_jobs(there), "the queue is there, too"
    engine.dispose()


@pytest.mark.parametrize(
    "content", [None, b"", b"no archive", gzip.compress(b"cut off", mtime=0)[:12]]
)
def test_what_is_no_backup_is_said(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "x.backup"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=r"no file|no backup") as said:
        restore(DataDir(tmp_path / "data"), None, file)
    assert len(str(said.value).splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_a_folder_without_an_arena_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no arena in"):
        backup(DataDir(tmp_path / "data"), None, tmp_path / "x.backup")
    assert not (tmp_path / "data").exists()


def test_a_file_is_no_folder_for_an_arena(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="is not a folder"):
        DataDir(file)


BACKUP_OF_0_1 = Path(__file__).with_name("before") / "arena-0.1.backup"
"""A backup that version 0.1 made of an arena with a key for another machine."""


def test_a_restored_arena_of_version_0_1_works() -> None:
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        data_dir = DataDir(Path(folder, "data"))
        restore(data_dir, None, BACKUP_OF_0_1)
        with pytest.raises(UsageError, match="holds an arena already"):
            restore(data_dir, None, BACKUP_OF_0_1)
        with database(data_dir) as (owner, _):
            engine = open_engine(owner, connections=2)
            worker = FakeWorker(engine)
            with engine.connect() as connection:
                connection.execution_options(isolation_level="AUTOCOMMIT")
                _check_what_version_0_1_kept(connection)
                context = MigrationContext.configure(connection)
                differences = compare_metadata(context, [metadata, tables.metadata])
                known = [each for each in differences if "procrastinate" not in str(each)]
                assert {each[1].name for each in known} == {"refused"}, "it is not read"
                before = board.version(connection)
                for _ in range(waiting_jobs(connection)):
                    worker.grade(1.5)
                assert {each.state for each in watching.recent(connection)} == {State.DONE}
                assert board.version(connection) > before
                names = {entry.name for entry in board.counting(connection)}
                assert names == {"counts", "again", "waits"}
            engine.dispose()


def _check_what_version_0_1_kept(connection: Connection) -> None:
    found = {each.name: each for each in watching.recent(connection)}
    assert {name: (each.state, each.score) for name, each in found.items()} == {
        "counts": (State.DONE, 1.5),
        "withdrawn": (State.DONE, 1.6),
        "disqualified": (State.DONE, 1.7),
        "again": (State.DONE, 1.1),
        "waits": (State.QUEUED, None),
    }
    verified = {(entry.name, entry.verified) for entry in board.counting(connection)}
    assert verified == {("counts", True), ("again", True)}
    (rejudging,) = contest.rejudgings(connection)
    assert (rejudging["reason"], rejudging["open"]) == ("a look", True)
    (machine,) = workers.machines(connection)
    assert machine.name == "lab-3" and machine.revoked, "its key was a login of the database"
