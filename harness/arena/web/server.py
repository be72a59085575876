"""The web process: uvicorn with the application, on one address."""

from __future__ import annotations

import argparse
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from harness.arena.logs import log_as
from harness.arena.processes import end_with_parent
from harness.arena.web.app import application
from harness.arena.web.connections import LimitedProtocol
from harness.arena.web.context import Site
from harness.arena.web.renderer import RendererProcess
from harness.arena.workers.api import LEASE_SECONDS

MAX_CONNECTIONS = 4000
GOODBYE_SECONDS = 3


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The arena's web server, which the arena starts.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8040)
    parser.add_argument("--root", default="")
    parser.add_argument("--rules", type=Path, required=True)
    parser.add_argument("--signing-key", type=Path, required=True)
    parser.add_argument("--secure", action="store_true")
    parser.add_argument("--proxy", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--lease", type=float, default=LEASE_SECONDS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    log_as("web")
    end_with_parent()
    _raise_file_limit()
    environment = dict(os.environ)
    LimitedProtocol.unlimited = frozenset([options.proxy]) if options.proxy else frozenset()
    uvicorn.run(
        application(
            Site.opened(options, connections=20),
            RendererProcess(options, environment),
            RendererProcess(options, environment),
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
