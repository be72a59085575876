"""The store's tables, and how a store of an earlier version becomes one of today."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from harness.leaderboard.entry import INDEXED, Entry

APPLICATION_ID = 0x6D6D6172
"""Says in the file's header that a SQLite file is one of ours ("mmar")."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        f"PRAGMA application_id = {APPLICATION_ID}",
        # The truth. No later version may change the shape of this table: merging reads it from
        # stores of every version. It is apart from the index so that ranking never pages it in.
        "CREATE TABLE reports (id TEXT NOT NULL UNIQUE, report TEXT NOT NULL) STRICT",
        """CREATE TABLE entries (
            id TEXT NOT NULL PRIMARY KEY REFERENCES reports (id),
            created TEXT NOT NULL,
            name TEXT NOT NULL,
            author TEXT NOT NULL,
            sha256 TEXT NOT NULL,
            code TEXT NOT NULL,
            verdict TEXT NOT NULL,
            stage TEXT,
            quick INTEGER NOT NULL,
            judge TEXT NOT NULL,
            cases INTEGER NOT NULL,
            seed TEXT NOT NULL,
            device TEXT,
            on_gpu INTEGER NOT NULL,
            driver TEXT,
            cuda TEXT,
            cublas TEXT,
            clock_mhz INTEGER,
            score REAL,
            low REAL,
            high REAL,
            kernel_ms REAL,
            baseline_ms REAL,
            tflops REAL,
            peak_share REAL,
            cores TEXT,
            launch TEXT,
            registers INTEGER
        ) STRICT""",
    ),
    (
        # Who vouches for a report; checked when it is entered.
        """CREATE TABLE signatures (
            id TEXT NOT NULL REFERENCES reports (id),
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (id, key)
        ) STRICT""",
        # Reports that an earlier judge let in and this one does not.
        "CREATE TABLE refused (report TEXT NOT NULL, reason TEXT NOT NULL) STRICT",
    ),
    ("ALTER TABLE entries ADD COLUMN uuid TEXT",),
)
"""One tuple of statements a version, oldest first; PRAGMA user_version counts those applied.
A migration that has been released is never edited: a change is a new one at the end."""

COLUMNS = ", ".join(INDEXED)
SELECT_ENTRIES = (
    f"SELECT {COLUMNS}, EXISTS (SELECT 1 FROM signatures WHERE signatures.id = entries.id "
    "AND key = ?) FROM entries"
)
WITH_SIGNATURES = 2
"""The first version whose reports may be signed."""

SELECT_SIGNED = (
    "SELECT report, key, value FROM reports LEFT JOIN signatures USING (id) "
    "WHERE id = ? ORDER BY signatures.rowid LIMIT 1"
)
SELECT_UNSIGNED = "SELECT report, NULL, NULL FROM reports WHERE id = ?"
INSERT_REPORT = "INSERT OR IGNORE INTO reports (id, report) VALUES (?, ?)"
INSERT_SIGNATURE = "INSERT OR IGNORE INTO signatures (id, key, value) VALUES (?, ?, ?)"
_INSERT_ENTRY = f"INSERT INTO entries ({COLUMNS}) VALUES ({', '.join('?' for _ in INDEXED)})"


def insert_entry(connection: sqlite3.Connection, entry: Entry) -> None:
    connection.execute(_INSERT_ENTRY, entry[: len(INDEXED)])


def version(connection: sqlite3.Connection) -> int:
    """How many migrations the store has had."""
    (count,) = connection.execute("PRAGMA user_version").fetchone()
    return int(count)


def migrate(connection: sqlite3.Connection, reindex: Callable[[], None]) -> None:
    """Bring the store to today's version, in one transaction: all of it or nothing.

    reindex: works out the index again, from the reports.
    """
    if version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statements in MIGRATIONS[version(connection) :]:
            for statement in statements:
                connection.execute(statement)
        reindex()
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
