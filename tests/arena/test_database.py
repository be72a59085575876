"""The database: its version, and who may do what in it."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Engine, text
from sqlalchemy.exc import ProgrammingError

from harness.arena.place import Secrets
from harness.arena.store import preparing, roles
from harness.arena.store.database import open_engine
from harness.arena.store.preparing import prepare
from harness.arena.store.tables import metadata
from harness.board import schema
from harness.board import tables as board
from harness.board.entry import INDEXED

TABLES = [*metadata.tables, *board.metadata.tables]


def test_migrations_end_at_the_tables_of_today(owner: Engine) -> None:
    with owner.connect() as connection:
        context = MigrationContext.configure(connection)
        differences = compare_metadata(context, [metadata, board.metadata])
    ours = [each for each in differences if "procrastinate" not in str(each)]
    assert ours == []


def test_the_revisions_are_alembics() -> None:
    script = ScriptDirectory(
        str(schema.MIGRATIONS),
        version_locations=[str(schema.MIGRATIONS / "versions"), str(preparing.MIGRATIONS)],
    )
    known = {each.revision for each in script.walk_revisions()}
    assert known == {*preparing.REVISIONS, *schema.REVISIONS}
    assert set(script.get_heads()) == {preparing.HEAD, schema.HEAD}


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


def test_a_worker_may_call_its_functions_and_nothing_else(owner: Engine, worker_url: URL) -> None:
    """Whatever comes into the database one day is closed to it, until somebody opens it here."""
    with owner.connect() as connection:
        granted = connection.execute(_PRIVILEGES, {"role": worker_url.username}).all()
        functions = connection.scalars(
            text("SELECT unnest(CAST(:all AS regprocedure[]))::text"),
            {"all": [*roles.WORKER_FUNCTIONS, *roles.QUEUE_FUNCTIONS]},
        )
        wanted = {("EXECUTE", name) for name in functions}
    columns = "id", "status", "abort_requested", "queue_name"
    wanted |= {("SELECT", f"procrastinate_jobs.{column}") for column in columns}
    assert {tuple(row) for row in granted} == wanted | {("CONNECT", "arena"), ("USAGE", "public")}


_PRIVILEGES = text(
    """SELECT kind, oid::regprocedure::text FROM pg_proc, unnest(ARRAY['EXECUTE']) kind
        WHERE pronamespace = 'public'::regnamespace AND has_function_privilege(:role, oid, kind)
    UNION SELECT kind, relname || '.' || attname
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0,
            unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) kind
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm', 'p', 'f')
            AND NOT attisdropped AND has_column_privilege(:role, attrelid, attnum, kind)
    UNION SELECT kind, relname
        FROM pg_class, unnest(ARRAY['DELETE', 'TRUNCATE', 'TRIGGER']) kind
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm', 'p', 'f')
            AND has_table_privilege(:role, oid, kind)
    UNION SELECT kind, relname FROM pg_class, unnest(ARRAY['USAGE', 'SELECT', 'UPDATE']) kind
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'
            AND has_sequence_privilege(:role, oid, kind)
    UNION SELECT kind, nspname FROM pg_namespace, unnest(ARRAY['USAGE', 'CREATE']) kind
        WHERE nspname = 'public' AND has_schema_privilege(:role, oid, kind)
    UNION SELECT kind, datname
        FROM pg_database, unnest(ARRAY['CONNECT', 'CREATE', 'TEMPORARY']) kind
        WHERE datname = current_database() AND has_database_privilege(:role, oid, kind)"""
)


def test_a_worker_cannot_make_jobs_or_results_out_of_nothing(worker_url: URL) -> None:
    refused(worker_url, "SELECT arena_enqueue(1)")
    refused(worker_url, "SELECT procrastinate_defer_jobs_v1(NULL)")
    refused(worker_url, "SELECT arena_keep_result(NULL, 'a', 'b', '{}', 'finished')")
    refused(worker_url, "CREATE TABLE mine ()")
    refused(worker_url, "CREATE TEMPORARY TABLE gradings ()")


def test_no_function_with_its_owners_rights_takes_a_callers_table_for_ours(owner: Engine) -> None:
    with owner.connect() as connection:
        paths = connection.execute(
            text("SELECT proname, proconfig FROM pg_proc WHERE prosecdef")
        ).all()
    assert len(paths) >= len(roles.WORKER_FUNCTIONS + roles.QUEUE_FUNCTIONS)
    assert {name: path for name, path in paths if path != ["search_path=public, pg_temp"]} == {}


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
