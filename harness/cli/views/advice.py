"""One sentence that says how to cure a mistake that beginners make."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tree_sitter import Node

from harness.compiling.lexical import without_comments, without_text
from harness.compiling.syntax import descendants, syntax_tree, text_of
from harness.protocol.report import (
    Array,
    Counterexample,
    DeviceKind,
    Finding,
    Hazard,
    MemoryFault,
    Place,
    Race,
    Report,
    Rule,
    RuleViolation,
    RuntimeFault,
    TimeLimit,
    WrongAnswer,
)
from problem.signature import SIGNATURE

_PARAMETERS = re.compile(r"\bmatrix_multiplication_kernel\s*\(([^)]*)\)")
_STATE = re.compile(
    r"^[ \t]*(?:static\s+)?__device__\s+(?:(?:volatile|unsigned|static)\s+)*\w+\s+(\w+)\s*"
    r"(?:\[[^\]]*\]\s*)*(?:=[^;]*)?;",
    re.MULTILINE,
)

_CONSTANT = re.compile(
    r"^[ \t]*(?:static\s+)?__constant__\s+(?:\w+\s+)+(\w+)\s*(?:\[[^\]]*\]\s*)*;", re.MULTILINE
)
_WITHOUT_VALUE = re.compile(r"^[ \t]*(?:float|double)\s+(\w+)\s*(?:\[[^\]]*\]\s*)*;", re.MULTILINE)

_TINY_FLOP = 1 << 20

_CLASS = re.compile(r"\b(?:struct|class|union)\b[^;{}()]*\{")

_LANES = (
    "The lanes that a warp-wide instruction reads must reach it, too: put a condition around loads "
    "and stores, not around the instruction."
)
_DYNAMIC_ARRAY = re.compile(r"\bextern\s+__shared__\b[^;]*?\b(\w+)\s*\[\s*\]")
_LANE_AS_UNIFORM = re.compile(r'\basm\s*\(\s*"[^"]*%%(?:laneid|lanemask|tid)')
_WARP_WIDE = re.compile(r"\b__\w+_sync\b")
_USES_MBARRIERS = re.compile(r"\bmbarrier|\bcuda::barrier\b")
_HAS_VOLATILE_DATA = re.compile(r"\bvolatile\b(?!\s*\()")
_VOLATILE_ARRAY = re.compile(r"\bvolatile\b[^;=()]*?(\w+)\s*\[")
_VOLATILE_POINTER = re.compile(r"\bvolatile\b[^;=(),]*\*\s*(?:const\s*)?(\w+)\b")
_VOLATILE = (
    "Threads of a warp do not run in step, and `volatile` does not make one wait for another. "
    "Write `__syncwarp();` or `__syncthreads();` before a thread reads what another has stored, "
    "and before it is overwritten."
)
_OTHER_NUMBERS = re.compile(r"threadIdx\b(?!\s*\.\s*x)|thread_rank|tid\.y")
_BRANCHES = ("if_statement", "else_clause", "switch_statement")
_LOOPS = ("for_statement", "for_range_loop", "while_statement", "do_statement")
_ALL_LANES = ("", "~0", "-1", "0xffffffff")
_LOCKS = re.compile(r"\batomic(?:CAS|Exch)\b|\bcompare_exchange_|\bexchange\(")
_ONLY_WAITS = re.compile(r"(?:[\s;{}]|continue\b|__nanosleep\s*\(\w*\)|__threadfence\w*\s*\(\))*")
_VARIABLE_IN_MEMORY = re.compile(r"\b__(?:shared|device)__\b|&\s*$")
_POINTER = re.compile(r"\*\s*(?:const\s*)?(?:__restrict__\s*)?$")
_USES_PIPELINES = re.compile(r"\bproducer_acquire|\bconsumer_wait")
_WAITS_FOR_A_PHASE = re.compile(r"\b(?:test|try)_wait")
_ALL_THREADS = (
    "Let all threads of a block reach each barrier: put conditions around loads and stores, in "
    "place of an early `return` or a condition around the barrier."
)
_ADDS_TO_AN_ELEMENT = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)+[-+]=(.*)")
_ONE_STATEMENT = (
    "Several threads change one variable by the same statement: use an atomic, such as "
    "`atomicAdd`, or let one thread execute the statement."
)
_IN_A_CLUSTER = (
    "The two threads are in different blocks of a cluster: only a barrier of the cluster, such as "
    "`cluster.sync();`, orders them. It orders what a thread does before it arrives with what "
    "others do after they have waited."
)
_MBARRIERS = (
    "A phase of an mbarrier ends when all arrivals that it was initialised for, and all bytes that "
    "it expects, have come. A wait names the parity of its phase: 0 for the first, then 1, then 0. "
    "It orders accesses only after arrivals of that phase."
)
_RELAXED_MBARRIER = re.compile(
    r"\bmbarrier\.(?:arrive|test_wait|try_wait)[\w.:]*\.relaxed"
    r"|\bmbarrier_(?:arrive|test_wait|try_wait)\w*\s*\(\s*(?:\w+::)*sem_relaxed"
)
_RELAXED_CLUSTER = re.compile(
    r"\bbarrier\.cluster\.arrive\.relaxed|\bbarrier_cluster_arrive\w*\s*\(\s*(?:\w+::)*sem_relaxed"
)
_STORE_AND_ATOMICS = (
    "One block stores what others change by an atomic, perhaps later. Let the block store it whose "
    "own atomic has returned the last number: all others have come before."
)
_FENCES = re.compile(r"\b__threadfence|\bfence\.(?:acq_rel|sc)|\batomic_thread_fence")
_RELAXED = (
    "An arrival or a wait that is relaxed orders no accesses. Use the default: then an arrival "
    "releases what its thread has stored, and a wait acquires it."
)
_PIPELINE = (
    "A stage of a pipeline is complete after `consumer_wait()`, and may be filled again after "
    "`consumer_release()`: read it only between the two. No more stages may be in use than the "
    "pipeline has."
)
_WAITS_FOR_COPIES = re.compile(r"\bwait_group|wait_prior|wait_all|\bcg::wait|groups::wait")
_COPIES = (
    "A thread waits for its own copies only. A wait with a number leaves that many of the newest "
    "groups in flight, so each iteration must commit one, even an empty one. Wait first, then "
    "write `__syncthreads();`, then read. Write it also between the reads and the copies that fill "
    "the same stage again."
)
_UNAWAITED = (
    "An asynchronous copy has arrived only after its thread has waited for it, by "
    "`__pipeline_wait_prior(0);`, `cp.async.wait_all` or `cg::wait(block);`. Then write "
    "`__syncthreads();`, then read."
)
_REFILLED = (
    " All threads must also have read a stage before it is filled again: write `__syncthreads();` "
    "after the read, or let them arrive at a second mbarrier there."
)


def advice(report: Report) -> str | None:
    """Return what to do about the verdict; None if the messages say it already."""
    outcome, source = report.outcome, report.submission.source
    if isinstance(outcome, RuleViolation) and outcome.rule is Rule.INPUTS_CHANGED:
        return _order_of_matrices(source)
    if not isinstance(outcome, MemoryFault | Race | RuntimeFault | TimeLimit | WrongAnswer):
        return None
    if isinstance(outcome, RuntimeFault):
        if "bytes of shared memory per block" in outcome.message:
            return "Use smaller tiles or fewer of them at a time; each float takes 4 bytes."
        if "assertion" in outcome.message and "blockDim" in _line(outcome.at, source):
            return (
                "A block has 16×16 threads: `blockDim.x` and `blockDim.y` are 16. Number the "
                "threads by `threadIdx.y * 16 + threadIdx.x`."
            )
        if "trap" in outcome.message and "this_grid()" in source:
            return (
                "`this_grid().sync()` needs a cooperative launch, and the judge makes ordinary "
                "ones: the blocks of a launch cannot all wait for each other."
            )
        return None
    in_source = (
        *(
            _one_dimensional(source),
            _order_of_sizes(source),
            _sum_without_start(without_text(source)),
        ),
        _two_dynamic_arrays(source),
    )
    if causes := [*filter(None, in_source)]:
        return " ".join(causes)
    if isinstance(outcome, MemoryFault | Race) and outcome.findings:
        return _of_finding(outcome.findings[0], report)
    if isinstance(outcome, TimeLimit):
        return _of_time(outcome, report)
    if isinstance(outcome, WrongAnswer):
        return _of_output(outcome.counterexample, report) or _of_state(source)
    return _of_state(source)


def _of_output(found: Counterexample, report: Report) -> str | None:
    pattern, many = found.pattern, 4 * found.wrong_blocks >= found.blocks
    if "low precision" in pattern:
        return (
            "TF32, FP16 and BF16 keep fewer bits than a float. Split each float into several such "
            "parts and add their products, as `solutions/30_mma_tf32x3.cu` does."
        )
    if "never written" in pattern and many and report.kernel is not None:
        launch = report.kernel.launch
        if (launch.tile_rows, launch.tile_columns) != (16, 16):
            return (
                f"The launch line declares a tile of {launch.tile_rows}×{launch.tile_columns}. "
                "If a block computes fewer elements, the launch has too few blocks: write the "
                "block's own tile there."
            )
    is_unexplained = "not finite" in pattern and "overflow" not in pattern
    if is_unexplained and "__shfl" in without_comments(report.submission.source):
        return "A shuffle may read only lanes that its mask names and that execute it, too."
    if any(
        words in pattern for words in ("far from the right", "are off by")
    ) and _HAS_VOLATILE_DATA.search(without_text(report.submission.source)):
        return _VOLATILE
    return None


def _of_finding(found: Finding, report: Report) -> str | None:
    source = report.submission.source
    if found.hazard is Hazard.RACE and (polled := _plain_polling(source)):
        # The compiler may have moved the load, which then has no line.
        lines = [each.line for each in (found.at, found.other) if each is not None]
        if polled.line in lines or f" of {polled.name} (" in found.message:
            return polled.advice
    code, names = without_comments(source), _parameter_names(source)
    in_matrix = found.array in (*SIGNATURE.inputs, SIGNATURE.output)
    line, returned = _line(found.at, source), _early_return(report)
    match found.hazard:
        case Hazard.OUT_OF_BOUNDS if in_matrix and _crosses_a_row(found):
            return _crossing(found)
        case Hazard.OUT_OF_BOUNDS if in_matrix and (inside := _inside(found, report, names)):
            return f"{inside} So {_wrong_place(report)}. {_elements(names)}"
        case Hazard.OUT_OF_BOUNDS if in_matrix:
            launch = report.kernel.launch if report.kernel is not None else None
            is_larger = launch is not None and launch.tile_rows * launch.tile_columns > 256
            tile = "the tile's" if is_larger else "16"
            return (
                f"Not every size is a multiple of {tile}. A thread whose row is "
                f"{names.rows} or more, or whose column is {names.columns} or more, must neither "
                f"load nor store. Also, the index of the sum must stay below {names.inner}."
            )
        case Hazard.OUT_OF_BOUNDS if "by a matrix descriptor" in found.message:
            return (
                "A matrix descriptor has the first address in bits 0 to 13 and two distances in "
                "bits 16 to 29 and 32 to 45, in units of 16 bytes. If the inner dimension is "
                "contiguous and not swizzled, they are those of neighbouring 8×16-byte parts. "
                "The first is along the inner dimension, the second along rows or columns."
            )
        case Hazard.OUT_OF_BOUNDS if "in block" in found.message and "returned" in found.message:
            return (
                "A block of a cluster may return only after the others have read its shared "
                "memory: write `cluster.sync();` after the last read."
            )
        case Hazard.OUT_OF_BOUNDS if "of dynamic shared memory (" in found.message:
            return (
                "An array that is `extern __shared__` has as many bytes as the file requests in "
                "one comment line, such as `// solve: shared_memory=2048`."
            )
        case Hazard.OUT_OF_BOUNDS if found.array == Array.SHARED and "threadIdx" in source:
            return (
                "A block has 16×16 threads, whatever its tile: `threadIdx.x` and `threadIdx.y` go "
                "up to 15. An index of an array must stay below the array's size."
            )
        case Hazard.MISALIGNED if in_matrix and (
            (found.size or 0) >= 8 or "multiple of 16" in found.message
        ):
            floats = 2 if found.size == 8 else 4  # bulk copies are longer
            if found.shape is not None and found.shape.N % floats == 0 == found.shape.K % floats:
                return f"The index of a vector of {floats} floats must be a multiple of {floats}."
            return (
                f"A row of {names.left} begins at a multiple of {4 * floats} bytes only if "
                f"{names.inner} is a multiple of {floats}, and a row of {names.right} or "
                f"{names.output} only if {names.columns} is. Load and store single floats at "
                "other sizes."
            )
        case Hazard.MISALIGNED if found.array == Array.SHARED and found.size in (8, 16):
            return (
                "Align an array in shared memory by `alignas(16)`, and pad its rows so that each "
                f"begins at a multiple of {found.size} bytes."
            )
        case Hazard.UNINITIALISED if found.array == SIGNATURE.output and found.access == "atomic":
            return (
                "C holds no values when the kernel starts. Before blocks add to a tile, one of "
                "them must store zeros there, execute `__threadfence();` and set a flag. The "
                "others must wait for that flag."
            )
        case Hazard.UNINITIALISED if found.array == SIGNATURE.output:
            return (
                "C holds no values when the kernel starts: add up in a variable and write "
                "`C[…] = sum`, without `+=` and without `beta * C[…]`."
            )
        case Hazard.UNINITIALISED if found.array == Array.SHARED and (
            any(f" of {name} (" in found.message for name in _VOLATILE_ARRAY.findall(code))
            or any(re.search(rf"\b{name}\b", line) for name in _VOLATILE_POINTER.findall(code))
        ):
            return _VOLATILE
        case Hazard.UNINITIALISED if found.array == Array.SHARED and returned:
            return (
                f"Threads that return before the barrier in line {returned} may not have stored "
                f"their elements. {_ALL_THREADS}"
            )
        case Hazard.UNINITIALISED if found.array == Array.SHARED:
            return (
                "Each element of a tile must be written before it is read: write 0 where a tile "
                "extends beyond A or B. A block has 16×16 threads, whatever its tile, so a larger "
                "tile takes several loads per thread."
            )
        case Hazard.RACE if found.array == SIGNATURE.output and _crosses_a_row(found):
            return _crossing(found)
        case Hazard.RACE if _both_write(found) and (ignored := _ignored_number(found)):
            return ignored
        case Hazard.RACE if found.array == SIGNATURE.output and _both_write(found):
            return (
                "Two threads store one element of C. A block may store only the elements of its "
                "own tile, each by one thread. A tile has 16×16 elements, or as many as the "
                "launch line says."
            )
        case Hazard.RACE if "uses what" in found.message:
            return (
                "After one thread has initialised the mbarriers, execute `__syncthreads();` before "
                "another one uses them."
            )
        case Hazard.RACE if "no barrier between" in found.message:
            return _missing_barrier(found, report)
        case Hazard.RACE if re.search(r"of the cluster, which may (?:not )?have", found.message):
            return _IN_A_CLUSTER
        case Hazard.RACE if "has not delivered" in found.message:
            if _WAITS_FOR_COPIES.search(code):
                return _COPIES
            return _MBARRIERS if _USES_MBARRIERS.search(code) else _UNAWAITED
        case Hazard.RACE if found.array == Array.MODULE and _both_write(found):
            if found.other is not None and "atomic" in _line_of(code, found.other.line):
                return _STORE_AND_ATOMICS
            return (
                "Two blocks store one element of a `__device__` array. Give each block a part of "
                "its own, numbered by `blockIdx.y * gridDim.x + blockIdx.x`, or use atomics."
            )
        case Hazard.RACE if "no release and acquire" in found.message and _changes_one(
            found, source
        ):
            return _ONE_STATEMENT
        case Hazard.RACE if "no release and acquire" in found.message:
            return (
                "A block that stores for another must then execute `__threadfence();` and "
                "`__syncthreads();` before one thread sets a flag or counter by an atomic. The "
                "other block must read that by an atomic, then execute `__syncthreads();` and "
                "`__threadfence();` before it reads."
            )
        case Hazard.DIVERGENT_BARRIER if "but not its own" in found.message:
            return "A thread may execute a warp-wide instruction only with a mask that names it."
        case Hazard.DIVERGENT_BARRIER if "names lanes" in found.message:
            return _of_lanes(source)
        case Hazard.DEADLOCK if _WARP_WIDE.search(line):
            return _of_lanes(source)
        case Hazard.DEADLOCK if "mbarrier" in found.message:
            return _PIPELINE if _USES_PIPELINES.search(code) else _MBARRIERS
        case Hazard.DEADLOCK if "barrier 0 has" in found.message:
            return _ALL_THREADS
        case Hazard.DEADLOCK if "bar.arrive" in code:
            return (
                "`bar.sync` counts a thread and waits, `bar.arrive` only counts it. Producers and "
                "consumers must use each barrier equally often, with the same number and in the "
                "same order."
            )
        case Hazard.DIVERGENT_BARRIER:
            return _ALL_THREADS
    return None


def _wrong_place(report: Report) -> str:
    """Say what is wrong if an access is outside a matrix at whole tiles."""
    launch = report.kernel.launch if report.kernel is not None else None
    if launch is None or (launch.tile_rows, launch.tile_columns) != (16, 16):
        return "an index is wrong, or the tile of the launch line is"
    return (
        "an index is wrong, or a block computes more than 16×16 elements. Then the file needs a "
        "launch line, such as `// solve: tile=64x64`"
    )


def _elements(names: "_Names") -> str:
    left, right, output = names.left, names.right, names.output
    return (
        f"The elements are `{left}[row * {names.inner} + n]`, "
        f"`{right}[n * {names.columns} + column]` and `{output}[row * {names.columns} + column]`, "
        f"with n below {names.inner}. Blocks along x are columns."
    )


def _line(at: Place | None, source: str) -> str:
    """Return the text of the line; an empty one if it is unknown."""
    number = (at.line if at else None) or 0
    return dict(enumerate(source.splitlines(), 1)).get(number, "")


def _inside(found: Finding, report: Report, names: "_Names") -> str | None:
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


def _crosses_a_row(found: Finding) -> bool:
    """Return whether a vector access may begin in one row and end in the next."""
    if found.size not in (8, 16) or found.shape is None or found.column is None:
        return False
    length = found.shape.N if found.array == SIGNATURE.inputs[0] else found.shape.K
    return found.column + found.size // 4 > length


def _crossing(found: Finding) -> str:
    assert found.size is not None
    return (
        f"A vector of {found.size // 4} floats extends beyond the end of its row. Load and store "
        "single floats where fewer elements are left."
    )


def _of_lanes(source: str) -> str:
    if _LANE_AS_UNIFORM.search(without_comments(source)):
        return (
            "The compiler takes the result of `asm` without `volatile` to be the same in all "
            "lanes, and may move a branch out of a loop: write `asm volatile`."
        )
    return _LANES


def _line_of(code: str, line: int | None) -> str:
    return code.splitlines()[line - 1] if line is not None else ""


def _both_write(found: Finding) -> bool:
    both = re.search(r"\bwrites what\b.*\bwrites, with\b", found.message)
    return both is not None and found.access != "atomic"


def _ignored_number(found: Finding) -> str | None:
    """Return what to do if threads or blocks that differ in y alone store one element of C."""
    at, other = found.at, found.other
    if found.array != SIGNATURE.output or other is None or at.block is None or other.block is None:
        return None
    if at.thread is None or other.thread is None:
        return None
    if at.block != other.block and at.thread == other.thread and at.block[0] == other.block[0]:
        number, sort, columns = "blockIdx", "Blocks", "gridDim.x"
    elif at.block == other.block and at.thread[0] == other.thread[0]:
        number, sort, columns = "threadIdx", "Threads", "16"
    else:
        return None
    return (
        f"{sort} that differ in `{number}.y` alone store the same elements: number all of them by "
        f"`{number}.y * {columns} + {number}.x`."
    )


def _missing_barrier(found: Finding, report: Report) -> str:
    source, at, other = report.submission.source, found.at, found.other
    code, with_assembly = without_text(source), without_comments(source)
    has_fences = _FENCES.search(with_assembly) is not None
    if other and at.block and other.block and at.block != other.block:
        is_relaxed = _RELAXED_CLUSTER.search(with_assembly) and not has_fences
        return f"{_IN_A_CLUSTER} {_RELAXED}" if is_relaxed else _IN_A_CLUSTER
    if _USES_PIPELINES.search(code):
        return _PIPELINE
    if _is_storage_of_cub(found, code):
        return (
            "A call of CUB may use the storage of another one only after a barrier: write "
            "`__syncthreads();` between two calls that share it, also in a loop. For collectives "
            "of a warp, `__syncwarp();` is enough."
        )
    if _RELAXED_MBARRIER.search(with_assembly) and not has_fences:
        return _RELAXED
    if _USES_MBARRIERS.search(with_assembly):
        return _MBARRIERS + _REFILLED
    if _changes_one(found, source):
        if _LOCKS.search(code):
            return (
                "A lock orders accesses only with fences: execute `__threadfence_block();` after "
                "the atomic that takes it, and before the one that gives it back."
            )
        return _ONE_STATEMENT
    if other and at.line == other.line and _both_write(found):
        return (
            "Two threads store one element by the same statement, so their index is the same. Is "
            "it computed from `threadIdx.y * 16 + threadIdx.x`?"
        )
    findings = getattr(report.outcome, "findings", ())
    if returned := _early_return(report):
        return f"The barrier in line {returned} does not order the two. {_ALL_THREADS}"
    missed = {each.at.line for each in findings if each.hazard is Hazard.DIVERGENT_BARRIER}
    return _next_iteration(found, source, missed) or (
        "Write `__syncthreads();` between the two, where all threads of the block reach "
        "it: no thread continues past it before. If only threads of one warp share the "
        "elements, `__syncwarp();` is enough."
    )


def _early_return(report: Report) -> int | None:
    """Return the line of a barrier that threads did not reach, since they had returned."""
    findings = getattr(report.outcome, "findings", ())
    lines = [each.at.line for each in findings if each.hazard is Hazard.EARLY_RETURN]
    return lines[0] if lines else None


def _is_storage_of_cub(found: Finding, code: str) -> bool:
    array = re.search(r" of (\w+) \(", found.message)
    return array is not None and any(
        re.search(rf"\bTempStorage\b{between}\b{array[1]}\b", code)
        for between in (r"[^;]*", r"[^}]*\}\s*")
    )


def _changes_one(found: Finding, source: str) -> bool:
    """Return whether both threads execute a statement that reads and writes one variable, or one
    element of an array to which it adds something else."""
    at, other = found.at, found.other
    if other is None or at.line is None or at.line != other.line:
        return False
    text = without_text(source).splitlines()[at.line - 1]
    added = _ADDS_TO_AN_ELEMENT.search(text)
    return "[" not in text or (added is not None and not re.search(rf"\b{added[1]}\b", added[2]))


def _next_iteration(found: Finding, source: str, missed: set[int | None]) -> str | None:
    """Return which barrier of a loop is missing or has no effect; None if this is unknown.

    If the only one stands between a store and a read, the store of the next iteration is too early.
    missed: the lines of the barriers that some threads do not reach.
    """
    at, other = found.at, found.other
    if other is None or at.thread is None or other.thread is None or "reads" not in found.message:
        return None
    read, write = (at, other) if found.access == "read" else (other, at)
    if read.line is None or write.line is None:
        return None
    same_warp = at.thread[1] // 2 == other.thread[1] // 2
    accesses, code = (write.line, read.line), without_text(source)
    nodes = [*descendants(syntax_tree(source.encode()))]
    names = ("__syncthreads", "__syncwarp")[: 1 + same_warp]
    barriers = [*_barriers(nodes, names)]
    between = [each for each in barriers if write.line < each.line < read.line]
    loops = [node for node in nodes if node.type in _LOOPS and _spans(node, *accesses)]
    others = [each for each in barriers if loops and _spans(loops[-1], each.line)]
    # Where none follows the read, threads may miss a barrier because of the race.
    is_cause = found.access != "write" or others != between
    if is_cause and any(each.line in missed for each in between):
        return _ALL_THREADS
    if not between or not loops:
        return None
    around = [each for each in barriers if _spans(loops[-1], each.line) and each not in between]
    for group in (between, around):
        flaws = [_flaw(each, accesses, code) for each in group]
        if flaws and all(flaws):
            return flaws[0]
    for each in around if same_warp else []:
        if each.name == "__syncwarp" and _is_conditional(each, accesses):
            return (
                "A `__syncwarp` completes when each lane is at one, in this line or another. So "
                f"lanes that skip the one in line {each.line} meet the others too early: move it "
                "out of the condition, or remove it."
            )
    if around:
        return None
    barrier = next(each for each in between if not _flaw(each, accesses, code))
    return (
        f"Line {barrier.line} has a barrier between the store and the read. If all threads reach "
        "it in each iteration, the missing one is after the read: write "
        f"`{barrier.name}();` at the end of the loop, so that no thread stores the next tile "
        "while another still reads this one."
    )


class _Barrier(NamedTuple):
    """A barrier in a source. mask: what stands between its parentheses."""

    call: Node
    line: int
    name: str
    mask: str


def _barriers(nodes: Iterable[Node], names: Sequence[str]) -> Iterator[_Barrier]:
    """Yield the calls of barriers with these names, in the order of the file."""
    for call in nodes:
        given = call.child_by_field_name("arguments")
        if given is not None and (name := text_of(call.children[0])) in names:
            yield _Barrier(call, call.start_point[0] + 1, name, text_of(given)[1:-1].strip())


def _spans(node: Node, *lines: int) -> bool:
    return all(node.start_point[0] < line <= node.end_point[0] + 1 for line in lines)


def _is_conditional(barrier: _Barrier, accesses: tuple[int, int]) -> bool:
    """Return whether a barrier is in a branch that does not have both lines of the accesses."""
    branch, around = barrier.call, barrier.call.parent
    while around is not None:
        known = any(each.type == "constexpr" for each in around.children)
        if around.type in _BRANCHES and not known and not _spans(branch, *accesses):
            return True
        branch, around = around, around.parent
    return False


def _flaw(barrier: _Barrier, accesses: tuple[int, int], code: str) -> str | None:
    """Return why a barrier may not order two accesses in these lines; None if it does."""
    if _is_conditional(barrier, accesses):
        return (
            f"The barrier in line {barrier.line} is under a condition. Where that does not hold, "
            "nothing orders the store and the read: move the barrier out of the condition."
        )
    mask = barrier.mask
    if mask.isidentifier():
        value = re.search(rf"\b{mask}\s*=?\s*([\w~]+)", code)
        mask = value[1] if value else mask
    if mask.rstrip("uUlL").lower() not in _ALL_LANES:
        return (
            f"The `__syncwarp` in line {barrier.line} orders only the lanes that its mask names. "
            "If the mask does not name both lanes, write `__syncwarp();`."
        )
    return None


def _order_of_matrices(source: str) -> str | None:
    """Say so if the kernel's first parameter seems to be the output."""
    found = _PARAMETERS.search(without_comments(source))
    parameters = found[1].split(",") if found is not None else []
    if len(parameters) < 3 or not ("const" in parameters[2] or _name(parameters[0]) in ("c", "C")):
        return None
    return "The first two parameters are the inputs A and B, and the third is the output C."


