"""The definitions of the data that translated kernels, the runtime in CUDA C++ and Python share.

Every worker thread of the host has a Context for each block of the clusters that it runs; every GPU
thread of those blocks has a Thread. Both are defined here and written into the runtime's source as
C structs.
"""

import ctypes
import re
from enum import IntEnum, IntFlag
from typing import Any

# ---- addresses: each memory lies in the middle of a window of its own, so that no stray pointer
# lands in a neighbour, and the distance to the memory says by how much it missed. The addresses
# are in the range in which CUDA places what it allocates.

WINDOW_BITS = 36
FIRST_WINDOW = 0x7E0
"""The bits above the window's bits in the addresses of window 0."""
MIDDLE = 1 << (WINDOW_BITS - 1)
WINDOWS = 64


BLOCK_BITS = 24
"""A shared-memory address has the offset in its block below this bit, and above it the block's rank
in its cluster, as on a GPU."""


class Window(IntEnum):
    """The memories that every kernel has. A buffer's window is BUFFER plus its index."""

    NONE = 0
    MODULE = 1
    LOCAL = 2
    SHARED = 3
    BUFFER = 4

    @property
    def base(self) -> int:
        """The device address of the window's first byte that may be accessed."""
        return base_of(self.value)


MAX_BUFFERS = WINDOWS - Window.BUFFER


def base_of(window: int) -> int:
    """Return the device address of a window's first byte that may be accessed."""
    return ((FIRST_WINDOW + window) << WINDOW_BITS) + MIDDLE


def window_and_offset(address: int) -> tuple[int, int]:
    """Return the window of a device address, and its offset from the window's first byte.

    An address outside every window has the window NONE.
    """
    window = (address >> WINDOW_BITS) - FIRST_WINDOW
    offset = (address & (1 << WINDOW_BITS) - 1) - MIDDLE
    return (window if 0 < window < WINDOWS else Window.NONE), offset


class State(IntEnum):
    """The state of a GPU thread."""

    RUNNING = 0
    COLLECTIVE = 1  # waits for the lanes of its warp
    BARRIER = 2
    MBARRIER = 3  # waits for a phase of an mbarrier
    YIELD = 4  # yielded, runs again in the next round
    EXITED = 5
    CLUSTER_BARRIER = 6
    LEFT = 7  # a unit of the vector path that cannot continue: threads run its block again


class Cause(IntEnum):
    """The reason why a block stopped."""

    NONE = 0
    MEMORY = 1
    TRAP = 2
    DEADLOCK = 3
    TIME_LIMIT = 4
    ASYNC_OVERFLOW = 5  # more copies in flight than this device keeps
    BAD_OPERAND = 6  # an operand that the instruction does not allow
    TRACE_OVERFLOW = 7  # more events of a thread than are kept until they are counted
    CLUSTER_ORDER = 8  # arrived at the cluster's barrier twice, or waited without having arrived
    BARRIER_COUNT = 9  # another number of threads for a barrier than other threads named


class Access(IntFlag):
    READ = 0
    WRITE = 1
    ATOMIC = 2
    STRONG = 4  # relaxed, volatile, acquire or release
    ASYNC = 8
    ACQUIRE = 16
    RELEASE = 32
    OWN = 64  # of .shared::cta: another block's memory is outside
    INIT = 128  # of an mbarrier
    READ_ONLY = 256  # by the path that needs memory to stay as it is
    MBARRIER = 512  # whose order the instruction itself makes
    CLUSTER_SCOPE = 1024
    GPU_SCOPE = 2048  # and wider; with neither, a strong access has the scope of its block
    PROXY = 4096  # a read by wgmma or a bulk copy, or a write that needs no fence before one
    SECOND = 8192  # in the record of a warp's read: a read by another lane is recorded, too
    RESULT_UNUSED = 16384  # of an atomic operation, so that its thread learns nothing of others'
    UNUSED = 32768  # and the next three bits: the quarters of a vector load that nothing reads


class Collective(IntEnum):
    """The warp-wide operations; the runtime has one function for each."""

    SYNC = 0
    SHUFFLE = 1
    VOTE = 2
    MATCH = 3
    REDUCE = 4
    ACTIVE = 5
    STORE_MATRIX = 6
    PRODUCTS = 7  # mma, wgmma and ldmatrix, several of them
    WMMA_LOAD = 8
    WMMA_STORE = 9
    WMMA = 10
    WGMMA_FENCE = 11
    WGMMA_COMMIT = 12
    WGMMA_WAIT = 13  # until no more groups than its variant are in flight
    MMA_DOUBLE = 14


