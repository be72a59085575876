"""Makes the boards in a process of their own: ten thousand entries take a second, in which the web
process would answer nobody.

The web process starts it as `python -m harness.arena.web.maker`, writes to its standard input what
is wanted, and reads from its standard output what was made.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import struct
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from typing import Any, BinaryIO

from harness.arena.logs import log_as
from harness.arena.processes import NICENESS
from harness.arena.web.board_files import Made, Wanted, make
from harness.arena.web.problems import Problem, database_away
from harness.arena.web.start import open_site, read_arguments

_LENGTH = struct.Struct("!Q")


class MakerBeside:
    """The process, as the web process has it: started when first needed, and again if it ended."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str]) -> None:
        """As the web process was started with."""
        self._arguments = arguments
        self._environment = environment
        self.process: Process | None = None
        self._busy = asyncio.Lock()

    async def make(self, wanted: Wanted) -> Made:
        """Raises Problem."""
        async with self._busy:
            for _ in range(2):
                try:
                    made = await self._ask(wanted)
                except (OSError, EOFError):
                    await self.end()  # somebody killed it
                    continue
                if made is None:
                    raise database_away()
                return made
        raise Problem(503, "The board cannot be made just now; try again.", retry_after=2)

    async def start(self) -> None:
        if self.process is None:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", __name__, *self._arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=self._environment,
            )

    async def _ask(self, wanted: Wanted) -> Made | None:
        await self.start()
        assert self.process is not None
        to, back = self.process.stdin, self.process.stdout
        assert to is not None and back is not None
        to.write(_framed(wanted))
        await to.drain()
        (length,) = _LENGTH.unpack(await back.readexactly(_LENGTH.size))
        made: Made | None = pickle.loads(await back.readexactly(length))
        return made

    async def end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()


def _framed(value: object) -> bytes:
    content = pickle.dumps(value)
    return _LENGTH.pack(len(content)) + content


def _next(source: BinaryIO) -> Any:
    """None when the web process has gone."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return pickle.loads(source.read(_LENGTH.unpack(head)[0]))


def main(arguments: Sequence[str]) -> int:
    log_as("boards")
    os.nice(NICENESS)
    site = open_site(read_arguments(arguments), connections=1)
    with os.fdopen(os.dup(0), "rb") as source, os.fdopen(os.dup(1), "wb") as sink:
        os.dup2(2, 1)  # what a library prints is no board
        while (wanted := _next(source)) is not None:
            try:
                made = make(site, wanted)
            except Problem:
                made = None
            sink.write(_framed(made))
            sink.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
