"""A worker's key: one file with all that a machine needs to bring its workers to an arena.

It is the address of the database in the form that libpq takes, and below it the certificate by
which the arena is known. A certificate that is known by heart needs no name to be checked against
(libpq's `verify-ca`); a database of somebody else's has its own, and then the address says how.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from harness.protocol.errors import UsageError

FIRST_LINE = "# A key of matmul-arena for the workers of one machine: keep it from others."
CERTIFICATE = "-----BEGIN CERTIFICATE-----"
VERIFIED = ("verify-ca", "verify-full")


@dataclass(frozen=True, slots=True)
class WorkerKey:
    """address: of the database, as the machine's login. certificate: in PEM, of an arena's own."""

    address: URL
    certificate: str | None

    @property
    def text(self) -> str:
        address = self.address.set(drivername="postgresql").render_as_string(hide_password=False)
        return "\n".join((FIRST_LINE, address, self.certificate or ""))

    def write(self, path: Path) -> None:
        """For its owner's eyes. Raises UsageError where there is a file already, or OSError."""
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise UsageError(f"there is a file {path} already; name another") from None
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(self.text)

    @classmethod
    def read(cls, path: Path) -> WorkerKey:
        """Raises UsageError."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"{path}: no worker's key can be read there") from None
        head, begin, rest = text.partition(CERTIFICATE)
        lines = [line.strip() for line in head.splitlines()]
        addresses = [line for line in lines if line and not line.startswith("#")]
        try:
            address = make_url(addresses[0])
        except (IndexError, ArgumentError):
            address = None
        if address is None or address.get_backend_name() != "postgresql" or not address.username:
            raise UsageError(
                f"{path} is no worker's key; `harness arena worker-key` makes one on the arena's "
                "machine"
            )
        return cls(address, begin + rest if begin else None)

    @contextmanager
    def conninfo(self) -> Iterator[str]:
        """As libpq takes it, while the certificate lies in a file. Raises UsageError where
        nothing would show that the arena is the arena."""
        if self.certificate is None:
            _check(self.address)
            yield _text(self.address)
            return
        handle, name = tempfile.mkstemp(suffix=".pem")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.certificate)
            try:
                ssl.create_default_context(cafile=name)
            except ssl.SSLError:
                raise UsageError("the key's certificate is damaged; copy the whole file") from None
            secured = {"sslmode": "verify-ca", "sslrootcert": name, "sslnegotiation": "direct"}
            yield _text(self.address.update_query_dict(secured))
        finally:
            Path(name).unlink(missing_ok=True)


def _check(address: URL) -> None:
    host = address.query.get("host") or address.host or ""
    local = str(host).startswith("/") or host in ("localhost", "127.0.0.1", "::1")
    if not local and address.query.get("sslmode") not in VERIFIED:
        raise UsageError(
            f"the key's address of {host} does not say sslmode=verify-full: without it nobody "
            "knows whether that is the arena"
        )


def _text(address: URL) -> str:
    return address.set(drivername="postgresql").render_as_string(hide_password=False)