class Event(IntEnum):
    """The events of a thread that are traced, to be counted per warp."""

    ACCESS = 0
    MATRIX = 1  # lane i brings the address of row i, 16 bytes
    BLOCK = 2  # a basic block begins
    BRANCH = 3  # it is taken where the address is 1
    TARGET = 4  # where an async copy writes
    SOURCE = 5  # where it reads, right after that; not if it only fills with zeros
    BYPASS = 6  # the same of a copy that leaves no trace in the L1 cache


LANE_BUFFER_WORDS = 256  # 32-bit words a lane can publish: wgmma m64n256 has 128 accumulators
LANES = 32
LOADS = -2  # in place of a product's word that says whether its sums count: it is an ldmatrix
NAMED_BARRIERS = 16
COPIES_IN_FLIGHT = 256  # cp.async per thread
UNIT_COPY_BYTES = 5152
"""The bytes, for each lane, of the copies in flight of a unit of at least eight lanes."""
BULK_IN_FLIGHT = 1024  # cp.async.bulk per block
TRACKERS = 16  # mbarriers of a block that track cp.async
SYNC_ADDRESSES = 1 << 16  # flags and mbarriers at which the checks keep what was published
NEAR_CLOCKS = 1024  # of these, those that one cluster writes
MAX_SNAPSHOTS = 4096  # clocks that a launch publishes from one cluster to another
MAX_SETS = 1 << 14  # of snapshots
MAX_SWITCHES = 1 << 16  # from one cluster to another that has begun, in a launch that is checked
CLOCK_STEP = 8  # words of clocks that are joined at once
READERS, IS_RARE, DIVIDED = 30, 1 << 30, 1 << 31  # of a cell
WIDE_CELL = 16  # bytes of shared memory that the checks handle at once where they can
GLOBAL_LINE = 64  # bytes of memory that blocks share: neighbouring lanes access many of them
IN_CELLS = -1  # of a line
MAX_CLUSTER = 8  # blocks; more is up to each GPU

MAX_FINDINGS = 512
FINDING_PLACES = 2048
ROWS_OF_WORDS = 64  # an access of a warp to words in so many rows is counted quickly
RECENT_SETS, RECENT_WAYS = 256, 4  # of the table of sectors that a warp touched last
RECENT = RECENT_SETS * RECENT_WAYS
TRACE = 1 << 15  # events that a thread can have between two places where it waits

_C_TYPES = {
    "int": ctypes.c_int32,
    "unsigned": ctypes.c_uint32,
    "long long": ctypes.c_int64,
    "short": ctypes.c_int16,
    "Address": ctypes.c_uint64,
}
"""A pointer is an integer in Python."""

THREAD = {
    "handle": "void*",  # of the coroutine
    "lane_buffer": "unsigned*",  # its own place in the first of its warp's words
    "state": "int",
    "pc": "int",  # index of the instruction it waits at
    "mask": "unsigned",  # the lanes that a collective names
    "collective": "int",
    "argument": "long long",  # variant of the collective; address of an mbarrier
    "barrier": "int",
    "expected": "int",  # threads that the barrier waits for, 0 for all
    "aligned": "int",  # whether all lanes of the warp must wait at the same barrier instruction
    "parity": "int",  # of the phase of an mbarrier, and ACCESS_ACQUIRE unless the wait is relaxed
    "group": "int",  # cp.async groups committed so far
    "copies": "int",  # cp.async copies issued so far
    "delivered": "int",  # cp.async copies that have arrived
    "bulk_group": "int",
    "products": "int",  # wgmma groups that its warp committed so far; of lane 0
    "issued": "int",  # wgmma that its warp issued so far; of lane 0
    "issued_pc": "int",  # index of the last one
    "cluster_arrivals": "int",  # at the cluster's barrier
    "cluster_waits": "int",  # that are over
    "arrival_pc": "int",  # index of the instruction of the last arrival, its low bit for `.aligned`
    "met": "int",  # blocks of the cluster, by rank, that this thread knows to have begun
}

