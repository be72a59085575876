"""Fill an arena's database with entries for `lab load`."""

from sqlalchemy import text

from harness.arena.arena import alone_in, database
from harness.arena.data_dir import DataDir
from harness.arena.store import people
from harness.arena.store.database import open_engine
from harness.arena.store.people import Role
from harness.board.entry import INDEXED
from tests.board.factory import crowd

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
