"""The two ways in which translating a kernel fails: the device's limits, and our own mistakes."""

from __future__ import annotations

from harness.ptxcpu.ptx.errors import PtxError


class CannotTranslate(PtxError):
    """This device does not support an instruction, or refuses a size. Never the submission's
    fault, and never ours."""


class InternalError(Exception):
    """A bug of this device: it must reach whoever can fix it, and is never shown as a limit."""
