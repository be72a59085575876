"""The web process: uvicorn with the application, on one address."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn
from sqlalchemy import make_url

from harness.arena.logs import log_as
from harness.arena.processes import COOKIE_VARIABLE, DATABASE_VARIABLE, end_with_parent
from harness.arena.rules import RulesFile
from harness.arena.store.database import open_engine
from harness.arena.web.app import application
from harness.arena.web.context import Site
from harness.leaderboard.signing import SigningKey

MAX_CONNECTIONS = 1000
GOODBYE_SECONDS = 3


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="The arena's web server, which the arena starts.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8040)
    parser.add_argument("--root", default="")
    parser.add_argument("--rules", type=Path, required=True)
    parser.add_argument("--signing-key", type=Path, required=True)
    parser.add_argument("--secure", action="store_true")
    parser.add_argument("--proxy", default="")
    options = parser.parse_args(arguments)
    log_as("web")
    end_with_parent()
    site = Site(
        engine=open_engine(make_url(os.environ.pop(DATABASE_VARIABLE)), connections=20),
        rules_file=RulesFile(options.rules),
        root=options.root,
        secure=options.secure,
        cookie_secret=os.environ.pop(COOKIE_VARIABLE),
        signing_key=SigningKey.at(options.signing_key),
    )
    uvicorn.run(
        application(site),
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
