"""The two errors of a translation: limits of the device, and bugs of the device."""

from harness.ptxcpu.ptx.errors import PtxError


class CannotTranslate(PtxError):
    """This device does not support an instruction or a size. It is no fault of the submission, and
    no bug."""


class InternalError(Exception):
    """A bug of this device, which is reported as such and never as a limit."""
