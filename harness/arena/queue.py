"""The queue: Procrastinate, on the arena's own database."""

from __future__ import annotations

from procrastinate import App, PsycopgConnector
from psycopg.conninfo import make_conninfo
from sqlalchemy import URL

QUEUE, TASK = "gradings", "grade"
"""As `arena_enqueue` in the database writes them. This queue is served by every worker."""


def queue_of(model: str) -> str:
    """Of what only GPUs of a model may grade; `arena_enqueue` names it so."""
    return f"model {model}"


def conninfo(url: URL) -> str:
    """The address as psycopg itself takes it: libpq reads no URL with a space in it."""
    parts = url.translate_connect_args(username="user", database="dbname")
    return make_conninfo(**{**url.query, **parts})


def queue_app(url: URL) -> App:
    """The queue as a worker sees it."""
    return App(connector=PsycopgConnector(conninfo=conninfo(url), min_size=1, max_size=4))
