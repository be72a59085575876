"""Restrict a worker through the operating system: limits, no network, only its own files.

Each restriction is applied if the system offers it. `confine` returns those that are enforced, for
the report. This module imports nothing that starts a thread: a restriction applies to the thread
that asks for it and to later threads.
"""

import ctypes
import os
import resource
import site
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

SCRATCH_VARIABLE = "MATMUL_ARENA_SCRATCH"
CACHE_VARIABLE = "MATMUL_ARENA_CACHE"
"""Environment variables that name the folders in which a worker may write."""

_GIB = 1 << 30


class Role(StrEnum):
    COMPILER = "compiler"
    CUDA = "cuda"
    SANITIZER = "sanitizer"
    CHECKER = "checker"
    CPU = "cpu"


_ON_GPU = (Role.CUDA, Role.SANITIZER, Role.CHECKER)
"""The roles that load the driver, themselves or in programs that they start."""


_CPU_SECONDS = dict.fromkeys(Role, 3600) | {Role.COMPILER: 120}
_ADDRESS_SPACE = {Role.COMPILER: 8 * _GIB, Role.CPU: 16 * _GIB}
"""The CUDA driver reserves far more address space than it uses, so GPU workers have no such
limit."""
_FILE_SIZE = 1 * _GIB
_OPEN_FILES = 1024
_MORE_TASKS = dict.fromkeys(Role, 1024) | {Role.COMPILER: 256, Role.CPU: 256}
"""Processes and threads beyond those that the user has already: the system counts them all."""


def confine(role: Role, scratch: Path, writable: Iterable[Path] = ()) -> tuple[str, ...]:
    """Confine this process permanently. Return the enforced restrictions, as a short phrase each.

    The worker may write to `scratch` and `writable` only.
    """
    enforced = [*_limits(role)]
    if role not in _ON_GPU:
        enforced += _leave_network()
    _libc().prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)  # it ends with the judge that started it
    enforced += _landlock(role, [scratch, *writable])
    return tuple(enforced)


def _limits(role: Role) -> Iterable[str]:
    limits = [
        (resource.RLIMIT_CORE, 0, ""),
        (resource.RLIMIT_CPU, _CPU_SECONDS[role], f"CPU time {_CPU_SECONDS[role]} s"),
        (resource.RLIMIT_FSIZE, _FILE_SIZE, f"file size {_FILE_SIZE // _GIB} GiB"),
        (resource.RLIMIT_NOFILE, _OPEN_FILES, f"{_OPEN_FILES} open files"),
    ]
    if role in _ADDRESS_SPACE:
        size = _ADDRESS_SPACE[role]
        limits.append((resource.RLIMIT_AS, size, f"memory {size // _GIB} GiB"))
    if os.geteuid() != 0:  # the system does not count root's
        more = _MORE_TASKS[role]
        limits.append((resource.RLIMIT_NPROC, tasks() + more, f"{more} processes and threads"))
    for which, wanted, phrase in limits:
        _, hard = resource.getrlimit(which)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (value, value))
        if phrase:
            yield phrase


def tasks() -> int:
    """Count the processes and threads of this user."""
    count, user = 0, os.geteuid()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == user:
                    count += sum(1 for _ in (entry / "task").iterdir())
            except OSError:
                continue  # the process has ended meanwhile
    return count


_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000


def _leave_network() -> Iterable[str]:
    """Enter an empty network namespace. An ordinary user may do so in a user namespace; root needs
    none, and would lose its rights to files in one."""
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    if _libc().unshare(flags) == 0:
        yield "no network"


# ------------------------------------------------------------------------------------- Landlock
#
# Numbers and layouts: the kernel's Documentation/userspace-api/landlock.rst. No maintained Python
# package offers it.

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_ALL_V1 = (1 << 13) - 1
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_TCP_BIND, _TCP_CONNECT = 1, 2


def _landlock(role: Role, writable: list[Path]) -> Iterable[str]:
    libc = _libc()
    abi = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)
    if abi < 1:
        return []
    everything = _ALL_V1 | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    reads_anywhere = role in _ON_GPU
    files = everything & ~_READ if reads_anywhere else everything
    # compute-sanitizer communicates with the program that it watches over TCP on this machine.
    network = (_TCP_BIND | _TCP_CONNECT) if abi >= 4 and role not in _ON_GPU else 0
    attributes = struct.pack("=QQ", files, network)[: 16 if network else 8]
    ruleset = libc.syscall(
        _CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)
    )
    if ruleset < 0:
        return []
    try:
        for path in writable:
            _allow(libc, ruleset, path, files)
        # The driver opens its device files for writing, and in the process that compute-sanitizer
        # watches also files of its own in /proc; the others need the null device.
        others = _files_of_other_gpus() if reads_anywhere else []
        devices = [Path("/dev"), Path("/proc")] if reads_anywhere else [Path("/dev/null")]
        if others:
            devices[:1] = [path for path in Path("/dev").iterdir() if path not in others]
        for path in devices:
            _allow(libc, ruleset, path, files & (_READ | _WRITE_FILE | _TRUNCATE))
        if not reads_anywhere:
            for path in _program_files():
                _allow(libc, ruleset, path, _READ)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)) != 0:
            return []
    finally:
        os.close(ruleset)
    phrases = ["writes only to a scratch folder" + (", /dev and /proc" if reads_anywhere else "")]
    if others:
        phrases.append("no GPU but its own")
    if not reads_anywhere:
        phrases.append("reads only programs, libraries and CUDA's headers")
    if network:
        phrases.append("no TCP")
    return phrases


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, access: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not path.is_dir():
            access &= _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE
        rule = struct.pack("=Qi", access, handle)
        libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, ctypes.c_uint32(0))
    finally:
        os.close(handle)


_GPUS = Path("/proc/driver/nvidia/gpus")


def _files_of_other_gpus() -> list[Path]:
    """Return the device files of the GPUs that this worker does not use, if it uses only one.

    Each file that a process opens delays the start of CUDA in all processes, for the driver serves
    one after the other.
    """
    files: dict[str, Path] = {}
    for path in _GPUS.glob("*/information"):
        with suppress(OSError, KeyError):  # this GPU has no UUID there
            lines = (line.partition(":") for line in path.read_text().splitlines())
            facts = {name: value.strip() for name, _, value in lines}
            files[facts["GPU UUID"]] = Path(f"/dev/nvidia{facts['Device Minor']}")
    own = files.pop(os.environ.get("CUDA_VISIBLE_DEVICES", ""), None)
    return [] if own is None else list(files.values())


def _program_files() -> set[Path]:
    """Return the files of Python, its packages, the judge and the system's libraries."""
    here = Path(__file__).resolve().parent.parent.parent
    return {
        *(Path(entry) for entry in (sys.prefix, sys.base_prefix, sys.exec_prefix)),
        *(Path(entry) for entry in site.getsitepackages()),
        *(
            path
            for path in (Path(entry).resolve() for entry in sys.path if entry)
            if path != here.parent
        ),
        here,
        here.parent / "problem",
        *(Path(entry) for entry in ("/usr/lib", "/usr/lib64", "/lib", "/lib64")),
        *(Path(entry) for entry in ("/usr/local/lib", "/usr/local/cuda", "/etc/ld.so.cache")),
        *(
            Path(entry)
            for name in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH")
            for entry in os.environ.get(name, "").split(os.pathsep)
            if entry
        ),
        *(Path(entry) for entry in ("/sys/devices/system/cpu", "/proc/cpuinfo", "/proc/meminfo")),
    }
