"""Play-offs and check-ups of GPUs are gone."""

from alembic import op

revision = "arena_0005"
down_revision = "arena_0004"


def upgrade() -> None:
    for function in (
        "arena_check_up(uuid, jsonb)",
        "arena_call_game(bigint, text)",
        "arena_take_game(uuid, uuid)",
        "arena_play_on(uuid)",
        "arena_finish_game(uuid, jsonb, text)",
    ):
        op.execute(f"DROP FUNCTION {function}")
    op.execute("DELETE FROM procrastinate_jobs WHERE task_name = 'play'")
    for table in ("games", "players", "playoffs", "checkups"):
        op.drop_table(table)
    op.execute("UPDATE workers SET organiser_says = NULL WHERE organiser_says = 'in service'")
    op.drop_constraint(op.f("ck_workers_organiser_says"), "workers")
    op.create_check_constraint(
        op.f("ck_workers_organiser_says"), "workers", "organiser_says = 'set aside'"
    )
    op.execute(_BEAT)


_BEAT = """CREATE OR REPLACE FUNCTION arena_beat(_session uuid) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    held workers;
BEGIN
    UPDATE workers SET seen = now() WHERE session = _session AND seen IS NOT NULL
        RETURNING * INTO held;
    RETURN CASE WHEN held.id IS NULL THEN NULL WHEN held.draining THEN 'leave'
        WHEN held.organiser_says IS NOT NULL THEN 'rest' ELSE 'serve' END;
END $$"""
