"""Read findings from compute-sanitizer's XML, without a GPU.

The elements read here are those that compute-sanitizer 2025.3 writes with --xml; its text output is
never parsed.
"""

from collections.abc import Sequence
from typing import Literal
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from harness.devices.guards import merged
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
    return merged(each.model_copy(update={"message": describe(each)}) for each in found)


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
    return finding


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
    return Finding(
        tool=tool,
        hazard=Hazard.RACE,
        message="",
        at=_place(record.find("what/source")),
        other=_place(record.find("what/destination")),
        access="write" if _text(record, "what/source/direction") == "Write" else "read",
        array=Array.SHARED,
        occurrences=max(_number(record, "what/destination/count") or 1, 1),
    )


def _barrier(record: Element, tool: Tool, placements: Sequence[Placement]) -> Finding:
    shape = placements[-1].shape if placements else None
    return Finding(
        tool=tool, hazard=Hazard.DIVERGENT_BARRIER, message="", at=_place(record), shape=shape
    )


def describe(finding: Finding) -> str:
    where = f"line {finding.at.line}" if finding.at.line else "an unknown line"
    array = finding.array or "memory"
    if finding.row is not None:
        array = f"{array}[{finding.row}][{finding.column}]"
    match finding.hazard:
        case Hazard.RACE:
            other = finding.other.line if finding.other else None
            between = f"{where} and line {other}" if other else where
            return f"race on {array} between {between}: a barrier is missing"
        case Hazard.DIVERGENT_BARRIER:
            return f"{where}: not all threads of the block reach this barrier"
        case Hazard.DEADLOCK:
            return f"{where}: threads wait for one another for ever"
        case Hazard.UNINITIALISED:
            return f"{where} reads {array}, which is uninitialised"
        case Hazard.MISALIGNED:
            return f"{where}: misaligned {finding.access} of {finding.size} bytes at {array}"
        case Hazard.OUT_OF_BOUNDS:
            outside = (
                f", {finding.bytes_outside} bytes outside"
                if finding.bytes_outside is not None
                else ""
            )
            return f"{where}: {finding.access} of {finding.size} bytes at {array}{outside}"


def _place(element: Element | None) -> Place:
    if element is None:
        return Place()
    line = _number(element, "where/line")
    return Place(
        line=line or None, thread=_xyz(element, "threadIdx"), block=_xyz(element, "blockIdx")
    )


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
