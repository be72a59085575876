"""The web process: uvicorn with the application, on one address."""

import os
import resource
import sys
from functools import partial

import uvicorn

from harness.arena.logs import log_as
from harness.arena.processes import DATABASE_VARIABLE, Settings, end_with_parent
from harness.arena.web.app import application
from harness.arena.web.boards import Rendered, Variant, render_as
from harness.arena.web.connections import LimitedProtocol
from harness.arena.web.context import Site
from harness.arena.web.renderer import OtherProcess

MAX_CONNECTIONS = 4000
BOARD_SECONDS = 120.0
SHUTDOWN_SECONDS = 3


def main(settings: Settings) -> None:
    log_as("web")
    end_with_parent()
    _raise_file_limit()
    # Taken out of the environment, which child processes inherit.
    given = settings.model_dump_json(), os.environ.pop(DATABASE_VARIABLE)
    boards = OtherProcess()

    async def render(variant: Variant) -> Rendered:
        return await boards.call(partial(render_as, *given, variant), BOARD_SECONDS)

    uvicorn.run(
        application(
            Site.opened(*given, connections=20),
            render,
            OtherProcess().call,
            local=not settings.proxy and settings.host in ("127.0.0.1", "::1", "localhost"),
        ),
        host=settings.host,
        port=settings.port,
        http=LimitedProtocol,
        proxy_headers=bool(settings.proxy),
        forwarded_allow_ips=settings.proxy or None,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        backlog=MAX_CONNECTIONS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        log_config=None,
    )


def _raise_file_limit() -> None:
    """Each connection is an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + 200
    if soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


if __name__ == "__main__":
    main(Settings.model_validate_json(sys.argv[1]))
