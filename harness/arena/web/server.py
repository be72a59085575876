"""The web process: uvicorn with the application, on one address."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence

import uvicorn

from harness.arena.logs import log_as
from harness.arena.processes import end_with_parent
from harness.arena.web.app import application
from harness.arena.web.connections import LimitedProtocol
from harness.arena.web.renderer import RendererProcess
from harness.arena.web.start import open_site, read_arguments

MAX_CONNECTIONS = 4000
GOODBYE_SECONDS = 3


def main(arguments: Sequence[str]) -> int:
    options = read_arguments(arguments)
    log_as("web")
    end_with_parent()
    _raise_file_limit()
    environment = dict(os.environ)
    LimitedProtocol.unlimited = frozenset([options.proxy]) if options.proxy else frozenset()
    uvicorn.run(
        application(
            open_site(options, connections=20),
            RendererProcess(arguments, environment),
            RendererProcess(arguments, environment),
            options.lease,
            local=not options.proxy and options.host in ("127.0.0.1", "::1", "localhost"),
        ),
        host=options.host,
        port=options.port,
        http=LimitedProtocol,
        proxy_headers=bool(options.proxy),
        forwarded_allow_ips=options.proxy or None,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        backlog=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GOODBYE_SECONDS,
        log_config=None,
    )
    return 0


def _raise_file_limit() -> None:
    """Each connection is an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + 200
    if soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
