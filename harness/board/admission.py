"""What a report must be before a board believes anything in it.

A report that comes from elsewhere is a claim. Its fields are bounded, finite and normalised, and
whatever can be worked out from something else in it is worked out again: hashes from the source,
the score from the rounds, the verdict from what was found. What remains is what only a measurement
can tell, and who vouches for that is said by a signature (signing.py).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from harness.board import escaping, names
from harness.board.edition import Edition
from harness.judge.submission import MAX_BYTES
from harness.protocol.report import (
    Accepted,
    CompileError,
    DeviceInfo,
    DeviceKind,
    DisassembledKernel,
    Measurement,
    Report,
    Score,
    Stage,
    Submission,
    Tool,
    Verification,
    WrongAnswer,
)
from problem.cases import CASES, RANKED
from problem.inputs import Tolerance
from problem.reference import LIMITS, MAX_ERROR

MAX_TEXT = 20_000
"""Characters of a message, or of the details of a judge error."""

MAX_ITEMS = 20_000
"""Rounds, cases, findings, lines with counters: more than the longest grading has."""

MAX_INTEGER = 1 << 53
"""Integers beyond it are not the same in every reader of JSON."""

MAX_SEED = 1 << 128

MAX_NUMBER = 1e15
"""Beyond any time, rate or size that a report has."""

EARLIEST = datetime(2025, 1, 1, tzinfo=UTC)
MAX_AHEAD = timedelta(days=1)
"""How far another machine's clock may be ahead of ours."""

_SAME = 1e-6
"""Relative difference up to which two numbers are one number, computed on two machines."""

_AS_WRITTEN = ("source", "printed")
"""Texts that are kept character by character: no view lets them act."""


class Implausible(Exception):
    """The report cannot be what a judge wrote; says what contradicts what."""


def normalised(report: Report) -> Report:
    """The report in the one form in which it is kept. Raises Implausible where it has none."""
    data = report.model_dump(exclude={"signature"})
    data["submission"] = named(report.submission).model_dump()
    if data["device"] is not None:
        data["device"]["name"] = _name("a device", data["device"]["name"], names.device_problem)
    created = report.created if report.created.tzinfo else report.created.replace(tzinfo=UTC)
    try:
        data["created"] = created.astimezone(UTC)
    except OverflowError:
        raise Implausible(f"it was graded in the year {created.year}, which is not so") from None
    _bound(data, "", may_be_infinite=False)
    return Report.model_validate(_visible(data))


def named(submission: Submission) -> Submission:
    """With its names in the one form in which they are kept. Raises Implausible where they have
    none."""
    author = submission.author
    if author is not None:
        author = _name("an author", author, names.author_problem)
    name = _name("a kernel file", submission.name, names.file_problem)
    return submission.model_copy(update={"name": name, "author": author})


def _name(what: str, text: str, why_not: Callable[[str], str | None]) -> str:
    name = names.normalised(text)
    problem = why_not(name)
    if problem is not None:
        raise Implausible(f"{name[:40]!r} cannot be the name of {what}: it {problem}")
    return name


def _bound(value: Any, place: str, may_be_infinite: bool) -> None:
    """Every number, text and list in it has a size that a report can have."""

    def refuse(why: str) -> Implausible:
        return Implausible(f"{place.lstrip('.')} {why}")

    match value:
        case bool() | None | datetime():
            pass
        case int():
            if abs(value) > (MAX_SEED if place.endswith("seed") else MAX_INTEGER):
                raise refuse("is too large a number")
        case float():
            if not may_be_infinite and not abs(value) <= MAX_NUMBER:
                raise refuse(f"is {value}, which nobody can have measured")
        case str():
            most = MAX_BYTES if place.endswith(".source") else MAX_TEXT
            if len(value) > most:
                raise refuse(f"is longer than {most} characters")
        case dict():
            if len(value) > MAX_ITEMS:
                raise refuse(f"has more than {MAX_ITEMS} items")
            for key, item in value.items():
                if len(str(key)) > names.MAX_NAME:
                    raise refuse("has a key that is too long")
                inside = may_be_infinite or key == "counterexample"
                _bound(item, f"{place}.{key}", inside)
        case list() | tuple():
            if len(value) > MAX_ITEMS:
                raise refuse(f"has more than {MAX_ITEMS} items")
            for number, item in enumerate(value):
                _bound(item, f"{place}[{number}]", may_be_infinite)


