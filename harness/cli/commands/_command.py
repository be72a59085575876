"""The meaning of a command's exit code."""

from enum import IntEnum


class Exit(IntEnum):
    YES = 0
    """It is done; a kernel was accepted."""
    NO = 1
    """A kernel was not accepted, or nothing was found."""
    NO_ANSWER = 2
    """The usage was wrong, the judge failed, or this device cannot run the kernel."""
    INTERRUPTED = 130
