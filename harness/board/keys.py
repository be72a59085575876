"""Ed25519 keys: the board's own, which signs what its judge grades, and those that are listed.

A board trusts reports that were signed with one of these keys, and no others. Its own key lies next
to the store. The list of other keys that the organiser trusts lies next to that key, with one key
and its owner's name on each line.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from harness.protocol.errors import StoreError
from harness.protocol.files import write_whole
from harness.protocol.report import Signature

LIST_SUFFIX = ".trusted"
"""The suffix of the file of listed keys, whose name is otherwise that of the own key's file."""

_CONTEXT = b"matmul-arena report\0"
"""This precedes every signed text, so that no signature given for anything else fits."""

_PUBLIC_KEY = re.compile(r"[0-9a-f]{64}")


class SigningKey:
    """The private key of one board, in a file that only its owner may read."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public: str = private.public_key().public_bytes_raw().hex()

    @classmethod
    def at(cls, path: Path) -> SigningKey:
        """Read the key in this file, which is created if it is missing. Raises StoreError."""
        try:
            if not path.exists():
                _create(path)
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise _unusable(path, f"others may read it; run: chmod 600 {path}")
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from None
        except (ValueError, TypeError):
            raise _unusable(path, "it holds no private key, or one with a password") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise StoreError(f"{path} holds no Ed25519 key. Name another file with --key.")
        return cls(key)

    def sign(self, text: str) -> Signature:
        """Return the signature of a report's text."""
        return Signature(key=self.public, value=self._private.sign(_signed(text)).hex())


def _unusable(path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path}, the board's signing key, cannot be used: {why}. Restore it, or delete it: "
        "results that it signed are then unverified."
    )


def fits(signature: Signature, text: str) -> bool:
    """Return whether the holder of the signature's key has signed this text."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.key))
        key.verify(bytes.fromhex(signature.value), _signed(text))
    except (InvalidSignature, ValueError):
        return False
    return True


def trusted(key_file: Path | None) -> frozenset[str]:
    """Return the public keys that a board believes: its own, and those that are listed."""
    if key_file is None:
        return frozenset()
    own = {SigningKey.at(key_file).public} if key_file.exists() else set()
    return frozenset(own | listed(key_file).keys())


def listed(key_file: Path) -> dict[str, str]:
    """Return the listed public keys with their owners' names. Raises StoreError."""
    path = key_file.with_suffix(LIST_SUFFIX)
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}, the list of trusted keys, cannot be read: {error}.") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        key, _, owner = line.strip().partition(" ")
        if not key or key.startswith("#"):
            continue
        if not _PUBLIC_KEY.fullmatch(key):
            raise StoreError(f"{path}, line {number}, is no public key of 64 hexadecimal digits.")
        found[key] = owner.strip()
    return found


def add_to_list(key_file: Path, key: str, owner: str) -> None:
    """Trust the reports that this key signs. Raises StoreError."""
    if not _PUBLIC_KEY.fullmatch(key):
        raise StoreError(f"{key} is no public key, which has 64 hexadecimal digits.")
    found = listed(key_file)
    _write_list(key_file, found | {key: " ".join(owner.split()) or found.get(key, "")})


def remove_from_list(key_file: Path, key: str) -> None:
    """Stop trusting this key. Raises StoreError."""
    found = listed(key_file)
    if key not in found:
        raise StoreError(f"{key} is not in the list of trusted keys.")
    del found[key]
    _write_list(key_file, found)


def _write_list(key_file: Path, keys: dict[str, str]) -> None:
    lines = [f"{key} {owner}".rstrip() + "\n" for key, owner in keys.items()]
    write_whole(key_file.with_suffix(LIST_SUFFIX), "".join(lines))


def _signed(text: str) -> bytes:
    return _CONTEXT + text.encode()


def _create(path: Path) -> None:
    """Create the file completely or not at all; two processes at once end up with one key."""
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(pem)
        os.link(name, path)
    except FileExistsError:
        pass
    finally:
        Path(name).unlink()
