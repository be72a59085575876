"""Say what to do about races, barriers and waits without end."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tree_sitter import Node

from harness.cli.views.source_mistakes import line_at, plain_polling
from harness.compiling.lexical import without_comments, without_text
from harness.compiling.syntax import descendants, syntax_tree, text_of
from harness.protocol.report import Array, Finding, Hazard, Report
from problem.signature import SIGNATURE

_LANES = (
    "The lanes that a warp-wide instruction reads must reach it, too: put a condition around loads "
    "and stores, not around the instruction."
)
_LANE_AS_UNIFORM = re.compile(r'\basm\s*\(\s*"[^"]*%%(?:laneid|lanemask|tid)')
_WARP_WIDE = re.compile(r"\b__\w+_sync\b")
_USES_MBARRIERS = re.compile(r"\bmbarrier|\bcuda::barrier\b")
VOLATILE = (
    "Threads of a warp do not run in step, and `volatile` does not make one wait for another. "
    "Write `__syncwarp();` or `__syncthreads();` before a thread reads what another has stored, "
    "and before it is overwritten."
)
_BRANCHES = ("if_statement", "else_clause", "switch_statement")
_LOOPS = ("for_statement", "for_range_loop", "while_statement", "do_statement")
_ALL_LANES = ("", "~0", "-1", "0xffffffff")
_LOCKS = re.compile(r"\batomic(?:CAS|Exch)\b|\bcompare_exchange_|\bexchange\(")
_USES_PIPELINES = re.compile(r"\bproducer_acquire|\bconsumer_wait")
ALL_THREADS = (
    "Let all threads of a block reach each barrier: put conditions around loads and stores, in "
    "place of an early `return` or a condition around the barrier."
)
_ADDS_TO_AN_ELEMENT = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)+[-+]=(.*)")
_ONE_STATEMENT = (
    "Several threads change one variable by the same statement: use an atomic, such as "
    "`atomicAdd`, or let one thread execute the statement."
)
_READ_BESIDE_AN_ATOMIC = (
    "A thread reads the variable while another changes it by an atomic: read it by an atomic, too, "
    "such as `atomicAdd(&variable, 0)`, or leave the read out."
)
_IN_A_CLUSTER = (
    "The two threads are in different blocks of a cluster: only a barrier of the cluster, such as "
    "`cluster.sync();`, orders them. It orders what a thread does before it arrives with what "
    "others do after they have waited."
)
MBARRIERS = (
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
_AT_MBARRIERS = (
    " A copy that an mbarrier counts has arrived only after a wait for that phase, such as "
    "`bar.arrive_and_wait();`: `__syncthreads();` does not replace it."
)
_REFILLED = (
    " All threads must also have read a stage before it is filled again: write `__syncthreads();` "
    "after the read, or let them arrive at a second mbarrier there."
)


def of_race(found: Finding, report: Report) -> str | None:
    source = report.submission.source
    if polled := plain_polling(source):
        # The compiler may have moved the load, which then has no line.
        lines = [each.line for each in (found.at, found.other) if each is not None]
        if polled.line in lines or f" of {polled.name} (" in found.message:
            return polled.advice
    code = without_comments(source)
    if found.array == SIGNATURE.output and crosses_a_row(found):
        return crossing(found)
    if _both_write(found) and (ignored := _ignored_number(found)):
        return ignored
    if found.array == SIGNATURE.output and _both_write(found):
        return (
            "Two threads store one element of C. A block may store only the elements of its "
            "own tile, each by one thread. A tile has 16×16 elements, or as many as the "
            "launch line says."
        )
    if "uses what" in found.message:
        return (
            "After one thread has initialised the mbarriers, execute `__syncthreads();` before "
            "another one uses them."
        )
    if "no barrier between" in found.message:
        return _missing_barrier(found, report)
    if re.search(r"of the cluster, which may (?:not )?have", found.message):
        return _IN_A_CLUSTER
    if "has not delivered" in found.message:
        if _WAITS_FOR_COPIES.search(code):
            return _COPIES
        is_counted = _USES_MBARRIERS.search(code)
        return MBARRIERS + _AT_MBARRIERS + _REFILLED if is_counted else _UNAWAITED
    if found.array == Array.MODULE and _both_write(found):
        if found.other is not None and "atomic" in _line_of(code, found.other.line):
            return _STORE_AND_ATOMICS
        return (
            "Two blocks store one element of a `__device__` array. Give each block a part of "
            "its own, numbered by `blockIdx.y * gridDim.x + blockIdx.x`, or use atomics."
        )
    if "no release and acquire" in found.message and _changes_one(found, source):
        return _of_one_statement(found, code)
    if "no release and acquire" in found.message:
        return (
            "A block that stores for another must then execute `__threadfence();` and "
            "`__syncthreads();` before one thread sets a flag or counter by an atomic. The "
            "other block must read that by an atomic, then execute `__syncthreads();` and "
            "`__threadfence();` before it reads."
        )
    return None


def of_barrier(found: Finding, report: Report) -> str | None:
    """Return what to do about a barrier that some threads do not reach, or a wait without end."""
    source = report.submission.source
    code, line = without_comments(source), line_at(found.at, source)
    if found.hazard is Hazard.DIVERGENT_BARRIER and "but not its own" in found.message:
        return "A thread may execute a warp-wide instruction only with a mask that names it."
    if found.hazard is Hazard.DIVERGENT_BARRIER and "names lanes" in found.message:
        return _of_lanes(source)
    if found.hazard is Hazard.DEADLOCK and _WARP_WIDE.search(line):
        return _of_lanes(source)
    if found.hazard is Hazard.DEADLOCK and "mbarrier" in found.message:
        return _PIPELINE if _USES_PIPELINES.search(code) else MBARRIERS
    if found.hazard is Hazard.DEADLOCK and "barrier 0 has" in found.message:
        return ALL_THREADS
    if found.hazard is Hazard.DEADLOCK and "bar.arrive" in code:
        return (
            "`bar.sync` counts a thread and waits, `bar.arrive` only counts it. Producers and "
            "consumers must use each barrier equally often, with the same number and in the "
            "same order."
        )
    if found.hazard is Hazard.DIVERGENT_BARRIER:
        return ALL_THREADS
    return None


def crosses_a_row(found: Finding) -> bool:
    """Return whether a vector access may begin in one row and end in the next."""
    if found.size not in (8, 16) or found.shape is None or found.column is None:
        return False
    length = found.shape.N if found.array == SIGNATURE.inputs[0] else found.shape.K
    return found.column + found.size // 4 > length


def crossing(found: Finding) -> str:
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


def _of_one_statement(found: Finding, code: str) -> str:
    is_atomic = "atomic" in _line_of(code, found.at.line)
    return _READ_BESIDE_AN_ATOMIC if is_atomic else _ONE_STATEMENT


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
        return MBARRIERS + _REFILLED
    if _changes_one(found, source):
        if _LOCKS.search(code):
            return (
                "A lock orders accesses only with fences: execute `__threadfence_block();` after "
                "the atomic that takes it, and before the one that gives it back."
            )
        return _of_one_statement(found, code)
    if other and at.line == other.line and _both_write(found):
        return (
            "Two threads store one element by the same statement, so their index is the same. Is "
            "it computed from `threadIdx.y * 16 + threadIdx.x`?"
        )
    findings = getattr(report.outcome, "findings", ())
    if returned := early_return(report):
        return f"The barrier in line {returned} does not order the two. {ALL_THREADS}"
    missed = {each.at.line for each in findings if each.hazard is Hazard.DIVERGENT_BARRIER}
    return _next_iteration(found, source, missed) or (
        "Write `__syncthreads();` between the two, where all threads of the block reach "
        "it: no thread continues past it before. If only threads of one warp share the "
        "elements, `__syncwarp();` is enough."
    )


def early_return(report: Report) -> int | None:
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
        return ALL_THREADS
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
