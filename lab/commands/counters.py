"""Compare what the CPU device counts with a GPU's hardware counters.

Solutions with matrix instructions of warp groups or with bulk copies are left out: the hardware's
counters of loads and stores do not see these.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from harness.cli.commands._arguments import parse_shape
from harness.cli.commands._command import Exit
from harness.cli.commands.grade import SOLUTIONS
from harness.cli.views.console import Terminal
from harness.judge.grading import launch_inputs
from harness.protocol.compiler import DEFAULT_ARCH, Kernel
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.files import write_whole
from harness.protocol.profile import NoProfile, Profile
from harness.protocol.report import CodeLine, Counters
from lab.explain.records import Recording
from problem.cases import Case, Shape
from problem.problem import MATRIX_MULTIPLICATION

SHAPES = (Shape(256, 256, 256), Shape(512, 384, 256))
UNSEEN = ("wgmma.", "cp.async.bulk.")
"""In the names of PTX instructions."""

PROFILING_SECONDS, COUNTING_SECONDS = 120.0, 600.0

HELP = """\
Reading hardware counters needs a GPU on which ncu may read them, and a minute;
counting beside them, which --from does alone, needs none, and some minutes.

A record says which code it is of. Of a file that has changed since, nothing is
compared: the table says so, and its counters are to be read again.

examples:
  python3 -m lab counters --json counters.json
  python3 -m lab counters --from counters.json --out counters.md
  python3 -m lab counters --shape 4096x3072x2048 --json busy.json FILE.cu
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="kernel files (default: solutions/)"
    )
    parser.add_argument(
        "--shape", type=parse_shape, action="append", metavar="MxNxK", help="may be given twice"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="PATH",
        help="write the hardware counters; those of other files in it are kept",
    )
    parser.add_argument(
        "--from", dest="read", type=Path, metavar="PATH", help="take those of an earlier run"
    )
    parser.add_argument("--out", type=Path, metavar="TABLE.md", help="write both, side by side")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from lab.explain.records import added

    chosen = arguments.files or sorted(SOLUTIONS.glob("*.cu"))
    sources = {path.stem: _source(path) for path in chosen}
    if arguments.read is None:
        shapes = tuple(arguments.shape or SHAPES)
        recording = _measured(sources, shapes, not arguments.files, terminal)
    else:
        recording = _of(sources, _read(arguments.read))
    if arguments.json is not None:
        before = _read(arguments.json) if arguments.json.exists() else None
        try:
            recording = added(before, recording)
        except ValueError as error:
            raise UsageError(f"{arguments.json} takes no other GPU's counters: {error}") from None
        write_whole(arguments.json, recording.model_dump_json(exclude_defaults=True) + "\n")
    if arguments.out is not None:
        text = _table(recording, sources, terminal)
        write_whole(arguments.out, text)
        terminal.show(text)
    return Exit.YES


def _of(sources: dict[str, str], recording: Recording) -> Recording:
    kernels = {name: each for name, each in recording.kernels.items() if name in sources}
    return recording.model_copy(update={"kernels": kernels})


def _read(path: Path) -> Recording:
    try:
        return Recording.model_validate_json(path.read_bytes())
    except ValueError:
        raise UsageError(f"{path} holds no hardware counters") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _measured(
    sources: dict[str, str], shapes: Sequence[Shape], skip_unseen: bool, terminal: Terminal
) -> Recording:
    """Read the counters with ncu; while one run reads them, the next begins."""
    from harness.compiling.source import parse
    from harness.judge.workers.session import open_session
    from lab.compilers import compile_all
    from lab.explain.records import recorded

    with open_session("cuda") as session:
        from harness.devices.cuda.profiler import profile

        kernels = compile_all(sources, session.info.arch)
        if skip_unseen:
            kernels = {name: kernel for name, kernel in kernels.items() if not _unseen(kernel)}
        with ThreadPoolExecutor(2) as pool:
            started = {
                name: pool.submit(profile, kernel, shapes, PROFILING_SECONDS)
                for name, kernel in kernels.items()
            }
            found = dict(terminal.track(_answered(started), "profiling", len(started)))
        today = datetime.now(UTC).date()
        records = {
            name: recorded(parse(sources[name]), launches, today)
            for name, launches in found.items()
        }
        return Recording(gpu=session.info.name, kernels=records)


def _unseen(kernel: Kernel) -> bool:
    return any(name in kernel.ptx for name in UNSEEN)


def _answered(
    found: dict[str, Future[tuple[Profile, ...] | NoProfile]],
) -> Iterator[tuple[str, tuple[Profile, ...]]]:
    for name, future in found.items():
        answer = future.result()
        if isinstance(answer, NoProfile):
            raise UsageError(f"no hardware counters of {name}: {answer.why}")
        yield name, answer


def _table(recording: Recording, sources: dict[str, str], terminal: Terminal) -> str:
    """Return the records whose sources are those of the files."""
    from harness.compiling.source import parse
    from lab.compilers import compile_all, disassemble_all
    from lab.explain.agreement import markdown
    from lab.explain.records import of_source

    chosen = _of(sources, recording)
    found = {name: of_source(each, parse(sources[name])) for name, each in chosen.kernels.items()}
    current = {name: launches for name, launches in found.items() if launches is not None}
    kernels = compile_all({name: sources[name] for name in current}, DEFAULT_ARCH)
    code = {name: known.lines for name, known in disassemble_all(kernels).items()}
    counted = _counted(current, kernels, code, terminal)
    return markdown(chosen, current, counted, kernels, code)


def _counted(
    recorded: Mapping[str, tuple[Profile, ...]],
    kernels: dict[str, Kernel],
    code: Mapping[str, tuple[CodeLine, ...]],
    terminal: Terminal,
) -> dict[str, list[Counters]]:
    """Every block of the same launches, by the CPU device."""
    from harness.judge.stages.compile import load_kernel
    from harness.judge.workers.session import open_session
    from harness.protocol.device import Count, Counted, Ready

    found: dict[str, list[Counters]] = {}
    with open_session("cpu") as session:
        for name, kernel in terminal.track(kernels.items(), "counting", len(kernels)):
            ready = load_kernel(session.device, kernel, mostly_checked=True)
            if not isinstance(ready, Ready):
                terminal.note(f"{name} does not run on the CPU device")
                continue
            found[name] = []
            for shape in (profile.shape for profile in recorded[name]):
                A, B = Case(shape).draw(0)
                inputs = launch_inputs(MATRIX_MULTIPLICATION, Case(shape), (A, B))
                blocks = shape.M * shape.K
                request = Count(
                    inputs=inputs,
                    max_blocks=blocks,
                    seconds=COUNTING_SECONDS,
                    code=code[name],
                )
                answer = session.device.ask(request)
                if not isinstance(answer, Counted):
                    raise JudgeFailure(f"{name} could not be counted at {shape}")
                found[name].append(answer.counters)
    return found


def _source(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
