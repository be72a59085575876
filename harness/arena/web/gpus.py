"""The page of GPUs: who judges here, on what, and what it scored over time."""

from __future__ import annotations

from fastapi import APIRouter, Response

from harness.arena.store import crew
from harness.arena.web import plots
from harness.arena.web.context import ThisSite, ThisVisitor
from harness.arena.web.rendering import page

router = APIRouter(include_in_schema=False)


@router.get("/gpus")
def gpus(site: ThisSite, visitor: ThisVisitor) -> Response:
    """For everybody: a rank is worth what the GPUs are that gave it."""
    with site.transaction() as connection:
        found = [worker for worker in crew.everybody(connection) if worker.model is not None]
    return page(
        site,
        "gpus.html",
        here="gpus",
        visitor=visitor,
        gpus=found,
        plots={worker.id: plots.plots(worker.checkups) for worker in found},
        width=plots.WIDTH,
        height=plots.HEIGHT,
        left=plots.LEFT,
        right=plots.WIDTH - plots.RIGHT,
    )
