"""The health of the arena, for monitoring."""

from __future__ import annotations

import shutil

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from harness.arena.problems import Problem
from harness.arena.store import watching
from harness.arena.web.context import ThisSite

router = APIRouter(include_in_schema=False)

LEAST_FREE_BYTES = 200 << 20
"""PostgreSQL stops when the disk is full; monitoring should know before."""


@router.get("/healthz")
def healthz(site: ThisSite) -> PlainTextResponse:
    """Answer 200 if the database answers, the disk has room and a worker is alive; else 503 with
    the reason."""
    try:
        free = shutil.disk_usage(site.data_dir.folder).free
    except OSError as error:
        raise Problem(503, f"The arena's folder cannot be read: {error.strerror}.") from None
    if free < LEAST_FREE_BYTES:
        raise Problem(503, f"The arena's disk has only {free >> 20} MiB left.", retry_after=30)
    with site.transaction() as connection:
        if not watching.alive_workers(connection):
            raise Problem(503, "No worker has sent a heartbeat within 30 s.", retry_after=5)
    return PlainTextResponse("ok\n")
