"""Every person has a pseudonym that no one else has."""

from alembic import op

revision = "arena_0008"
down_revision = "arena_0007"


def upgrade() -> None:
    # In a random order: the numbers must not tell who joined first.
    op.execute(
        """UPDATE people SET pseudonym = 'Heron ' || shuffled.number
        FROM (SELECT id, 10000 + row_number() OVER (ORDER BY random()) AS number FROM people)
            AS shuffled
        WHERE shuffled.id = people.id"""
    )
    op.create_index("ix_people_pseudonym_unique", "people", ["pseudonym"], unique=True)