CONTEXT = {
    # how the launch looks
    "entry": "void*",
    "launch": "long long",  # its number in this process
    "threads": "long long",
    "grid_x": "long long",
    "grid_y": "long long",
    "grid_z": "long long",
    "block_x": "long long",
    "block_y": "long long",
    "block_z": "long long",
    # the cluster: the contexts of its blocks by rank, and how many blocks it has
    "cluster": "struct Context*",
    "cluster_blocks": "long long",
    "cluster_x": "long long",
    "cluster_y": "long long",
    "cluster_z": "long long",
    "cluster_phases": "long long",  # of the cluster's barrier that are over; of rank 0
    "is_running": "long long",  # its blocks have begun and not all ended; of rank 0
    "backward": "long long",  # in the next round, the last thread begins; of rank 0
    # which block runs
    "rank": "long long",
    "shared_address": "long long",  # where its shared memory begins among the cluster's
    "is_over": "long long",  # all its threads have exited
    "chance": "long long",  # state of the random numbers that say whether a thread yields
    "phases_seen": "long long",  # of the cluster's barrier, by the checks
    "block": "long long",
    "x": "long long",
    "y": "long long",
    "z": "long long",
    # memory
    "windows": "struct Span*",
    "parameters": "char*",
    "shared": "char*",
    "shared_bytes": "long long",
    "local": "char*",
    "local_bytes": "long long",  # per thread
    "frames": "char*",
    "frame_bytes": "long long",  # per thread
    "scratch": "char*",  # what a refused access touches instead
    # the threads and their lane buffers
    "thread": "struct Thread*",
    "lane_buffer": "unsigned*",  # [warp][word][lane]
    "group": "unsigned*",  # [warp]: the lanes that took part in the last collective
    "arrived": "int*",  # [barrier]: bar.arrive
    "named": "int*",  # [barrier]: the number of threads that those named for it
    "copies": "struct Copy*",
    "unit_copies": "char*",  # on the vector path
    "unit_lanes": "long long",  # of each unit there; 0 on the thread path
    "bulk": "struct Bulk*",
    "bulk_count": "long long",
    "trackers": "struct Tracker*",  # mbarriers that track cp.async
    "trackers_used": "long long",
    "tracked": "struct Tracked*",  # [tracker][thread]
    # how it ends
    "stop": "volatile unsigned char*",
    "print": "void*",
    "fault": "long long",
    "fault_pc": "long long",
    "fault_address": "Address",
    "fault_bytes": "long long",
    "fault_access": "long long",
    "fault_thread": "long long",
    "fault_count": "long long",
    # writes to the inputs go to scratch and are compared afterwards
    "pending_target": "char*",
    "pending_bytes": "long long",
    "pending_window": "long long",
    "changed": "long long",  # bit w: the array in window w was given another value
    # instruments, null unless compiled in
    "checks": "struct Checks*",
    "counts": "struct Counts*",
    "watch": "struct Watch*",  # of the vector path
}

# One thing that the checks found; equal ones are counted.
FINDING = {
    **dict.fromkeys(("kind", "pc", "other_pc", "thread", "other_thread"), "long long"),
    **dict.fromkeys(("block", "other_block"), "long long"),
    "address": "Address",
    **dict.fromkeys(("bytes", "access", "other_access", "count"), "long long"),
}

# One access to a cell of memory, and when it happened by its thread's own clock.
EVENT = {"clock": "unsigned", "pc": "int", "thread": "short", "access": "short"}
EVENT_BYTES = 12
CELL_BYTES = EVENT_BYTES + 16
RARE_CELL_BYTES = 3 * EVENT_BYTES
GLOBAL_CELL_BYTES = 5 * EVENT_BYTES
GLOBAL_LINE_BYTES = 2 * 3 * EVENT_BYTES + 8

# What was published at an address: by a thread of this run of a cluster, to those near it, and to
# clusters that run later.
SYNC = {
    "address": "Address",
    "set": "unsigned",
    "run": "int",
    "near": "int",
    "rank": "int",  # of the block that published last
}
SYNC_BYTES = 24

# The time in which a cluster runs or has run until it ended or waited for others: where its clocks
# and snapshots begin, and its first block; or UNDONE. A cluster that waited has several of them.
RUN = {
    "base": "long long",
    "first_snapshot": "long long",
    "block": "long long",
    "cluster": "int",  # the number of the cluster's first run
    "next": "int",  # the number of the cluster's next run; 0 if this is its last
}
RUN_BYTES = 32
UNDONE = -1

