"""Splits a coroutine into its start and its continuation, as LLVM's coroutine passes do.

LLVM takes most of its time for that in a large kernel: it copies the function several times, and
analyses what is used after a wait. Here all registers lie in the frame, which is memory of the
block, and so do the few other values that are used after a wait.

The text of a translator has these parts, in this order: what allocates the frame, values that are
computed again whenever the coroutine is resumed, the wait for the start, the kernel, the end.
"""

import re
from collections.abc import Mapping, Sequence

_ALLOCATION = re.compile(r"  (%\S+) = alloca ([^,]+)")
_SLOT = re.compile(r"(?<=ptr )%(?:r[\w.]+|own\d+|p\d+)")
_WAIT = re.compile(r"  %\S+ = call i8 @llvm\.coro\.suspend\(token none, i1 (\w+)\)")
_VALUE = re.compile(r"%v\d+")
_DEFINITION = re.compile(r"  (%v\d+) = ")
_RESUMED = re.compile(r"i8 0, label %(\w+)")
_WIDTH = re.compile(r"i(\d+)")
_SEVERAL = re.compile(r"[<\[](\d+) x (.*)[>\]]")

_BYTES = {"ptr": 8, "float": 4, "double": 8, "half": 2, "bfloat": 2}

_CONTEXT, _NUMBER, _NEXT, _SLOTS = 8, 16, 24, 64
"""Where the frame holds the arguments and where to continue. It begins with the address of the
continuation, as LLVM's frames do."""

_ALIGNMENT = 64


def split(
    lines: Sequence[str], value_types: Mapping[str, str], frames_at: int, attributes: str
) -> list[str]:
    """Return the two functions of a coroutine.

    lines: the text of the coroutine. value_types: the types of its values.
    frames_at: the offset in the context of the pointer to the frames.
    attributes: those of the continuation.
    """
    begun = next(i for i, line in enumerate(lines) if "@llvm.coro.begin" in line)
    started = next(i for i in range(begun, len(lines)) if _WAIT.match(lines[i]))
    body = lines[started + 3 :]
    allocations = (found for line in lines[:begun] if (found := _ALLOCATION.match(line)))
    types = {found[1]: found[2] for found in allocations}
    kept = {name: value_types[name] for name in _used_after_waits(body)}
    slots, size = _layout(types | kept)
    text = _Continuation(slots)
    text.add(body, {name: (type_, slots[name]) for name, type_ in kept.items()})
    places = ", ".join(f"label %{label}" for label in ("started", *text.resumed))
    return [
        "define ptr @thread(ptr %c, i64 %t) {",
        "  %asks = icmp slt i64 %t, 0",
        "  br i1 %asks, label %tell, label %begin",
        "tell:",
        f"  ret ptr inttoptr (i64 {size} to ptr)",
        "begin:",
        f"  %frames.at = getelementptr i8, ptr %c, i64 {frames_at}",
        "  %frames = load ptr, ptr %frames.at",
        f"  %distance = mul i64 %t, {size}",
        "  %frame = getelementptr i8, ptr %frames, i64 %distance",
        "  store ptr @continue, ptr %frame",
        *_field("c", _CONTEXT),
        "  store ptr %c, ptr %c.at",
        *_field("t", _NUMBER),
        "  store i64 %t, ptr %t.at",
        *_field("next", _NEXT),
        "  store ptr blockaddress(@continue, %started), ptr %next.at",
        "  ret ptr %frame",
        "}",
        f"define internal fastcc void @continue(ptr %frame) {attributes} {{",
        *_field("c", _CONTEXT),
        "  %c = load ptr, ptr %c.at",
        *_field("t", _NUMBER),
        "  %t = load i64, ptr %t.at",
        *_field("next", _NEXT),
        "  %next = load ptr, ptr %next.at",
        *lines[begun + 1 : started],
        f"  indirectbr ptr %next, [{places}]",
        "started:",
        *text.lines,
        "}",
    ]


def _field(name: str, offset: int) -> list[str]:
    return [f"  %{name}.at = getelementptr i8, ptr %frame, i64 {offset}"]


class _Continuation:
    """The text after the wait for the start, with registers in the frame."""

    def __init__(self, slots: dict[str, int]) -> None:
        self.lines: list[str] = []
        self.resumed: list[str] = []
        """The labels at which the coroutine continues."""
        self._slots = slots
        self._serial = 0

    def add(self, lines: Sequence[str], kept: Mapping[str, tuple[str, int]]) -> None:
        """Add lines up to the last wait. kept: the type and the offset in the frame of each value
        that is used after a wait."""
        defined: set[str] = set()
        """The kept values that are defined since the last wait in the text."""
        at = 0
        while not (wait := _WAIT.match(lines[at])) or wait[1] == "false":
            line = lines[at]
            at += 1
            if wait:
                (label,) = _RESUMED.findall(lines[at])
                self.resumed.append(label)
                self._store(f"ptr blockaddress(@continue, %{label})", _NEXT)
                self.lines.append("  ret void")
                defined.clear()
                at += 1
                continue
            if "ptr %" in line:
                line = _SLOT.sub(lambda slot: self._pointer(self._slots[slot[0]]), line)
            for name in dict.fromkeys(_VALUE.findall(line)) if kept else ():
                if name in kept and name not in defined and not line.startswith(f"  {name} = "):
                    type_, offset = kept[name]
                    read = f"%k{self._new()}"
                    self.lines.append(f"  {read} = load {type_}, ptr {self._pointer(offset)}")
                    line = re.sub(rf"{name}(?![\w.])", read, line)
            self.lines.append(line)
            if (found := _DEFINITION.match(line)) and found[1] in kept:
                type_, offset = kept[found[1]]
                self._store(f"{type_} {found[1]}", offset)
                defined.add(found[1])
        self.lines.append("  ret void")

    def _store(self, value: str, offset: int) -> None:
        self.lines.append(f"  store {value}, ptr {self._pointer(offset)}")

    def _pointer(self, offset: int) -> str:
        name = f"%f{self._new()}"
        self.lines.append(f"  {name} = getelementptr i8, ptr %frame, i64 {offset}")
        return name

    def _new(self) -> int:
        self._serial += 1
        return self._serial


def _used_after_waits(lines: Sequence[str]) -> list[str]:
    """Return the values that are used after a wait which follows their definition in the text. A
    loop in between begins with a label, after which no earlier value is used."""
    defined: dict[str, int] = {}
    found: dict[str, None] = {}
    last_wait = -1
    for i, line in enumerate(lines):
        if "= call i8 @llvm.coro.suspend" in line:
            last_wait = i
        for name in _VALUE.findall(line):
            if defined.setdefault(name, i) < last_wait < i:
                found[name] = None
    return [*found]


def _layout(types: Mapping[str, str]) -> tuple[dict[str, int], int]:
    """Return the offset of each of these values in the frame, and the frame's size."""
    slots, size = {}, _SLOTS
    for name, type_ in types.items():
        bytes_ = _size_of(type_)
        alignment = min(_ALIGNMENT, 1 << (bytes_ - 1).bit_length())
        slots[name] = size = -(-size // alignment) * alignment
        size += bytes_
    return slots, -(-size // _ALIGNMENT) * _ALIGNMENT


def _size_of(type_: str) -> int:
    """Return the bytes of a value of an LLVM type."""
    if several := _SEVERAL.fullmatch(type_):
        return int(several[1]) * _size_of(several[2])
    if width := _WIDTH.fullmatch(type_):
        return -(-int(width[1]) // 8)
    return _BYTES[type_]
