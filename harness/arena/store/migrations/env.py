"""How Alembic reaches the database: over the connection that it is handed."""

from alembic import context

from harness.arena.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
