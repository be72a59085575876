"""For whoever runs it: is it well, and what does it do."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from harness.arena.states import State
from harness.arena.store import gradings
from harness.arena.web.context import ThisSite, ThisVisitor
from harness.arena.web.problems import Problem

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
def healthz(site: ThisSite) -> PlainTextResponse:
    """200 where the database answers and a worker lives; 503, with the reason, where not."""
    with site.transaction() as connection:
        if not gradings.workers(connection):
            raise Problem(503, "No worker has shown a sign of life within 30 s.", retry_after=5)
    return PlainTextResponse("ok\n")


@router.get("/metrics")
def metrics(request: Request, site: ThisSite, visitor: ThisVisitor) -> Response:
    """For Prometheus: with an organiser's key, or from this machine itself."""
    if request.client is None or request.client.host not in ("127.0.0.1", "::1", "testclient"):
        assert visitor.organiser
    registry = CollectorRegistry()

    def gauge(name: str, help: str, value: float) -> None:
        Gauge(f"arena_{name}", help, registry=registry).set(value)

    states = Gauge("arena_gradings", "Gradings by state", labelnames=("state",), registry=registry)
    fates = Gauge(
        "arena_attempts", "Attempts by how they ended", labelnames=("fate",), registry=registry
    )
    with site.transaction() as connection:
        counted = gradings.counts_by_state(connection)
        for state in State:
            states.labels(state.value).set(counted.get(state, 0))
        for fate, count in gradings.counts_by_fate(connection).items():
            fates.labels(fate).set(count)
        gauge("workers", "Workers that have shown a sign of life", gradings.workers(connection))
        gauge("typical_grading_seconds", "Median of the last", gradings.typical_seconds(connection))
        gauge("oldest_waiting_seconds", "In the queue", gradings.oldest_waiting(connection))
    gauge("watchers", "Connections that watch a submission", request.app.state.watch.watchers)
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
