"""Read findings from compute-sanitizer's XML, without a GPU.

The elements read here are those that compute-sanitizer 2025.3 writes with --xml; its text output is
never parsed.
"""

from collections.abc import Sequence
from typing import Literal
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from harness.devices.guards import merged
from harness.protocol.compiler import FILE_NAME
from harness.protocol.report import Array, Finding, Hazard, Place, Tool, Value
from problem.cases import Shape
from problem.signature import Arguments, Buffer


class Placement(Value):
    """The addresses of the buffers of one launch."""

    arguments: Arguments
    addresses: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        return self.arguments.shape


def read_xml(xml: bytes, tool: Tool, placements: Sequence[Placement]) -> tuple[Finding, ...]:
    """Return the findings of one tool, with equal ones merged. Raises ValueError for other XML."""
    try:
        root = ElementTree.fromstring(xml)
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # an unknown encoding, too
        raise ValueError(f"not compute-sanitizer's XML: {error}") from None
    if root.tag != "ComputeSanitizerOutput":
        raise ValueError(f"not compute-sanitizer's XML: <{root.tag}>")
    read = {
        Tool.MEMCHECK: _access,
        Tool.INITCHECK: _access,
        Tool.RACECHECK: _race,
        Tool.SYNCCHECK: _barrier,
    }[tool]
    found = (
        read(record, tool, placements)
        for record in root.iter("record")
        if _text(record, "level") != "Warning" and not _by_the_host(record, tool)
    )
    return merged(found)


def _by_the_host(record: Element, tool: Tool) -> bool:
    """Return whether a call of the host caused the record. C is copied even if it is incomplete. A
    call also tells of an access that ended the kernel, which has a record of its own."""
    if tool not in (Tool.MEMCHECK, Tool.INITCHECK) or record.find("who/threadIdx") is not None:
        return False
    return tool is Tool.INITCHECK or record.find("what/address") is None


def _access(record: Element, tool: Tool, placements: Sequence[Placement]) -> Finding:
    """Read a record of memcheck or initcheck: one access to one address."""
    address = _number(record, "what/address")
    size = _number(record, "what/size")
    error = _text(record, "what/error") or _text(record, "what/text")
    hazard = (
        Hazard.UNINITIALISED
        if tool is Tool.INITCHECK
        else Hazard.MISALIGNED
        if "misaligned" in error
        else Hazard.OUT_OF_BOUNDS
    )
    direction = _text(record, "what/direction") or "read"
    access: Literal["read", "write", "atomic"] = (
        "atomic" if "atomic" in direction else "write" if "write" in direction else "read"
    )
    space = _text(record, "what/space") or error
    finding = Finding(
        tool=tool,
        hazard=hazard,
        message="",
        at=_place(record),
        access=access,
        size=size or None,
        array=Array.SHARED if "shared" in space else Array.LOCAL if "local" in space else None,
    )
    if finding.array is None and address is not None:
        finding = _locate(finding, address, placements)
    if address is None and not size:
        return _described(finding, f"{_line(record)}: {error.lower() or 'a bad access'}")
    array = finding.array or "memory"
    if finding.row is not None:
        array = f"{array}[{finding.row}][{finding.column}]"
    if hazard is Hazard.UNINITIALISED:
        return _described(finding, f"{_line(record)} reads {array}, which is uninitialised")
    what = f"{'misaligned ' if hazard is Hazard.MISALIGNED else ''}{access} of {size} bytes"
    far = finding.bytes_outside if hazard is Hazard.OUT_OF_BOUNDS else None
    outside = f", {far} bytes outside" if far is not None else ""
    return _described(finding, f"{_line(record)}: {what} at {array}{outside}")


def _described(finding: Finding, message: str) -> Finding:
    return finding.model_copy(update={"message": message})


def _locate(finding: Finding, address: int, placements: Sequence[Placement]) -> Finding:
    """Name the buffer that is nearest to the address."""
    nearest: tuple[int, Buffer, int, Shape] | None = None
    for placement in placements:
        for buffer, start in zip(placement.arguments.buffers, placement.addresses, strict=True):
            end = start + buffer.rows * buffer.columns * 4
            outside = max(start - address, address - end + 1, 0)
            if nearest is None or outside < nearest[0]:
                nearest = (outside, buffer, (address - start) // 4, placement.shape)
    if nearest is None or nearest[0] > 1 << 32:
        return finding
    outside, buffer, index, shape = nearest
    return finding.model_copy(
        update={
            "array": buffer.name,
            "row": index // buffer.columns,
            "column": index % buffer.columns,
            "bytes_outside": max(outside - 1, 0) if outside else 0,
            "shape": shape,
        }
    )


def _race(record: Element, tool: Tool, _: Sequence[Placement]) -> Finding:
    source, destination = record.find("what/source"), record.find("what/destination")
    places = f"{_line(source)} and {_line(destination)}"
    return Finding(
        tool=tool,
        hazard=Hazard.RACE,
        message=f"race on {Array.SHARED} between {places}, with no barrier between them",
        at=_place(source),
        other=_place(destination),
        access="write" if _text(record, "what/source/direction") == "Write" else "read",
        array=Array.SHARED,
        occurrences=max(_number(record, "what/destination/count") or 1, 1),
    )


def _barrier(record: Element, tool: Tool, placements: Sequence[Placement]) -> Finding:
    shape = placements[-1].shape if placements else None
    message = f"{_line(record)}: not all threads of the block reach this barrier"
    return Finding(
        tool=tool, hazard=Hazard.DIVERGENT_BARRIER, message=message, at=_place(record), shape=shape
    )


def _place(element: Element | None) -> Place:
    """Return the place of an access. Lines of headers are unknown to those who wrote the kernel."""
    if element is None:
        return Place()
    line = _number(element, "where/line") if _header(element) is None else None
    return Place(
        line=line or None, thread=_xyz(element, "threadIdx"), block=_xyz(element, "blockIdx")
    )


def _header(element: Element) -> str | None:
    """Return the name of the header that has the line; None if the kernel file has it."""
    name = _text(element, "where/path").rpartition("/")[2]
    return name if name not in ("", FILE_NAME) else None


def _line(element: Element | None) -> str:
    if element is not None and (header := _header(element)):
        return f"`{_text(element, 'where/func')}` in {header}"
    line = _place(element).line
    return f"line {line}" if line else "an unknown line"


def _xyz(element: Element, name: str) -> tuple[int, int, int] | None:
    found = element.find(f"who/{name}")
    if found is None:
        return None
    x, y, z = (_number(found, axis) or 0 for axis in "xyz")
    return x, y, z


def _text(element: Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _number(element: Element, path: str) -> int | None:
    text = _text(element, path)
    try:
        return abs(int(text, 0))
    except ValueError:
        return None
