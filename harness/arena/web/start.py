"""The arguments of the web process, and opening the arena with them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import make_url

from harness.arena.build import Build
from harness.arena.processes import COOKIE_VARIABLE, DATABASE_VARIABLE
from harness.arena.rules import RulesFile
from harness.arena.store.database import open_engine
from harness.arena.web.context import Site
from harness.arena.workers.api import LEASE_SECONDS
from harness.board.keys import SigningKey


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
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


def open_site(options: argparse.Namespace, connections: int) -> Site:
    """Open the arena, and take the secrets out of the environment."""
    return Site(
        engine=open_engine(make_url(os.environ.pop(DATABASE_VARIABLE)), connections),
        rules_file=RulesFile(options.rules),
        root=options.root,
        secure=options.secure,
        cookie_secret=os.environ.pop(COOKIE_VARIABLE),
        signing_key=SigningKey.at(options.signing_key),
        signing_key_file=options.signing_key,
        build=Build.here(options.quick),
    )
