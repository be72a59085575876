"""The gate: TLS in front of the arena's own database, for the logins of machines and no others.

The database itself listens on no network. A worker elsewhere begins with TLS at once (libpq's
`sslnegotiation=direct`, PostgreSQL 17 and later), and knows this one certificate by heart, so that
nothing depends on names or on authorities. Inside, it speaks to the database as if over its socket.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import ssl
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sqlalchemy import make_url

from harness.arena.logs import log_as
from harness.arena.processes import DATABASE_VARIABLE, end_with_parent

log = logging.getLogger(__name__)

PROTOCOL = "postgresql"
"""What a client that begins with TLS must ask for (ALPN)."""

VERSION_3 = 3
GREETING_SECONDS = 10.0
LARGEST_GREETING = 10_000
"""Bytes; PostgreSQL takes no longer one either."""

CHUNK = 1 << 16


class Gate:
    """Lets the logins through that begin with a prefix."""

    def __init__(self, socket: Path, prefix: str) -> None:
        self._socket = socket
        self._prefix = prefix

    async def serve(self, host: str, port: int, certificate: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(certificate)
        context.set_alpn_protocols([PROTOCOL])
        server = await asyncio.start_server(
            self._pass, host, port, ssl=context, ssl_handshake_timeout=GREETING_SECONDS
        )
        async with server:
            await server.serve_forever()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                greeting = await self._greeting(reader)
            if greeting is None:
                log.warning("turned away", extra={"from": writer.get_extra_info("peername")})
                return
            to_reader, to_writer = await asyncio.open_unix_connection(self._socket)
            to_writer.write(greeting)
            ways = [
                asyncio.create_task(_copy(reader, to_writer)),
                asyncio.create_task(_copy(to_reader, writer)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            to_writer.close()
        except (OSError, EOFError, TimeoutError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _greeting(self, reader: asyncio.StreamReader) -> bytes | None:
        """The startup message, where its login may pass; the protocol's documentation calls it so:
        https://www.postgresql.org/docs/current/protocol-message-formats.html"""
        head = await reader.readexactly(8)
        length, major, _ = struct.unpack("!IHH", head)
        if major != VERSION_3 or not len(head) < length <= LARGEST_GREETING:
            return None
        body = await reader.readexactly(length - len(head))
        words = body.split(b"\0")
        parameters = dict(zip(words[::2], words[1::2], strict=False))
        if not parameters.get(b"user", b"").startswith(self._prefix.encode()):
            return None
        return head + body


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="The arena's gate, which the arena starts.")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--certificate", type=Path, required=True)
    options = parser.parse_args(arguments)
    log_as("gate")
    end_with_parent()
    url = make_url(os.environ.pop(DATABASE_VARIABLE))
    gate = Gate(Path(str(url.query["host"]), ".s.PGSQL.5432"), f"{url.username}_")
    asyncio.run(gate.serve(options.host, options.port, options.certificate))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
