"""The meaning of a command's exit code, and the sentence for an error of the system."""

import errno
from enum import IntEnum


class Exit(IntEnum):
    YES = 0
    """It is done; a kernel was accepted."""
    NO = 1
    """A kernel was not accepted, or nothing was found."""
    NO_ANSWER = 2
    """The usage was wrong, the judge failed, or this device cannot run the kernel."""
    INTERRUPTED = 130


def reason(error: Exception) -> str:
    """Return a sentence that says what went wrong, and how to correct it if that is known."""
    if not isinstance(error, OSError):
        return str(error)
    return _CURES.get(error.errno or 0) or f"{error.filename or 'output'}: {error.strerror}."


_CURES = {
    errno.EAGAIN: "No more processes or threads may be started; raise the limit (ulimit -u).",
    errno.EMFILE: "No more files may be opened; raise the limit (ulimit -n).",
    errno.ENOSPC: "The disk is full.",
}
