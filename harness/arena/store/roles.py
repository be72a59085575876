"""Who may do what in the database: the owner everything, the pages and a worker what they need."""

from __future__ import annotations

from sqlalchemy import URL, Connection, text

from harness.arena.place import Secrets
from harness.arena.store.tables import metadata
from harness.board import tables as board

WORKER_FUNCTIONS = (
    "arena_edition()",
    "arena_join(text, uuid, text, text, text, integer, text, boolean, timestamptz, float8)",
    "arena_beat(uuid)",
    "arena_leave(uuid)",
    "arena_drain(float8)",
    "arena_take(bigint, uuid)",
    "arena_go_on(uuid, jsonb)",
    "arena_give_back(uuid)",
    "arena_finish(uuid, text, text, jsonb, float8)",
)

QUEUE_FUNCTIONS = (
    "procrastinate_fetch_job_v2(character varying[], bigint)",
    "procrastinate_finish_job_v1(bigint, procrastinate_job_status, boolean)",
    "procrastinate_register_worker_v1()",
    "procrastinate_unregister_worker_v1(bigint)",
    "procrastinate_update_heartbeat_v1(bigint)",
    "procrastinate_prune_stalled_workers_v1(double precision)",
)
"""What a worker of the queue calls. They run with their owner's rights, so that it needs none."""


def web(owner: URL, secrets: Secrets) -> URL:
    """As the pages and the sweeper come."""
    return owner.set(username=f"{owner.database}_web", password=secrets.web)


def worker(owner: URL, secrets: Secrets) -> URL:
    """As a worker comes."""
    return owner.set(username=f"{owner.database}_worker", password=secrets.worker)


def are_there(connection: Connection, owner: URL) -> bool:
    return all(_known(connection, f"{owner.database}_{part}") for part in ("web", "worker"))


def _known(connection: Connection, role: str | None) -> bool:
    query = text("SELECT count(*) FROM pg_roles WHERE rolname = :name")
    return bool(connection.scalar(query, {"name": role}))


def grant(connection: Connection, owner: URL, secrets: Secrets) -> None:
    """Make the roles where they are not, and give each its rights and no others."""
    for url in (web(owner, secrets), worker(owner, secrets)):
        role, password = _quoted(url.username), (url.password or "").replace("'", "''")
        if not _known(connection, url.username):
            connection.execute(text(f"CREATE ROLE {role} LOGIN"))
        connection.execute(text(f"ALTER ROLE {role} PASSWORD '{password}'"))
    pages, grader = _quoted(web(owner, secrets).username), _quoted(worker(owner, secrets).username)
    boards = ", ".join(_quoted(name) for name in (*board.metadata.tables, board.standing.name))
    ours = ", ".join(map(_quoted, metadata.tables))
    queue = "procrastinate_jobs, procrastinate_events, procrastinate_workers"
    for statement in (
        f"REVOKE TEMPORARY ON DATABASE {_quoted(owner.database)} FROM PUBLIC",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {pages}, {grader}",
        f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM {pages}, {grader}",
        f"GRANT USAGE ON SCHEMA public TO {pages}, {grader}",
        f"GRANT SELECT, INSERT, UPDATE ON {ours}, {queue} TO {pages}",
        f"GRANT SELECT ON {boards} TO {pages}",
        f"GRANT INSERT ON reports, entries TO {pages}",
        f"GRANT DELETE ON sessions, {queue} TO {pages}",
        f"REVOKE UPDATE ON audit FROM {pages}",
        f"GRANT SELECT, DELETE, UPDATE ON procrastinate_periodic_defers TO {pages}",
        f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {pages}",
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {pages}",
        *(f"ALTER FUNCTION {function} SECURITY DEFINER" for function in QUEUE_FUNCTIONS),
        _SEE_NO_TEMPORARY_TABLES,
        *(
            f"GRANT EXECUTE ON FUNCTION {function} TO {grader}"
            for function in WORKER_FUNCTIONS + QUEUE_FUNCTIONS
        ),
        # To see which of its jobs are to be given up.
        f"GRANT SELECT (id, status, abort_requested, queue_name) ON procrastinate_jobs TO {grader}",
        # A backup that is restored elsewhere has machines, and the server there not their logins.
        "UPDATE machines SET revoked = now() WHERE revoked IS NULL "
        "AND login NOT IN (SELECT rolname FROM pg_roles)",
    ):
        connection.execute(text(statement))


_SEE_NO_TEMPORARY_TABLES = """DO $$ DECLARE function regprocedure; BEGIN
    FOR function IN SELECT oid FROM pg_proc
        WHERE prosecdef AND pronamespace = 'public'::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = public, pg_temp', function);
    END LOOP;
END $$"""
"""A function with its owner's rights would take a caller's temporary table for ours of that name:
unless the search path names them, they come first."""


def _quoted(name: str | None) -> str:
    return '"' + (name or "").replace('"', '""') + '"'
