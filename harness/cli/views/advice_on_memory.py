"""Say what to do about wrong accesses to memory."""

import re

from harness.cli.views.advice_on_races import (
    ALL_THREADS,
    VOLATILE,
    crosses_a_row,
    crossing,
    early_return,
)
from harness.cli.views.source_mistakes import Names, line_at, parameter_names
from harness.compiling.lexical import without_comments
from harness.protocol.report import Array, Finding, Report
from problem.signature import SIGNATURE

_VOLATILE_ARRAY = re.compile(r"\bvolatile\b[^;=()]*?(\w+)\s*\[")
_VOLATILE_POINTER = re.compile(r"\bvolatile\b[^;=(),]*\*\s*(?:const\s*)?(\w+)\b")


def outside_of_memory(found: Finding, report: Report) -> str | None:
    source, in_matrix = report.submission.source, _is_in_matrix(found)
    names = parameter_names(source)
    if in_matrix and crosses_a_row(found):
        return crossing(found)
    if in_matrix and (inside := _inside(found, report, names)):
        return f"{inside} So {_wrong_place(report)}. {_elements(names)}"
    if in_matrix:
        launch = report.kernel.launch if report.kernel is not None else None
        is_larger = launch is not None and launch.tile_rows * launch.tile_columns > 256
        tile = "the tile's" if is_larger else "16"
        return (
            f"Not every size is a multiple of {tile}. A thread whose row is "
            f"{names.rows} or more, or whose column is {names.columns} or more, must neither "
            f"load nor store. Also, the index of the sum must stay below {names.inner}."
        )
    if "by a matrix descriptor" in found.message:
        return (
            "A matrix descriptor has the first address in bits 0 to 13 and two distances in "
            "bits 16 to 29 and 32 to 45, in units of 16 bytes. If the inner dimension is "
            "contiguous and not swizzled, they are those of neighbouring 8×16-byte parts. "
            "The first is along the inner dimension, the second along rows or columns."
        )
    if "in block" in found.message and "returned" in found.message:
        return (
            "A block of a cluster may return only after the others have read its shared "
            "memory: write `cluster.sync();` after the last read."
        )
    if "of dynamic shared memory (" in found.message:
        return (
            "An array that is `extern __shared__` has as many bytes as the file requests in "
            "one comment line, such as `// solve: shared_memory=2048`."
        )
    if found.array == Array.SHARED and "threadIdx" in source:
        return (
            "A block has 16×16 threads, whatever its tile: `threadIdx.x` and `threadIdx.y` go "
            "up to 15. An index of an array must stay below the array's size."
        )
    return None


def misaligned(found: Finding, report: Report) -> str | None:
    in_matrix, names = _is_in_matrix(found), parameter_names(report.submission.source)
    if in_matrix and ((found.size or 0) >= 8 or "multiple of 16" in found.message):
        floats = 2 if found.size == 8 else 4  # bulk copies are longer
        if found.shape is not None and found.shape.N % floats == 0 == found.shape.K % floats:
            return f"The index of a vector of {floats} floats must be a multiple of {floats}."
        return (
            f"A row of {names.left} begins at a multiple of {4 * floats} bytes only if "
            f"{names.inner} is a multiple of {floats}, and a row of {names.right} or "
            f"{names.output} only if {names.columns} is. Load and store single floats at "
            "other sizes."
        )
    if found.array == Array.SHARED and found.size in (8, 16):
        return (
            "Align an array in shared memory by `alignas(16)`, and pad its rows so that each "
            f"begins at a multiple of {found.size} bytes."
        )
    return None


def uninitialised(found: Finding, report: Report) -> str | None:
    source, returned = report.submission.source, early_return(report)
    code, line = without_comments(source), line_at(found.at, source)
    if found.array == SIGNATURE.output and found.access == "atomic":
        return (
            "C holds no values when the kernel starts. Before blocks add to a tile, one of "
            "them must store zeros there, execute `__threadfence();` and set a flag. The "
            "others must wait for that flag."
        )
    if found.array == SIGNATURE.output:
        return (
            "C holds no values when the kernel starts: add up in a variable and write "
            "`C[…] = sum`, without `+=` and without `beta * C[…]`."
        )
    if found.array == Array.SHARED and (
        any(f" of {name} (" in found.message for name in _VOLATILE_ARRAY.findall(code))
        or any(re.search(rf"\b{name}\b", line) for name in _VOLATILE_POINTER.findall(code))
    ):
        return VOLATILE
    if found.array == Array.SHARED and returned:
        return (
            f"Threads that return before the barrier in line {returned} may not have stored "
            f"their elements. {ALL_THREADS}"
        )
    if found.array == Array.SHARED:
        return (
            "Each element of a tile must be written before it is read: write 0 where a tile "
            "extends beyond A or B. A block has 16×16 threads, whatever its tile, so a larger "
            "tile takes several loads per thread."
        )
    return None


def _is_in_matrix(found: Finding) -> bool:
    return found.array in (*SIGNATURE.inputs, SIGNATURE.output)


def _wrong_place(report: Report) -> str:
    """Say what is wrong if an access is outside a matrix at whole tiles."""
    launch = report.kernel.launch if report.kernel is not None else None
    if launch is None or (launch.tile_rows, launch.tile_columns) != (16, 16):
        return "an index is wrong, or the tile of the launch line is"
    return (
        "an index is wrong, or a block computes more than 16×16 elements. Then the file needs a "
        "launch line, such as `// solve: tile=64x64`"
    )


def _elements(names: "Names") -> str:
    left, right, output = names.left, names.right, names.output
    return (
        f"The elements are `{left}[row * {names.inner} + n]`, "
        f"`{right}[n * {names.columns} + column]` and `{output}[row * {names.columns} + column]`, "
        f"with n below {names.inner}. Blocks along x are columns."
    )


def _inside(found: Finding, report: Report, names: "Names") -> str | None:
    """Return the reason if no bounds check of rows and columns is missing; None if one may be.

    None is missing in three cases. The address is before the matrix. Whole tiles cover C exactly;
    N may still end inside a tile, unless it is a multiple of 128, and so of any usual depth. The
    tile has 16×16 elements, and the element that the thread should store is in C.
    """
    if found.shape is None or report.kernel is None:
        return None
    launch, shape, at = report.kernel.launch, found.shape, found.at
    if tuple(launch.cluster) != (1, 1, 1):
        return None
    if "before its beginning" in found.message:
        return f"The address is before {found.array}."
    tile = launch.tile_rows, launch.tile_columns
    if shape.M % tile[0] == 0 == shape.K % tile[1]:
        depth = f", but the index of the sum must stay below {names.inner}"
        return f"At this size no row or column is outside C{depth if shape.N % 128 else ''}."
    is_store = found.array == SIGNATURE.output and found.access == "write"
    if tile == (16, 16) and is_store and at.thread is not None and at.block is not None:
        column, row = (16 * at.block[i] + at.thread[i] for i in (0, 1))
        if row < shape.M and column < shape.K:
            return f"Row {row} and column {column} of this thread are inside C."
    return None
