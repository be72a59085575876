"""Files of the judge: the cache of compiled kernels, and atomic writing."""

import os
import tempfile
from pathlib import Path


def cache_directory() -> Path:
    """Return the folder in which compiled kernels are kept between gradings, according to the XDG
    base directory specification."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(home) / "matmul-arena"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def write_whole(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace a file's content atomically: after a full disk or a kill the old content is there.
    Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise
