"""The database: its version, and who may do what in it."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import URL, Engine, text
from sqlalchemy.exc import ProgrammingError

from harness.arena.place import Secrets
from harness.arena.store.database import open_engine
from harness.arena.store.preparing import prepare
from harness.arena.store.tables import metadata
from harness.leaderboard import tables as board
from harness.leaderboard.entry import INDEXED

TABLES = [*metadata.tables, *board.metadata.tables]


def test_migrations_end_at_the_tables_of_today(owner: Engine) -> None:
    with owner.connect() as connection:
        context = MigrationContext.configure(connection)
        differences = compare_metadata(context, [metadata, board.metadata])
    ours = [each for each in differences if "procrastinate" not in str(each)]
    assert ours == []


def test_preparing_again_changes_nothing(owner: Engine, secrets: Secrets) -> None:
    prepare(owner.url, secrets)


def test_the_index_has_the_leaderboards_columns() -> None:
    assert tuple(board.entries.columns.keys()) == INDEXED


def refused(url: URL, statement: str) -> None:
    engine = open_engine(url, connections=1)
    with engine.connect() as connection, pytest.raises(ProgrammingError, match="permission denied"):
        connection.execute(text(statement))
    engine.dispose()


@pytest.mark.parametrize("table", [*TABLES, "procrastinate_jobs", "alembic_version"])
def test_a_worker_reads_and_writes_no_table(table: str, worker_url: URL) -> None:
    refused(worker_url, f"SELECT * FROM {table}")
    refused(worker_url, f"DELETE FROM {table}")


def test_a_worker_cannot_make_jobs_or_results_out_of_nothing(worker_url: URL) -> None:
    refused(worker_url, "SELECT arena_enqueue(1)")
    refused(worker_url, "SELECT procrastinate_defer_jobs_v1(NULL)")
    refused(worker_url, "SELECT arena_keep_result(NULL, 'a', 'b', '{}', 'finished')")
    refused(worker_url, "CREATE TABLE mine ()")


@pytest.mark.parametrize(
    ("table", "column"), [("audit", "action"), ("reports", "report"), ("entries", "score")]
)
def test_the_pages_change_no_report_and_no_line_of_the_audit_log(
    table: str, column: str, web_url: URL
) -> None:
    refused(web_url, f"DELETE FROM {table}")
    refused(web_url, f"UPDATE {table} SET {column} = NULL")
    refused(web_url, f"TRUNCATE {table} CASCADE")


def test_not_even_its_owner_edits_the_audit_log_by_mistake(owner: Engine, empty: None) -> None:
    with owner.connect() as connection:
        connection.execute(text("INSERT INTO audit (action, subject) VALUES ('a', 'b')"))
        with pytest.raises(Exception, match="only ever added to"):
            connection.execute(text("UPDATE audit SET action = 'c'"))