def _visible(value: Any, key: str = "") -> Any:
    """The same with no text in it that would act, but for source and output."""
    if type(value) is str and key not in _AS_WRITTEN:
        return escaping.laid_out(value)
    if isinstance(value, dict):
        return {escaping.one_line(k): _visible(v, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_visible(item, key) for item in value)
    return value


def check(report: Report) -> None:
    """Raises Implausible where the report contradicts itself."""
    for contradiction in _contradictions(report):
        raise Implausible(contradiction)


def _contradictions(report: Report) -> Iterator[str]:
    """Each as a sentence's end; those of the numbers only for this judge's own rules, since
    another edition's are never compared."""
    if not EARLIEST <= report.created <= datetime.now(UTC) + MAX_AHEAD:
        yield f"it was graded on {report.created:%Y-%m-%d}, which is not so"
    yield from _source(report)
    if Edition.of(report) != Edition.current():
        return
    if isinstance(report.outcome, Accepted):
        yield from _accepted(report)
    elif isinstance(report.outcome, WrongAnswer):
        error = report.outcome.counterexample.error
        if error <= MAX_ERROR:
            yield f"its wrong answer has an error of {error:g}, which is allowed"


def _source(report: Report) -> Iterator[str]:
    submission = report.submission
    unreadable = isinstance(report.outcome, CompileError) and report.outcome.stage is Stage.READ
    if not (unreadable and not submission.source) and submission.sha256 not in _sums(
        submission.source
    ):
        yield "its source does not have the sha256 that it names"


def _sums(source: str) -> set[str]:
    """sha256 of the files that read so: with a byte order mark and without."""
    return {hashlib.sha256(source.encode(coding)).hexdigest() for coding in ("utf-8", "utf-8-sig")}


def _accepted(report: Report) -> Iterator[str]:
    device, kernel, verification = report.device, report.kernel, report.verification
    assert device is not None and verification is not None
    assert isinstance(kernel, DisassembledKernel)
    yield from _kernel(kernel, report.submission.source)
    yield from _device(device, kernel)
    yield from _verification(verification, complete=not report.quick)
    for program in report.sanitizing:
        for run in program.tools:
            if run.status == "found":
                yield f"{run.tool.value} found something, and yet it was accepted"
    clean = {run.tool for each in report.sanitizing for run in each.tools if run.status == "clean"}
    unseen = [tool.value for tool in Tool if tool not in clean]
    if unseen and not report.quick:
        yield f"it was accepted, and no program has run {', '.join(unseen)}"
    on_gpu = device.kind is DeviceKind.CUDA
    if on_gpu != (report.measurement is not None):
        yield "it was measured without a GPU" if report.measurement else "nothing was measured"
    elif report.measurement is not None:
        yield from _measurement(report, report.measurement, device, kernel)


def _kernel(kernel: DisassembledKernel, source: str) -> Iterator[str]:
    from harness.compiling.disassembly import badges
    from harness.compiling.errors import SourceError
    from harness.compiling.occupancy import occupancy
    from harness.compiling.source import parse

    try:
        read = parse(source)
    except SourceError as error:
        yield f"its source is no submission ({error}), and yet it was accepted"
        return
    if kernel.code_sha256 != read.code_sha256:
        yield "its code hash is that of another kernel"
    if kernel.launch != read.launch:
        yield "its source asks for another launch"
    wanted = badges(kernel.launch, kernel.instructions)
    if kernel.badges != wanted:
        yield f"its instructions and its launch say {' and '.join(wanted)}, its badges do not"
    try:
        fits = occupancy(kernel.resources, kernel.arch)
    except ValueError as error:
        yield str(error)
        return
    if kernel.occupancy != fits:
        yield "its occupancy does not follow from its registers and shared memory"


def _device(device: DeviceInfo, kernel: DisassembledKernel) -> Iterator[str]:
    from harness.compiling.occupancy import multiprocessor

    if device.arch != kernel.arch:
        yield f"it was compiled for {kernel.arch} and ran on {device.arch}"
        return
    if device.kind is DeviceKind.CPU:
        return
    count, clock, peak = device.multiprocessors, device.max_clock_mhz, device.fp32_peak_tflops
    if count is None or clock is None or peak is None:
        yield "its GPU has no multiprocessors, no clock or no peak"
        return
    if not _same(peak, count * multiprocessor(device.arch).fp32_lanes * 2 * clock / 1e6):
        yield "its GPU's FP32 peak does not follow from multiprocessors and clock"


def _verification(verification: Verification, complete: bool) -> Iterator[str]:
    for result in verification.cases:
        if not result.error <= LIMITS[result.case.tolerance]:
            yield f"case {result.case} has an error of {result.error:g}, and yet it was accepted"
    errors = [
        result.error for result in verification.cases if result.case.tolerance is Tolerance.RANDOM
    ]
    if not errors or verification.worst_error != max(errors):
        yield "its worst error is not that of its cases"
    if complete and not {result.case for result in verification.cases} >= set(CASES):
        yield "it was accepted without all cases"


def _measurement(
    report: Report, measurement: Measurement, device: DeviceInfo, kernel: DisassembledKernel
) -> Iterator[str]:
    from harness.judge.stages.clocks import judge_clocks
    from harness.judge.stages.score import MIN_RATIOS, possible_tflops, ratios, score

    outcome, verification = report.outcome, report.verification
    assert isinstance(outcome, Accepted) and verification is not None
    whole = {r.case.shape for r in verification.cases if r.sampled_blocks is None}
    if not report.quick and RANKED.shape not in whole:
        yield f"it was measured without having been verified at {RANKED.shape}"
    rounds = measurement.rounds
    if any(not (each.kernel_ms > 0 and each.baseline_ms > 0) for each in rounds):
        yield "a round took no time"
        return
    told = [(r.kernel_ms, r.kernel_host_ms) for r in rounds]
    told += [(r.baseline_ms, r.baseline_host_ms) for r in rounds]
    if any(host is None or host < ms for ms, host in told):
        yield "the host's clock was not read, or says less than the GPU's events"
        return
    judged = judge_clocks(rounds) if rounds else ()
    if not isinstance(judged, tuple):
        yield "its two clocks do not agree"
    elif any(
        by_clocks.dropped and not r.dropped for by_clocks, r in zip(judged, rounds, strict=True)
    ):
        yield "a round counts in which the two clocks do not agree"
    if any(each.check > 1 for each in rounds):
        yield "the result of a timed launch is wrong, and yet it was accepted"
    audit = measurement.audit_error
    if (audit is None) != report.quick or (audit is not None and audit > MAX_ERROR):
        yield "the launch that is checked in full was not, or is wrong"
    if len(ratios(rounds)) < MIN_RATIOS:
        if isinstance(outcome.score, Score):
            yield f"fewer than {MIN_RATIOS} rounds give no score"
        return
    found = score(rounds, device)
    if isinstance(found, Score) != isinstance(outcome.score, Score):
        yield "its rounds give a score and it has none, or the other way round"
    elif isinstance(found, Score) and isinstance(outcome.score, Score):
        yield from _score(outcome.score, found)
        if found.tflops > possible_tflops(device, kernel):
            yield f"{found.tflops:.0f} TFLOP/s is more than its GPU can do"


def _score(claimed: Score, found: Score) -> Iterator[str]:
    for name, value in found.model_dump().items():
        said = getattr(claimed, name)
        if (value is None) != (said is None) or (value is not None and not _same(said, value)):
            yield f"its score has a {name} of {said}, its rounds say {value}"
            return


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME)
