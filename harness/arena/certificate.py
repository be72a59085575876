"""The certificate by which workers elsewhere know this arena: made once, signed by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from harness.protocol.files import write_whole

YEARS = 10
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "matmul-arena")])


def certificate(path: Path) -> str:
    """In PEM. The file at `path` has it with its key; made where there is none."""
    if not path.exists():
        path.touch(mode=0o600)
        write_whole(path, _made())
        path.chmod(0o600)
    text = path.read_text(encoding="ascii")
    found = x509.load_pem_x509_certificate(text.encode())
    return found.public_bytes(Encoding.PEM).decode()


def _made() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    # Clocks of machines that join may be off, and that is said otherwise.
    begins = datetime.now(UTC) - timedelta(days=2)
    made = (
        x509.CertificateBuilder()
        .subject_name(NAME)
        .issuer_name(NAME)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=365 * YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private.decode() + made.public_bytes(Encoding.PEM).decode()
