"""What the web process is started with."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import make_url

from harness.arena.certificate import certificate
from harness.arena.processes import COOKIE_VARIABLE, DATABASE_VARIABLE
from harness.arena.rules import RulesFile
from harness.arena.store.database import open_engine
from harness.arena.web.context import Gate, Site
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
    parser.add_argument("--gate-port", type=int)
    parser.add_argument("--certificate", type=Path)
    return parser.parse_args(arguments)


def open_site(options: argparse.Namespace, connections: int) -> Site:
    """Takes the secrets out of the environment."""
    gate = None
    if options.gate_port is not None:
        gate = Gate(options.gate_port, certificate(options.certificate))
    return Site(
        engine=open_engine(make_url(os.environ.pop(DATABASE_VARIABLE)), connections),
        rules_file=RulesFile(options.rules),
        root=options.root,
        secure=options.secure,
        cookie_secret=os.environ.pop(COOKIE_VARIABLE),
        signing_key=SigningKey.at(options.signing_key),
        signing_key_file=options.signing_key,
        gate=gate,
    )