# What all clusters of a launch have in common.
HISTORY = {
    "findings": "struct Finding*",
    "places": "int*",  # by a hash of kind and instructions: the finding's number plus 1
    "capacity": "long long",
    "found": "long long",
    "syncs": "struct Sync*",
    "syncs_used": "long long",
    "snapshots": "unsigned*",  # [snapshot][thread]
    "snapshot_bounds": "unsigned*",  # [snapshot][2]: its least and its greatest number
    "snapshots_used": "long long",
    "sets": "unsigned long long*",  # [set][word]: a bit for each snapshot
    "sets_used": "long long",
    "joined_a": "long long",  # the sets last joined, and what came out
    "joined_b": "long long",
    "joined_set": "long long",
    "runs": "struct Run*",
    "runs_used": "long long",  # the last one, counted from 1
    "last_clock": "long long",  # no clock of a cluster that does not run now is later
    "switches": "long long",  # how often a cluster continued after another one had run
    "has_undone": "long long",  # whether a block of the vector path was left to threads
    "found_run": "long long",  # the one that was last looked for
    "found_before": "long long",  # the one before
}

# What the checks know of one cluster after the other. Clusters that run at the same time have one
# each.
CHECKS = {
    "history": "struct History*",
    "slot": "long long",  # a number for each of those
    "warps": "long long",
    "cell_width": "long long",  # bytes of shared memory that a narrow cell describes
    "cells_checked": "long long",  # the narrow cells that the access at hand is checked for at once
    # Threads and warps are counted through the cluster, cells and bytes of shared memory, too.
    "block_cells": "long long",  # of a block
    "cells": "struct ShadowCell*",  # [cell]
    "rare": "struct RareCell*",  # [cell]
    "reads": "struct Event*",  # [block][warp][cell]: by the last lane of the warp that read it
    "second_reads": "struct Event*",  # [block][warp][cell]: by the lane before
    "awaited": "int*",  # [warp][cell]: which of the block's a warp's products may still read
    "awaited_cells": "int*",  # [warp]: how many of them there are
    # What is known of each byte: UNWRITTEN, WRITTEN, or OUTSIDE of every variable.
    "shared_ready": "unsigned char*",
    "local_ready": "unsigned char*",  # [thread][byte]
    "module_ready": "unsigned char*",
    "buffer_ready": "unsigned char**",  # [window]; null for a buffer that is initialised
    "shared_fresh": "unsigned char*",  # how the first two begin in each block
    "local_fresh": "unsigned char*",
    "global_cells": "struct GlobalCell**",  # [window][cell]; null where none are kept
    "global_lines": "struct GlobalLine**",  # [window][line]
    "global_bytes": "long long*",  # [window]: of which there are cells
    "global_cell_width": "long long",
    # A clock is a number for each thread, that of a set of snapshots, and if the kernel needs
    # proxy fences, a second number for each thread. Its words are a multiple of CLOCK_STEP.
    "clock_words": "long long",
    "clock": "unsigned*",  # [thread][clock]: what each thread knows of the others
    "own": "unsigned*",  # [thread]: its number in its own clock
    "common": "unsigned*",  # [block][clock]: the same for threads that last met at a barrier
    "has_common": "unsigned char*",  # [thread]: it is one of these
    "in_step": "long long",  # bit b: all threads of block b are, and their numbers are equal
    "floor": "unsigned*",  # [block][clock]: what all threads of the block know, since all last met
    "arrival": "unsigned*",  # [barrier][thread]: what those who arrived knew
    "joined": "unsigned*",  # [thread]
    "shared_row": "unsigned*",  # [thread]
    "here": "unsigned char*",  # [thread of the block]: which ones meet
    "fenced": "unsigned*",  # [distance][thread][clock]: what each thread knew at its last fence
    "fenced_far": "int*",  # [thread]: bit d: it has fenced for threads of that distance
    "fenced_set": "unsigned*",  # [thread]: the same as a set of snapshots, once it is needed
    "pending": "unsigned*",  # [distance][thread][clock]: what each will know at its next fence
    "pending_from": "int*",  # [thread]: bit d: it will know something of that distance
    "unshared_fences": "long long",  # bit b: since all threads of block b last met, one has fenced,
    # or read what its next fence will make known
    "unmet": "long long",  # whether a thread of the vector path did anything since all last met
    "near": "unsigned*",  # [slot][distance][clock]
    "near_used": "long long",
    "run": "long long",  # the first one of the cluster
    "last_run": "long long",  # the one at hand
    "cluster_arrival": "unsigned*",  # [thread]: what those who arrived at its barrier knew
    "cluster_known": "unsigned*",  # [thread]: what its last phase told those who waited
    "arrived": "unsigned*",  # [thread]: its own clock when it last arrived at that barrier
    "finished": "unsigned*",  # [thread]: the same of the last phase
    "seen": "unsigned*",  # [block][thread]: the same of the last phase that the block waited for
    "init_fenced": "unsigned*",  # [thread]: its own clock at its last fence.mbarrier_init
    "init_arrived": "unsigned*",  # [thread]: the same when it last arrived
    "init_known": "unsigned*",  # [thread]: the same of the last phase
    "visits": "struct Event*",  # [block][thread]: its last access to the block from another one
    "base": "long long",  # all clocks start after those of clusters that began earlier
    "settled": "long long",  # all threads of a cluster of one block know of events up to this clock
}