def _name(parameter: str) -> str:
    return "".join(parameter.rsplit(maxsplit=1)[-1:]).strip("*&")


class _Names(NamedTuple):
    """The names of the kernel's parameters: the matrices, and their sizes."""

    left: str
    right: str
    output: str
    rows: str
    inner: str
    columns: str


def _parameter_names(source: str) -> _Names:
    """Return the names that the file gives the parameters; the problem's if it gives no six."""
    found = _PARAMETERS.search(without_comments(source))
    written = [] if found is None else [_name(each) for each in found[1].split(",")]
    is_named = all(name.isidentifier() for name in written)  # a declaration may have types only
    if is_named and len(written) == len({*written}) == 6:
        return _Names._make(written)
    return _Names._make((*SIGNATURE.inputs, SIGNATURE.output, *SIGNATURE.numbers))


def _order_of_sizes(source: str) -> str | None:
    """Say so if the kernel takes its last parameter, the columns of B, for the columns of A."""
    code, names = without_comments(source), _parameter_names(source)
    found = _PARAMETERS.search(code)
    if found is None:
        return None
    body = code[found.end() : _end_of_block(code, found.end())]
    strides = re.findall(rf"\b{re.escape(names.left)}\s*\[[^\]]*?\*\s*(\w+)", body)
    if names.columns not in strides or names.inner in strides:
        return None
    return (
        f"The kernel takes `{names.columns}`, its last parameter, for the columns of A. The judge "
        "passes the rows of A, the columns of A and the columns of B, in this order."
    )


def _end_of_block(code: str, start: int) -> int:
    """Return where the first block that opens from here on is closed."""
    depth = 0
    for brace in re.compile("[{}]").finditer(code, start):
        depth += 1 if brace[0] == "{" else -1
        if depth <= 0:
            return brace.end()
    return len(code)


def _one_dimensional(source: str) -> str | None:
    """Say so if the kernel numbers its threads as if a block were a row of them."""
    if "threadIdx.x" not in source or _OTHER_NUMBERS.search(source):
        return None
    return (
        "A block has 16×16 threads: number the threads of a block by "
        "`threadIdx.y * 16 + threadIdx.x`."
    )


def _two_dynamic_arrays(source: str) -> str | None:
    """Say so if the kernel uses two arrays in dynamic shared memory as if they were apart."""
    code = without_text(source)
    found = re.search(r"\bmatrix_multiplication_kernel\s*\(", code)
    if found is None:
        return None
    body = code[found.end() : _end_of_block(code, found.end())]
    names = dict.fromkeys(_DYNAMIC_ARRAY.findall(code))
    used = [name for name in names if re.search(rf"\b{name}\s*(?:\[[^\]]*[^\]\s]|[+,;])", body)]
    if len(used) < 2:
        return None
    return (
        f"All arrays that are `extern __shared__` begin at the same address: `{used[0]}` and "
        f"`{used[1]}` overlap. Declare one, and let a pointer to the second part begin behind the "
        "first."
    )


