"""A course: its roster and its gradebook, both as CSV."""

import csv
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, select, text, update

from harness.arena.problems import NotPossible
from harness.arena.rules import Rules
from harness.arena.store.people import (
    Listing,
    Person,
    Role,
    everybody,
    invite,
    open_invitations,
    proper_name,
)
from harness.arena.store.tables import invitations, people

COLUMNS = ("name", "login", "section")
_ALSO_CALLED = {"email": "login", "e-mail": "login", "group": "section"}
MAX_LINES = 5000


def read_roster(text: str) -> list[Listing]:
    """Read a CSV with the columns name, login and section. Raises NotPossible."""
    text = text.removeprefix("\ufeff")
    dialect = csv.excel()
    first = text.partition("\n")[0]
    dialect.delimiter = next((each for each in "\t;" if each in first), ",")
    reader = csv.DictReader(io.StringIO(text), dialect=dialect)
    written = [(each or "").strip().lower() for each in reader.fieldnames or ()]
    head = [_column(each, written) for each in written]
    reader.fieldnames = head
    if missing := [each for each in COLUMNS[:2] if each not in head]:
        raise NotPossible(
            f"the roster's first line names no column {missing[0]}; it begins with: "
            f"{','.join(COLUMNS)}"
        )
    found = []
    for number, row in enumerate(reader, start=2):
        values = {name: " ".join((row.get(name) or "").split()) for name in COLUMNS}
        if not any(values.values()):
            continue
        if not values["name"] or not values["login"]:
            raise NotPossible(f"line {number} of the roster has no name or no login")
        try:
            proper_name(values["name"])
        except NotPossible as error:
            raise NotPossible(f"in line {number} of the roster, {error}") from None
        found.append(Listing(**values))
    if not 0 < len(found) <= MAX_LINES:
        raise NotPossible(f"a roster has from 1 to {MAX_LINES} lines, and this one {len(found)}")
    logins = [each.login.lower() for each in found]
    if len(set(logins)) < len(logins):
        double = next(login for login in logins if logins.count(login) > 1)
        raise NotPossible(f"the login {double} is twice in the roster")
    return found


def _column(written: str, all_written: Collection[str]) -> str:
    """Return the column that a roster calls by another name, unless it has it by its own, too."""
    meant = _ALSO_CALLED.get(written, written)
    return written if meant in all_written else meant


def import_roster(
    connection: Connection, actor: Person, roster: list[Listing]
) -> list[tuple[Listing, str]]:
    """Make a personal link for each line. People who have joined, or have a link already, get no
    other one, but the section of this roster."""
    joined = {
        row.login.lower(): row.id
        for row in connection.execute(select(people.c.id, people.c.login)).all()
        if row.login
    }
    waiting = {
        each["login"].lower(): each["id"] for each in open_invitations(connection) if each["login"]
    }
    links = []
    for each in roster:
        login = each.login.lower()
        for ids, table in ((joined, people), (waiting, invitations)):
            if login in ids and each.section:
                known = update(table).where(table.c.id == ids[login])
                connection.execute(known.values(section=each.section))
        if login not in joined and login not in waiting:
            links.append((each, invite(connection, actor.id, Role.CONTESTANT, 1, "roster", each)))
    return links


@dataclass(frozen=True, slots=True)
class Result:
    """A contestant's line of the gradebook."""

    name: str
    login: str
    section: str
    submissions: int
    score: float | None = None
    late: bool = False
    points: float = 0.0
    accuracy: str = ""
    """The accuracy grade of the kernel."""
    kernel: str = ""
    badges: str = ""
    submitted: str = ""


def gradebook(connection: Connection, rules: Rules) -> list[Result]:
    """Return the best accepted result of every contestant, by points and then by score."""
    rows = connection.execute(_SUBMISSIONS).all()
    contestants = [each for each in everybody(connection) if not each.organises]
    contestants.sort(key=lambda each: (each.section is None, each.section))
    found = []
    for person in contestants:
        own = [row for row in rows if row.person == person.id]
        nothing = Result(person.name, person.login or "", person.section or "", len(own))
        results = [_result(nothing, person, row, rules) for row in own if row.is_result]
        found.append(max(results, key=lambda each: (each.points, each.score or 0), default=nothing))
    return found


_SUBMISSIONS = text(
    """SELECT s.person, s.name, s.received, e.score, e.cores, e.launch, e.accuracy,
        e.verdict = 'accepted' AND s.withdrawn IS NULL AND s.disqualified IS NULL AS is_result
    FROM submissions s
    LEFT JOIN gradings g ON g.id = s.counts
    LEFT JOIN entries e ON e.id = g.report
    ORDER BY s.received"""
)


def _result(nothing: Result, person: Person, row: Any, rules: Rules) -> Result:
    late = rules.is_late(row.received, person)
    return replace(
        nothing,
        score=row.score,
        late=late,
        points=rules.points_for(row.score, late),
        accuracy=row.accuracy or "",
        kernel=row.name,
        badges=" ".join(filter(None, (row.cores, row.launch))),
        submitted=row.received.isoformat(timespec="seconds"),
    )


def as_csv(head: tuple[str, ...], rows: Iterator[tuple[object, ...]]) -> str:
    """Write a CSV in which no cell is a formula for a spreadsheet."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow([_harmless(cell) for cell in row])
    return written.getvalue()


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t") else cell
