"""Files of the judge: where compiled kernels are kept, and writing whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_directory() -> Path:
    """Where compiled kernels are kept between gradings, as the XDG base directory specification
    has it."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(home) / "matmul-arena"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def write_whole(path: Path, text: str) -> None:
    """Replace a file's content at once: a full disk or a kill leaves the old one, never half a new
    one. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise
