"""Workers speak HTTP: they have keys instead of roles of the database, and no functions in it.

Play-offs and check-ups of GPUs are gone.
"""

import sqlalchemy as sa
from alembic import op

revision = "arena_0005"
down_revision = "arena_0004"

DROPPED = (
    "arena_edition()",
    "arena_join(text, uuid, text, text, text, integer, text, boolean, timestamptz, float8)",
    "arena_beat(uuid)",
    "arena_leave(uuid)",
    "arena_drain(float8)",
    "arena_check_up(uuid, jsonb)",
    "arena_take(bigint, uuid)",
    "arena_go_on(uuid, jsonb)",
    "arena_give_back(uuid)",
    "arena_finish(uuid, text, text, jsonb, float8)",
    "arena_let_go(gradings, text)",
    "arena_keep_result(gradings, text, text, jsonb, text)",
    "arena_end_attempt(gradings, text)",
    "arena_enqueue(bigint)",
    "arena_new_machine(text, text)",
    "arena_revoke_machine(bigint)",
    "arena_call_game(bigint, text)",
    "arena_take_game(uuid, uuid)",
    "arena_play_on(uuid)",
    "arena_finish_game(uuid, jsonb, text)",
)


def upgrade() -> None:
    for function in DROPPED:
        op.execute(f"DROP FUNCTION {function}")
    op.execute("DELETE FROM procrastinate_jobs WHERE task_name = 'play'")
    for table in ("games", "players", "playoffs", "checkups", "edition"):
        op.drop_table(table)
    # Keys of before were logins of the database: organisers make new ones.
    op.rename_table("machines", "worker_keys")
    op.execute("ALTER TABLE worker_keys RENAME CONSTRAINT pk_machines TO pk_worker_keys")
    op.execute("ALTER SEQUENCE machines_id_seq RENAME TO worker_keys_id_seq")
    op.execute("UPDATE worker_keys SET revoked = coalesce(revoked, now())")
    op.execute("ALTER TABLE worker_keys DROP CONSTRAINT uq_machines_login")
    op.alter_column(
        "worker_keys", "login", new_column_name="hash", comment="sha256 of the worker key"
    )
    op.create_unique_constraint(op.f("uq_worker_keys_hash"), "worker_keys", ["hash"])
    own: sa.Column[bool] = sa.Column(
        "own", sa.Boolean(), server_default=sa.text("false"), nullable=False
    )
    op.add_column("worker_keys", own)
    op.alter_column(
        "workers",
        "crew",
        new_column_name="supervisor",
        comment="the process that started the worker",
    )
    op.alter_column("workers", "session", comment="of the process that has the GPU now")
    op.alter_column("workers", "machine", comment=None)
    build: sa.Column[str] = sa.Column(
        "build", sa.Text(), nullable=True, comment="the version of its judge"
    )
    op.add_column("workers", build)
    op.execute("UPDATE workers SET build = '', seen = NULL")
    op.alter_column("workers", "build", nullable=False)
    aside: sa.Column[bool] = sa.Column(
        "set_aside", sa.Boolean(), server_default=sa.text("false"), nullable=False
    )
    op.add_column("workers", aside)
    op.execute("UPDATE workers SET set_aside = true WHERE organiser_says = 'set aside'")
    op.drop_column("workers", "organiser_says")
    op.execute(_NO_RIGHTS_OF_THE_OWNER)
    op.execute(_NO_ROLES)


_NO_RIGHTS_OF_THE_OWNER = """DO $$ DECLARE function regprocedure; BEGIN
    FOR function IN SELECT oid FROM pg_proc
        WHERE prosecdef AND pronamespace = 'public'::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY INVOKER', function);
        EXECUTE format('ALTER FUNCTION %s RESET search_path', function);
    END LOOP;
END $$"""

_NO_ROLES = """DO $$ DECLARE role name; BEGIN
    FOR role IN SELECT rolname FROM pg_roles
        WHERE rolname IN (current_database() || '_web', current_database() || '_worker')
            OR rolname LIKE replace(current_database(), '_', '\\_') || '\\_worker\\_%'
    LOOP
        BEGIN
            EXECUTE format('DROP OWNED BY %I', role);
            EXECUTE format('DROP ROLE %I', role);
        EXCEPTION WHEN insufficient_privilege OR dependent_objects_still_exist THEN
            RAISE WARNING 'the role % is needed no more and could not be dropped', role;
        END;
    END LOOP;
END $$"""
