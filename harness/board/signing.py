"""Ed25519 signatures: how a board knows the reports that its own judge has written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from harness.protocol.report import Signature

_CONTEXT = b"matmul-arena report\0"
"""Stands before every signed text, so that no signature given for anything else fits."""


class SigningKey:
    """The private key of one store, in a file beside it that only its owner may read."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public: str = private.public_key().public_bytes_raw().hex()

    @classmethod
    def at(cls, path: Path) -> SigningKey:
        """The key in this file, which is made where there is none. Raises OSError, ValueError."""
        if not path.exists():
            _create(path)
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise ValueError(f"{path} holds no Ed25519 key")
        return cls(key)

    def sign(self, text: str) -> Signature:
        return Signature(key=self.public, value=self._private.sign(_signed(text)).hex())


def fits(signature: Signature, text: str) -> bool:
    """Whether the holder of the signature's key has signed this text."""
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.key))
    try:
        key.verify(bytes.fromhex(signature.value), _signed(text))
    except InvalidSignature:
        return False
    return True


def _signed(text: str) -> bytes:
    return _CONTEXT + text.encode()


def _create(path: Path) -> None:
    """Whole or not at all, and of two graders at once one makes it and both use it."""
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
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
