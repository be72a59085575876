"""Fill an arena's database with entries for `lab load`, and print people's keys."""

from __future__ import annotations

import sys
from pathlib import Path

from sqlalchemy import text

from harness.arena.arena import alone_in, database
from harness.arena.data_dir import DataDir
from harness.arena.store import people
from harness.arena.store.database import open_engine
from harness.arena.store.people import Role
from harness.board.entry import INDEXED
from tests.board.factory import crowd

RULES = """\
quick = true
[limits]
in_flight = 100000
per_day = 100000
device_seconds_per_day = 10000000
per_address_per_minute = 10000000
"""
PEOPLE = 60


def main(folder: Path, entries: int) -> None:
    data_dir = DataDir(folder / "data")
    data_dir.rules.write_text(RULES)
    with alone_in(data_dir), database(data_dir) as (owner, _):
        engine = open_engine(owner, connections=1)
        with engine.begin() as connection:
            contestants = [
                people.add_person(connection, f"person {number}", Role.CONTESTANT)
                for number in range(PEOPLE)
            ]
            people.add_person(connection, "organiser", Role.ORGANISER)
            keys = [people.new_key(connection, person.id, "load") for person in contestants]
            columns = ", ".join(INDEXED)
            values = ", ".join(f":{name}" for name in INDEXED)
            rows = [entry._asdict() for entry in crowd(entries)]
            connection.execute(text("INSERT INTO reports VALUES (:id, '{}')"), rows)
            connection.execute(text(f"INSERT INTO entries ({columns}) VALUES ({values})"), rows)
            connection.execute(
                text(
                    "INSERT INTO submissions (id, person, name, sha256, source) "
                    "VALUES (substr(:id, 1, 16), :person, :name, :sha256, '')"
                ),
                [row | {"person": contestants[n % PEOPLE].id} for n, row in enumerate(rows)],
            )
            connection.execute(
                text(
                    "INSERT INTO gradings (submission, person, turn, state, report, verdict, "
                    "started, ended, seconds) SELECT s.id, s.person, 0, 'done', e.id, e.verdict, "
                    "now(), now(), 5 FROM submissions s "
                    "JOIN entries e ON substr(e.id, 1, 16) = s.id"
                )
            )
            connection.execute(
                text(
                    "UPDATE submissions SET counts = g.id FROM gradings g "
                    "WHERE g.submission = submissions.id"
                )
            )
        engine.dispose()
    print(*keys)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