def _sum_without_start(source: str) -> str | None:
    """Say so if the first statement that uses a variable adds to it. Members of a struct, which may
    have been set together, are not meant."""
    members = [
        range(each.start(), _end_of_block(source, each.start())) for each in _CLASS.finditer(source)
    ]
    for found in _WITHOUT_VALUE.finditer(source):
        name = found[1]
        if any(found.start() in inside for inside in members):
            continue
        first = re.compile(rf"(?<![\w.>]){name}\b\s*(?:\[[^\]]*\]\s*)*(\+=)?")
        use = first.search(source, found.end())
        if use is not None and use[1]:
            line = source.count("\n", 0, found.start(1)) + 1
            return f"`{name}` (line {line}) has no value before the first `+=`: start it with 0.0f."
    return None


def _of_time(outcome: TimeLimit, report: Report) -> str | None:
    """Return why a kernel may not end in time; the messages say where it was."""
    if polled := _plain_polling(report.submission.source):
        return polled.advice
    causes = []
    is_tiny = outcome.shape is not None and outcome.shape.flop <= _TINY_FLOP
    if state := _of_state(report.submission.source):
        causes.append(state)
        causes.append(
            "A block may wait only for blocks that run at the same time: if a GPU has no room for "
            "more, the others begin when it ends."
        )
    if _WAITS_FOR_A_PHASE.search(_line(outcome.at, report.submission.source)):
        causes.append(_MBARRIERS)
    elif is_tiny:
        causes.append(
            "At this size any other kernel ends within a second, even here: the loop has no end. "
            "If it waits for a value, the thread that stores it may wait at a barrier."
        )
    elif report.device is not None and report.device.kind is DeviceKind.CPU:
        causes.append(
            "This device is much slower than a GPU, so a slow kernel may reach the limit here only."
        )
    return " ".join(causes) or None


