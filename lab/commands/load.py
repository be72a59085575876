"""Measure how fast the pages of a real arena are under load.

The arena has 10 000 entries. Locust reads 30 pages a second while 300 pages
watch the board or a submission, and the CPU device grades. Pages that watch the
board read it again at each change.

example:
  python3 -m lab load --out load.json

It needs the packages of the dependency group `test`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sqlalchemy import text

from harness.arena.arena import alone_in, database
from harness.arena.data_dir import DataDir
from harness.arena.store import people
from harness.arena.store.database import open_engine
from harness.arena.store.people import Role
from harness.board.entry import INDEXED, Entry
from harness.cli.commands._command import Exit
from harness.cli.views.console import Terminal
from lab.arena_process import ROOT, running_arena
from tests.board import factory

PORT = 8933
VISITORS = 330
"""One in eleven reads pages, the others watch."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, help="write the percentiles of each page as JSON")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    with tempfile.TemporaryDirectory(prefix="arena-") as folder:
        data = Path(folder, "data")
        keys = fill(DataDir(data), 10_000)
        with running_arena(data, PORT):
            options = [
                f"--host=http://127.0.0.1:{PORT}",
                f"--users={VISITORS}",
                f"--spawn-rate={VISITORS}",
                "--run-time=60s",
                *([f"--json-file={arguments.out.with_suffix('')}"] if arguments.out else []),
            ]
            load = [sys.executable, "-m", "locust", "--locustfile=lab/arena_load.py", "--headless"]
            done = subprocess.run(
                [*load, "--only-summary", *options],
                cwd=ROOT,
                env={**os.environ, "MATMUL_ARENA_LOAD_KEYS": " ".join(keys)},
                check=False,
            )
    return Exit.NO if done.returncode else Exit.YES


PEOPLE = 60
NO_LIMITS = """\
quick = true
[limits]
in_flight = 100000
per_day = 100000
device_seconds_per_day = 10000000
per_address_per_minute = 10000000
per_person_per_minute = 10000000
"""
_COLUMNS = ", ".join(INDEXED)
_VALUES = ", ".join(f":{name}" for name in INDEXED)
_STATEMENTS = (
    "INSERT INTO reports VALUES (:id, '{}')",
    f"INSERT INTO entries ({_COLUMNS}) VALUES ({_VALUES})",
    "INSERT INTO submissions (id, person, name, sha256, source) "
    "VALUES (substr(:id, 1, 16), :person, :name, :sha256, '')",
)
"""These are executed for each entry, and the following ones once."""
_GRADED = """INSERT INTO gradings
    (submission, person, turn, state, report, verdict, started, ended, seconds)
    SELECT s.id, s.person, 0, 'done', e.id, e.verdict, now(), now(), 5
    FROM submissions s JOIN entries e ON substr(e.id, 1, 16) = s.id;
UPDATE submissions SET counts = g.id FROM gradings g WHERE g.submission = submissions.id"""


def crowd(count: int) -> list[Entry]:
    """Return scored entries of so many kernels, the best first, without their reports."""
    model = factory.entry()
    names = ((n, f"kernel {n:05d}", f"author {n % 97:02d}") for n in range(count))
    return [
        factory.like(model, name, author, 1 - n / (2 * count), day=n / 144, identity=name)
        for n, name, author in names
    ]


def fill(data_dir: DataDir, entries: int) -> list[str]:
    """Make an arena with so many accepted entries, and return the keys of its people."""
    data_dir.rules.write_text(NO_LIMITS)
    with alone_in(data_dir), database(data_dir) as (owner, _):
        engine = open_engine(owner, connections=1)
        with engine.begin() as connection:
            contestants = [
                people.add_person(connection, f"person {number}", Role.CONTESTANT).id
                for number in range(PEOPLE)
            ]
            rows = [
                entry._asdict() | {"person": contestants[number % PEOPLE]}
                for number, entry in enumerate(crowd(entries))
            ]
            for statement in _STATEMENTS:
                connection.execute(text(statement), rows)
            connection.execute(text(_GRADED))
            people.add_person(connection, "organiser", Role.ORGANISER)
            keys = [people.new_key(connection, person, "load") for person in contestants]
        engine.dispose()
    return keys