# What the vector path keeps of a block's accesses while it is watched. Words are as
# vector/watched.py says: an interval between barriers, and a thread.
WATCH = {
    "writes": "int*",  # [cell]: the word of the last write to this cell of shared memory
    "reads": "int*",  # [cell]: the same of reads
    "fresh": "int*",  # [cell]: how the first of them begins
    "cells": "long long",
    "cell_width": "long long",
    "checks": "struct Checks*",  # those of the thread path, which go on after this block
    "keeps_clocks": "long long",  # whether they order accesses by more than barriers
    "mbarriers": "long long",  # whether the block has initialised one
    "now": "int",  # the interval, as a word of thread 0
    "first": "int",  # the block's first interval
    "doubt": "int",  # negative once an access may have been a mistake
    "block": "long long",  # in which it may have been
}
WATCH_INTERVAL = 1 << 11
MANY_THREADS = WATCH_INTERVAL - 1

# What one instruction cost.
COUNT = {
    "global_requests": "long long",
    "sectors": "long long",
    "min_sectors": "long long",  # sectors that as many different bytes could lie in at best
    "first_sectors": "long long",  # sectors that no thread of the block had touched before
    "new_sectors": "long long",  # sectors that the warp had not touched shortly before
    "global_passes": "long long",  # through the L1 cache, a line of 128 bytes at a time
    "shared_requests": "long long",
    "wavefronts": "long long",
    "min_wavefronts": "long long",  # wavefronts that the same requests could take at best
    "threads": "long long",  # that began the basic block here
    "warps": "long long",  # that did, in whole or in part
    "divergent": "long long",  # times that the lanes of a warp parted here
}

# One thing that a thread did.
TRACED = {"address": "unsigned long long", "order": "int", "kind": "int"}
TRACED_BYTES = 16

COUNTS = {
    "rows": "struct Count*",  # [instruction]
    "place": "int*",  # [instruction]: in `wider`; -1 if no loads can be merged into it
    "wider": "struct Count*",  # [place][2]: the same with 64 and 128 bits a lane
    "trace": "struct Traced*",  # [warp, counted through the cluster][TRACE][lane]
    "traced": "int*",  # [thread]: how many of them there are
    "to": "unsigned long long*",  # [lane]: where the async copy at hand writes
    "to_lanes": "long long",  # which lanes do
    "to_wavefronts": "long long",  # how many they were counted as
    "warp": "long long",  # the one at hand, counted through the cluster
    "recent": "unsigned long long*",  # [warp][set][way]: tags of sectors that it touched
    # [window][sector][rank]: the last block of that rank which touched it, counted from 1
    "touched": "unsigned**",
}


class Byte(IntEnum):
    """The state of one byte of memory in the checks."""

    UNWRITTEN = 0
    WRITTEN = 1
    OUTSIDE = 2


class FindingKind(IntEnum):
    """A kind of error that the checks find. `messages.py` words each of them."""

    BAD_ACCESS = 0
    UNINITIALISED = 1
    RACE = 2
    DIVERGENT_BARRIER = 3
    EARLY_RETURN = 4
    MISSING_LANES = 5
    IN_FLIGHT = 6
    BLOCK_NOT_BEGUN = 7
    BLOCK_MAY_BE_OVER = 8
    MISSING_WARPS = 9
    READ_ONLY_PATH = 10
    NO_PROXY_FENCE = 11
    SUM_IN_FLIGHT = 12
    PARTLY_UNINITIALISED = 13


def _fields(struct: dict[str, str]) -> list[tuple[str, Any]]:
    """Return the fields of a struct as ctypes has them."""
    return [(name, _C_TYPES.get(c_type, ctypes.c_int64)) for name, c_type in struct.items()]


class Thread(ctypes.Structure):
    _fields_ = _fields(THREAD)


class Context(ctypes.Structure):
    _fields_ = _fields(CONTEXT)


class RawFinding(ctypes.Structure):
    _fields_ = _fields(FINDING)


class History(ctypes.Structure):
    _fields_ = _fields(HISTORY)


class Checks(ctypes.Structure):
    _fields_ = _fields(CHECKS)


class Counts(ctypes.Structure):
    _fields_ = _fields(COUNTS)


class Watch(ctypes.Structure):
    _fields_ = _fields(WATCH)


THREAD_BYTES = ctypes.sizeof(Thread)
THREAD_OFFSET, CONTEXT_OFFSET, WATCH_OFFSET = (
    {name: getattr(struct, name).offset for name, _ in struct._fields_}
    for struct in (Thread, Context, Watch)
)


def _c_prefix(enum: type[IntEnum] | type[IntFlag]) -> str:
    """`FINDING_KIND` for FindingKind."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enum.__name__).upper()


SPAN_BYTES = 24  # struct Span { char* host; long long bytes; long long writable; }


def header() -> str:
    """Return the structs and constants in C, which precede the runtime's source. The constants are
    all integers of this module in capital letters."""
    enums: tuple[type[IntEnum] | type[IntFlag], ...]
    enums = (State, Cause, Access, Collective, Event, Window, Byte, FindingKind)
    lines = [
        f"enum {enum.__name__}Code {{ "
        + ", ".join(f"{_c_prefix(enum)}_{n} = {x.value}" for n, x in enum.__members__.items())
        + " };"
        for enum in enums
    ]
    lines += [
        f"#define {name} {value}"
        for name, value in globals().items()
        if name.isupper() and isinstance(value, int)
    ]
    lines.append("typedef unsigned long long Address;")
    lines.append("struct Span { char* host; long long bytes; long long writable; };")
    structs = {
        "Thread": THREAD,
        "Context": CONTEXT,
        "Finding": FINDING,
        "Event": EVENT,
        "ShadowCell": {
            "write": "struct Event",
            "run": "int",  # to which `readers` belongs
            # bit w: warp w, w + READERS, or another one has read it; IS_RARE: there is more to know
            # in its RareCell; or only DIVIDED for a wide cell
            "readers": "unsigned",
            "last_read": "unsigned",  # no read by these warps has a later clock
            "awaited": "int",  # how many of them have products that may still read it
        },
        "RareCell": {
            "strong": "struct Event",  # the last strong write
            "other_strong": "struct Event",  # one before it, or a read after it (record_strong)
            "in_flight": "struct Event",
        },
        "GlobalCell": {
            "write": "struct Event",
            "strong": "struct Event",
            "other_strong": "struct Event",
            "read": "struct Event",
            "other_read": "struct Event",
        },
        "LinePart": {
            # by the lane at its first byte; those by the next lanes differ in the thread alone
            "write": "struct Event",
            "read": "struct Event",
            "other_read": "struct Event",
        },
        "GlobalLine": {
            # bytes that each lane accesses; 0 if none has yet, IN_CELLS if its cells say more
            "lane_bytes": "int",
            "seam": "int",  # the byte at which the tail begins
            "head": "struct LinePart",
            "tail": "struct LinePart",
        },
        "Sync": SYNC,
        "Run": RUN,
        "History": HISTORY,
        "Checks": CHECKS,
        "Count": COUNT,
        "Traced": TRACED,
        "Counts": COUNTS,
        "Watch": WATCH,
    }
    for name, fields in structs.items():
        body = " ".join(f"{c_type} {field};" for field, c_type in fields.items())
        lines.append(f"struct {name} {{ {body} }};")
    return "\n".join(lines) + "\n"