class _Polling(NamedTuple):
    """A loop that waits for a variable to change."""

    line: int
    name: str
    advice: str


def _plain_polling(source: str) -> _Polling | None:
    """Return the first loop that only reads a variable in memory which is neither volatile nor
    atomic."""
    code = without_text(source)
    for loop in descendants(syntax_tree(source.encode())):
        parts = [loop.child_by_field_name(each) for each in ("condition", "body")]
        if loop.type != "while_statement" or None in parts:
            continue
        condition, body = (without_text(text_of(each)) for each in parts if each is not None)
        is_call_or_assignment = re.search(r"\w\s*\(|(?<![=!<>])=(?!=)", condition)
        if is_call_or_assignment or not _ONLY_WAITS.fullmatch(body):
            continue
        names = re.findall(r"(?<![\w.])[a-zA-Z_]\w*", condition)
        declared = {name: _before_first_use(name, code) for name in names}
        if any(re.search(r"volatile|atomic", text) for text in declared.values()):
            continue
        for name, text in declared.items():
            is_loaded = re.search(rf"\*\s*{name}\b|\b{name}\s*\[", condition) is not None
            if _VARIABLE_IN_MEMORY.search(text) or (is_loaded and _POINTER.search(text)):
                line = loop.start_point[0] + 1
                return _Polling(
                    line,
                    name,
                    f"The loop in line {line} waits for `{name}`, which the compiler may load only "
                    "once: declare it `volatile`, or read it by an atomic. Execute "
                    "`__threadfence();` before another thread sets it, and after the loop.",
                )
    return None


def _before_first_use(name: str, code: str) -> str:
    """Return the beginning of the statement, or of the parameters, in which a name is declared."""
    found = re.search(rf"\b{name}\b", code)
    return re.split(r"[;{}(]", code[: found.start()])[-1] if found is not None else ""


def _of_state(source: str) -> str | None:
    if constants := _names(_CONSTANT, source):
        return f"Host code is never run, so this `__constant__` memory stays zero: {constants}."
    if variables := _names(_STATE, source):
        return (
            "Before each launch a `__device__` variable has its initial value again. Nothing is "
            f"kept from an earlier launch in {variables}."
        )
    return None


def _names(declaration: re.Pattern[str], source: str) -> str:
    """Return the first variables that are declared so, with their lines."""
    return ", ".join(
        f"`{found[1]}` (line {source.count(chr(10), 0, found.start(1)) + 1})"
        for found in islice(declaration.finditer(source), 3)
    )
