"""Reading what somebody hands in."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from harness.report import Submission
from harness.submission import Unreadable, read


def examine(name: str, content: bytes, author: str) -> Submission | str:
    """What was handed in as a submission, or why it cannot be one, in a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "submission.cu")
        path.write_bytes(content)
        found = read(path, author)
    if isinstance(found, Unreadable):
        return found.error.message
    return found.model_copy(
        update={"name": name, "sha256": hashlib.sha256(found.source.encode()).hexdigest()}
    )
