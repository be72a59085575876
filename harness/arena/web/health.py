"""Health and metrics, for monitoring."""

import shutil

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from harness.arena.problems import Problem
from harness.arena.states import State
from harness.arena.store import watching
from harness.arena.web.context import ThisSite, ThisVisitor
from harness.arena.workers.api import LEASE_SECONDS

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
            silent = f"No worker has sent a heartbeat within {LEASE_SECONDS:g} s."
            raise Problem(503, silent, retry_after=5)
    return PlainTextResponse("ok\n")


@router.get("/metrics")
def metrics(request: Request, site: ThisSite, visitor: ThisVisitor) -> Response:
    """For Prometheus: with an organiser's key, or from this machine itself."""
    if request.client is None or request.client.host not in ("127.0.0.1", "::1"):
        visitor.check_organiser()
    registry = CollectorRegistry()

    def gauge(name: str, help: str, value: float) -> None:
        Gauge(f"arena_{name}", help, registry=registry).set(value)

    states = Gauge("arena_gradings", "Gradings by state", labelnames=("state",), registry=registry)
    fates = Gauge(
        "arena_attempts", "Attempts by how they ended", labelnames=("fate",), registry=registry
    )
    with site.transaction() as connection:
        counted = watching.counts_by_state(connection)
        for state in State:
            states.labels(state.value).set(counted.get(state, 0))
        for fate, count in watching.counts_by_fate(connection).items():
            fates.labels(fate).set(count)
        gauge("workers", "Workers that have sent a heartbeat", watching.alive_workers(connection))
        gauge("typical_grading_seconds", "Median of recent", watching.typical_seconds(connection))
        gauge("oldest_waiting_seconds", "Longest wait", watching.oldest_waiting(connection))
    gauge("watchers", "Connections that watch a submission", request.app.state.watch.watchers)
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
