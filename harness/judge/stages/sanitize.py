"""Sanitize: memcheck, racecheck, initcheck and synccheck on awkward shapes that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from harness.devices.findings import merged
from harness.judge.progress import Progress, Silent
from harness.judge.stages import interim
from harness.judge.stages.outcomes import launch_outcome
from harness.judge.stages.verify import wrong_answer
from harness.protocol.compiler import Kernel
from harness.protocol.device import (
    BackgroundSanitizer,
    BeginSanitizing,
    Device,
    LaunchInputs,
    Refusal,
    Sanitize,
    Sanitized,
)
from harness.protocol.report import (
    Counterexample,
    Finding,
    Hazard,
    JudgeError,
    MemoryFault,
    Outcome,
    Race,
    Rule,
    RuleViolation,
    Sanitizing,
    Stage,
    Tool,
    ToolRun,
)
from harness.protocol.request import Fault
from problem.cases import (
    CASES_VERSION,
    CHANGING_SCALE,
    INTEGERS,
    NORMAL,
    RANKED,
    UNIFORM,
    Case,
    Shape,
    small_cases,
)
from problem.launcher import Clusters, LaunchLine
from problem.reference import compare

SMALL_FLOP = 1 << 26
"""A larger case takes an instrumented kernel minutes on a CPU."""

EXTRA_FLOP = 1 << 23
"""Of the cases of verification that are sanitized, too: no more than the others take."""

MAX_EDGE = 512
"""Of a tile that the shapes go around. A kernel whose launch line says more, only asks for few
blocks and shares the work out among them itself."""

HANG_SECONDS = 2.0
"""A barrier that some threads missed shows at once."""

CPU_DEVICE = "the CPU device"

_RACES = (Hazard.RACE, Hazard.DIVERGENT_BARRIER, Hazard.DEADLOCK)

_INPUTS = (UNIFORM, NORMAL, INTEGERS, CHANGING_SCALE)


@dataclass(frozen=True, slots=True)
class SanitizerResults:
    """What all programs found together."""

    programs: tuple[Sanitizing, ...]
    findings: tuple[Finding, ...]
    outcome: Outcome | None
    """The verdict for what the launches did, where no finding says more."""


def sanitizer_cases(launch: LaunchLine, seed: int, *, quick: bool) -> tuple[Case, ...]:
    """Shapes that take a kernel through its edges and, in more than one block, its inside: drawn
    from ranges, so that no kernel can tell by its size that it is watched."""
    generator = np.random.default_rng([seed, CASES_VERSION, 2])

    def between(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    rows, columns = (
        min(max(16, size), MAX_EDGE) for size in (launch.tile_rows, launch.tile_columns)
    )
    shapes = [
        Shape(between(2, 40), between(17, 70), between(2, 40)),
        Shape(rows + between(1, 31), 2 * between(16, 50) + 1, columns + between(1, 31)),
    ]
    if not quick:
        aligned = Shape(rows * between(1, 2), 16 * between(2, 6), columns * between(1, 2))
        shapes.insert(1, aligned)
        shapes.append(Shape(rows + 4 * between(1, 8), 4 * between(8, 20), columns))
    inputs = generator.choice(_INPUTS, len(shapes))
    cases = tuple(Case(shape, str(way)) for shape, way in zip(shapes, inputs, strict=True))
    return cases if quick else (*cases, *small_cases(seed, 2, EXTRA_FLOP))


def ranked_sample(launch: LaunchLine, seed: int) -> LaunchInputs:
    """The first blocks of the ranked size, and others that nobody knows: a kernel may forget a
    barrier there alone. For the CPU device, which need not run the whole grid."""
    generator = np.random.default_rng([seed, CASES_VERSION, 7])
    shape = RANKED.shape
    clusters = Clusters(launch.grid(shape.M, shape.K), launch.cluster)
    columns, rows, _ = clusters.sizes
    chosen = {0, int(generator.integers(columns * rows))}
    A, B = Case(shape, str(generator.choice(_INPUTS))).draw(seed)
    blocks = tuple(sorted(block for number in chosen for block in clusters.blocks(number)))
    return LaunchInputs(shape=shape, A=A, B=B, blocks=blocks)


def mid_size_case(seed: int) -> Case:
    """For the tools of a GPU, on which an instrumented kernel takes not long."""
    generator = np.random.default_rng([seed, CASES_VERSION, 3])
    M, K = (int(size) for size in generator.integers(513, 1000, 2))
    return Case(Shape(M, int(generator.integers(17, 49)), K))


def tools_of_a_grading(*, quick: bool, alone: bool) -> tuple[Tool, ...]:
    """alone: the CPU device is, for which one launch serves all tools."""
    return (Tool.MEMCHECK, Tool.RACECHECK) if quick and not alone else tuple(Tool)


Begun = Future[Sanitized | Refusal | Fault]
"""What the CPU device is at."""


def begin_beside(
    beside: BackgroundSanitizer, kernel: Kernel, seed: int, *, seconds: float
) -> Begun:
    """Let the CPU device begin, before the GPU is free, with what it is asked in a full grading
    where nothing went wrong."""
    cases = sanitizer_cases(kernel.launch, seed, quick=False)
    sample = ranked_sample(kernel.launch, seed)
    return Watching(seed, tuple(Tool), seconds, Silent()).begin(beside, kernel, cases, sample)


def begin_on_device(
    device: Device, kernel: Kernel, seed: int, *, quick: bool, seconds: float
) -> None:
    """Let the tools of a GPU begin with what they are asked where nothing goes wrong, while it
    verifies. Where something does, that is asked for instead."""
    watching = Watching(seed, tools_of_a_grading(quick=quick, alone=False), seconds, Silent())
    cases = _on_gpu(sanitizer_cases(kernel.launch, seed, quick=quick), seed, quick)
    device.ask(BeginSanitizing(sanitize=watching.request(cases), seconds=seconds))


def _on_gpu(cases: tuple[Case, ...], seed: int, quick: bool) -> list[Case]:
    """The smallest first: the first error ends a tool's process, and where a hundred thousand
    threads are wrong at once, memcheck is at work for a minute."""
    every = cases if quick else (*cases, mid_size_case(seed))
    return sorted(every, key=lambda case: case.shape.flop)


def sanitize(
    device: Device,
    beside: BackgroundSanitizer | None,
    kernel: Kernel,
    seed: int,
    *,
    quick: bool,
    failed: Case | None,
    seconds: float,
    progress: Progress,
    begun: Begun | None = None,
) -> Watching | Outcome:
    """Run the tools of the device, and of the CPU device beside a GPU, whose results may be waited
    for when others have the GPU.

    beside: sanitizes at the same time; in a quick grading only where something is wrong, or where a
    tool of the device does not work. failed: where verification went wrong; it is sanitized first.
    seconds: limit for one device. begun: what begin_beside has begun.
    """
    tools = tools_of_a_grading(quick=quick, alone=beside is None)
    cases = sanitizer_cases(kernel.launch, seed, quick=quick)
    if failed is not None and failed.shape.flop <= SMALL_FLOP:
        cases = (failed, *cases)
    progress.begin(Stage.SANITIZE, None)
    progress.step(", ".join(tools))
    watching = Watching(seed, tools, seconds, progress)
    at_ranked = failed is None or failed.shape == RANKED.shape
    samples = (ranked_sample(kernel.launch, seed),) if at_ranked and not quick else ()
    if begun is None and beside is not None and (failed is not None or not quick):
        begun = watching.begin(beside, kernel, cases, *samples)
    if beside is None:
        on_device: Sequence[Case] = cases
        answer = device.ask(watching.request(cases, *samples))
    else:
        on_device = _on_gpu(cases, seed, quick)
        answer = device.ask(watching.request(on_device))
    if isinstance(answer, Fault):
        return launch_outcome(answer, cases[0].shape, seconds, Stage.SANITIZE)
    watching.note(answer, on_device)
    if begun is None and beside is not None and watching.without_result():
        begun = watching.begin(beside, kernel, cases)
    if begun is not None:
        watching.beside = (begun, cases)
    return watching


class Watching:
    """The same cases under several programs, and what came of them."""

    def __init__(
        self, seed: int, tools: tuple[Tool, ...], seconds: float, progress: Progress
    ) -> None:
        self.seed = seed
        self.tools = tools
        self.seconds = seconds
        self.progress = progress
        self.programs: list[Sanitizing] = []
        self.findings: list[Finding] = []
        self.outcome: Outcome | None = None
        self.beside: tuple[Begun, Sequence[Case]] | None = None

    def request(self, cases: Sequence[Case], *samples: LaunchInputs) -> Sanitize:
        launches = []
        for case in cases:
            A, B = case.draw(self.seed)
            launches.append(LaunchInputs(shape=case.shape, A=A, B=B))
        launches += samples
        return Sanitize(launches=tuple(launches), tools=self.tools, seconds=self.seconds)

    def begin(
        self,
        beside: BackgroundSanitizer,
        kernel: Kernel,
        cases: Sequence[Case],
        *samples: LaunchInputs,
    ) -> Begun:
        beside.load(kernel)
        return beside.sanitize(self.request(cases, *samples))

    def note(self, answer: Sanitized | Refusal | Fault, cases: Sequence[Case]) -> None:
        if not isinstance(answer, Sanitized):
            self.programs.append(_unavailable(self.tools, answer.message))
            return
        shapes = tuple(case.shape for case in cases)
        program = Sanitizing(program=answer.program, shapes=shapes, tools=answer.runs)
        self.progress.found(interim.of_sanitizing(program, merged(answer.findings)))
        self.programs.append(program)
        self.findings += answer.findings
        self.outcome = self.outcome or self._outcome(answer, cases)

    def without_result(self) -> list[Tool]:
        """The tools that no program has run to the end."""
        ran = {
            run.tool
            for program in self.programs
            for run in program.tools
            if run.status != "unavailable"
        }
        return [tool for tool in self.tools if tool not in ran]

    def results(self) -> SanitizerResults:
        """With those of the CPU device, once it has them."""
        if self.beside is not None:
            begun, cases = self.beside
            self.progress.step(CPU_DEVICE)
            self.note(begun.result(), cases)
        outcome, missing = self.outcome, self.without_result()
        if outcome is None and not self.findings and missing:
            outcome = JudgeError(
                stage=Stage.SANITIZE,
                message=f"no sanitizer could run {missing[0]}: {self._why(missing[0])}",
            )
        return SanitizerResults(tuple(self.programs), merged(self.findings), outcome)

    def _why(self, tool: Tool) -> str:
        said = (
            f"{program.program} says {run.message}"
            for program in self.programs
            for run in program.tools
            if run.tool is tool and run.message
        )
        return "; ".join(said) or "it was not asked"

    def _outcome(self, answer: Sanitized, cases: Sequence[Case]) -> Outcome | None:
        """What the launches did, as in verification: C and the inputs are looked at here, too."""
        for product in answer.products:
            case = cases[product.launch]
            if product.changed_inputs:
                names = " and ".join(product.changed_inputs)
                return RuleViolation(
                    stage=Stage.SANITIZE,
                    rule=Rule.INPUTS_CHANGED,
                    message=f"the kernel changed {names} at {case}; inputs are not to be written",
                )
            A, B = case.draw(self.seed)
            comparison = compare(A, B, product.C, tolerance=case.tolerance)
            if not comparison.passed:
                return wrong_answer(Stage.SANITIZE, case, self.seed, A, B, product.C, comparison)
        for stopped in answer.stopped:
            shape = cases[stopped.launch].shape
            return launch_outcome(stopped.fault, shape, self.seconds, Stage.SANITIZE)
        return None


def diagnose_hang(
    beside: BackgroundSanitizer, kernel: Kernel, case: Case, seed: int
) -> MemoryFault | Race | None:
    """What keeps a launch from its end, if it is more than time: a barrier that only some threads
    reach, say. The GPU cannot tell; the CPU device sees each thread."""
    if case.shape.flop > SMALL_FLOP:
        return None
    watching = Watching(seed, tuple(Tool), HANG_SECONDS, Silent())
    answer = watching.begin(beside, kernel, [case]).result()
    return unsafe(answer.findings, None) if isinstance(answer, Sanitized) else None


def _unavailable(tools: Iterable[Tool], message: str) -> Sanitizing:
    return Sanitizing(
        program=CPU_DEVICE,
        shapes=(),
        tools=tuple(
            ToolRun(tool=tool, status="unavailable", seconds=0, message=message) for tool in tools
        ),
    )


def unsafe(
    findings: Sequence[Finding], counterexample: Counterexample | None
) -> MemoryFault | Race | None:
    """The verdict for findings: memory errors come first, for a race may follow from them, and
    barriers before the races that follow from those."""
    memory = [finding for finding in findings if finding.hazard not in _RACES]
    races = [finding for finding in findings if finding.hazard in _RACES]
    races.sort(key=lambda finding: finding.hazard is Hazard.RACE)
    first = [f for f in memory if f.hazard is not Hazard.UNINITIALISED] or races or memory
    if not first:
        return None
    kind = Race if first is races else MemoryFault
    others = [finding for finding in findings if finding not in first]
    return kind(
        stage=Stage.SANITIZE,
        message=first[0].message,
        findings=(*first, *others),
        counterexample=counterexample,
    )
