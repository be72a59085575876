"""Reading a submission: one kernel file, as bytes on disk."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from harness.protocol.errors import UsageError
from harness.protocol.report import CompileError, Diagnostic, Stage, Submission

MAX_BYTES = 1 << 20
"""This is far larger than any kernel file."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that cannot be a submission, and the reason."""

    submission: Submission
    """Without a source."""
    error: CompileError


def content(path: Path) -> bytes:
    """Return the bytes of a kernel file, or the beginning of a larger file. Raises UsageError."""
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a .cu file in it")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a regular file; name a .cu file")
    try:
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def read(path: Path, author: str | None = None) -> Submission | Unreadable:
    """Read the submission in a file. Raises UsageError if the file cannot be opened."""
    # Strangers choose the names of files, too.
    name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in path.stem)
    return from_bytes(content(path), name[:100], author)


def from_bytes(content: bytes, name: str, author: str | None) -> Submission | Unreadable:
    """Read a submission from the bytes of a file."""
    source, problem = _decode(content)
    sha256 = hashlib.sha256(content).hexdigest()
    submission = Submission(name=name, author=author, sha256=sha256, source=source)
    if problem is None:
        return submission
    error = Diagnostic(severity="error", message=problem)
    return Unreadable(
        submission, CompileError(stage=Stage.READ, message=problem, diagnostics=(error,))
    )


def read_kernel(path: Path) -> Submission:
    """Read the submission in a file. Raises UsageError if the file is no submission, too."""
    found = read(path)
    if isinstance(found, Unreadable):
        raise UsageError(f"{path}: {found.error.message}")
    return found


def _decode(content: bytes) -> tuple[str, str | None]:
    """Return the text of the file, or what is wrong with it."""
    if len(content) > MAX_BYTES:
        return "", f"the file is larger than {MAX_BYTES >> 20} MiB; a kernel file is text"
    if not content.strip():
        return "", "the file is empty; start from problem/starter.cu"
    # Comments in another encoding than UTF-8 do not matter to the compiler.
    text = content.decode(encoding="utf-8-sig", errors="replace")
    if "\0" in text:
        line = text.partition("\0")[0].count("\n") + 1
        return "", f"line {line} has a NUL byte; save the file as text in UTF-8"
    return text, None
