"""The queue: Procrastinate's tables and functions in the arena's database.

Only the web process uses them. A job is fetched in the transaction that begins its attempt
(store/workers.py), so no job is ever in between.
"""

from __future__ import annotations

from psycopg.conninfo import make_conninfo
from sqlalchemy import URL

QUEUE, TASK = "gradings", "grade"
"""This queue is served by every worker."""

CHANNEL = "procrastinate_any_queue_v1"
"""On which PostgreSQL says that there is a new job."""


def queue_of(model: str) -> str:
    """Return the queue of what only GPUs of a model may grade."""
    return f"model {model}"


def conninfo(url: URL) -> str:
    """Return the address as psycopg takes it: libpq reads no URL with a space in it."""
    parts = url.translate_connect_args(username="user", database="dbname")
    return make_conninfo(**{**url.query, **parts})
