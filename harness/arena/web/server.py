"""The web process: uvicorn with the application, on one address."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import uvicorn

from harness.arena.logs import log_as
from harness.arena.processes import end_with_parent
from harness.arena.web.app import application
from harness.arena.web.maker import MakerBeside
from harness.arena.web.start import open_site, read_arguments

MAX_CONNECTIONS = 1000
GOODBYE_SECONDS = 3


def main(arguments: Sequence[str]) -> int:
    options = read_arguments(arguments)
    log_as("web")
    end_with_parent()
    maker = MakerBeside(arguments, dict(os.environ))
    uvicorn.run(
        application(open_site(options, connections=20), maker, options.lease),
        host=options.host,
        port=options.port,
        proxy_headers=bool(options.proxy),
        forwarded_allow_ips=options.proxy or None,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GOODBYE_SECONDS,
        log_config=None,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
