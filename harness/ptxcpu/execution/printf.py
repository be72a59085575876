"""The output of a kernel's printf, which is limited in size and formatted as untrusted data."""

import ctypes
import re
import struct
import threading

from harness.ptxcpu.runtime.layout import Context, Window, window_and_offset

MAX_PRINTED = 4096
"""The bytes of a launch's output that are kept."""
MAX_STRING = 1024
_DIRECTIVE = re.compile(rb"%([-+ #0]*)(\d*)(?:\.(\d+))?(hh|h|ll|l|j|z|t)?([diouxXcsfFeEgGaAp%])")


class Printer:
    """Collects the first MAX_PRINTED bytes that a launch prints."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._lock = threading.Lock()
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)
        self._callback = kind(self._print)

    @property
    def address(self) -> int:
        """The address of the function that the runtime calls, valid as long as this object
        exists."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")

    def _print(self, context: int, thread: int, format_: int, arguments: int) -> None:
        with self._lock:
            room = MAX_PRINTED - len(self._kept)
            if room > 0:
                memory = _Memory(context, thread)
                self._kept += _format(memory, format_, arguments)[:room]


class _Memory:
    """Reads device memory; reads outside every array give nothing."""

    def __init__(self, context: int, thread: int) -> None:
        self._context = Context.from_address(context)
        self._thread = thread

    def read(self, address: int, size: int) -> bytes:
        window, offset = window_and_offset(address % (1 << 64))
        if window == Window.NONE:
            return b""
        if window == Window.SHARED:
            offset -= self._context.shared_address
        host, length, _ = (ctypes.c_int64 * 3).from_address(self._context.windows + 24 * window)
        size = min(size, length - offset)
        if offset < 0 or size <= 0:
            return b""
        row = self._thread * self._context.local_bytes if window == Window.LOCAL else 0
        return ctypes.string_at(host + row + offset, size)

    def string(self, address: int) -> bytes:
        return self.read(address, MAX_STRING).split(b"\0")[0]


def _format(memory: _Memory, format_: int, arguments: int) -> bytes:
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        at = -(-at // size) * size
        raw = memory.read(arguments + at, size).ljust(size, b"\0")
        at += size
        return raw

    def directive(match: re.Match[bytes]) -> bytes:
        flags, width, precision, length, kind = (x or b"" for x in match.groups())
        if kind == b"%":
            return b"%"
        width = str(min(int(width or 0), 64)).encode() if width else b""
        shape = flags + width
        if precision:
            shape += b"." + str(min(int(precision), 64)).encode()
        if kind in b"fFeEgGaA":
            if kind in b"aA":
                return struct.unpack("<d", take(8))[0].hex().encode()  # type: ignore[no-any-return]
            return (b"%" + shape + kind) % struct.unpack("<d", take(8))
        if kind == b"s":
            return (b"%" + shape + b"s") % memory.string(int.from_bytes(take(8), "little"))
        if kind == b"p":
            return b"0x%x" % int.from_bytes(take(8), "little")
        size = 8 if length in (b"l", b"ll", b"j", b"z", b"t") else 4
        number = int.from_bytes(take(size), "little", signed=kind in b"di")
        if kind == b"c":
            return bytes([number & 255])
        return (b"%" + shape + (b"d" if kind in b"iu" else kind)) % number

    return _DIRECTIVE.sub(directive, memory.string(format_))
