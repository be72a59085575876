"""The report: verdicts and everything else that a grading found, as typed values; JSON in and out.

A value is written once and shown many ways. A verdict decides which fields exist: an accepted
report has a score or says why not, a wrong answer has a counterexample. `Outcome` is the verdict
with these fields, and `Report`, at the end, is the whole.
"""

import platform
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    model_validator,
)

from harness import __version__
from problem.cases import Case, Shape
from problem.grades import Errors, Grade
from problem.launcher import LaunchLine


class Value(BaseModel):
    """A frozen value that goes to JSON and back without loss.

    NaN and infinity are written as strings, bytes as base64.
    """

    model_config = ConfigDict(
        frozen=True,
        defer_build=True,  # a command and a worker use few of these
        extra="forbid",
        ser_json_inf_nan="strings",
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )


def _without(*obsolete: str) -> Any:
    """Return a validator that drops fields which only values of earlier judges have."""

    def drop(cls: type[Value], read: Any) -> Any:
        if not isinstance(read, dict):
            return read
        return {name: value for name, value in read.items() if name not in obsolete}

    return model_validator(mode="before")(drop)


class Verdict(StrEnum):
    ACCEPTED = "accepted"
    COMPILE_ERROR = "compile-error"
    WRONG_ANSWER = "wrong-answer"
    MEMORY_ERROR = "memory-error"
    RACE = "race"
    RUNTIME_ERROR = "runtime-error"
    TIME_LIMIT = "time-limit"
    RULE_VIOLATION = "rule-violation"
    UNSUPPORTED = "unsupported"
    """No judgement: this device cannot run the kernel, and that is not the submission's fault."""
    JUDGE_ERROR = "judge-error"


class Stage(StrEnum):
    READ = "read"
    COMPILE = "compile"
    VERIFY = "verify"
    SANITIZE = "sanitize"
    MEASURE = "measure"


RunStage = Literal[Stage.VERIFY, Stage.SANITIZE, Stage.MEASURE]
"""The stages in which a kernel runs."""


# ---------------------------------------------------------------------------------- submission


class Diagnostic(Value):
    """A message of a reader or the compiler about the source. Lines and columns count from 1."""

    severity: Literal["error", "warning", "note"]
    message: str
    line: PositiveInt | None = None
    column: PositiveInt | None = None


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Submission(Value):
    """One kernel file."""

    name: str
    author: str | None
    sha256: Sha256
    source: str


# -------------------------------------------------------------------------------------- kernel


class Resources(Value):
    """The resources of one launch, per thread or per block, from ptxas: those of the kernel and the
    functions that it can call."""

    registers: NonNegativeInt
    stack_bytes: NonNegativeInt
    spill_store_bytes: NonNegativeInt
    spill_load_bytes: NonNegativeInt
    static_shared_bytes: NonNegativeInt
    dynamic_shared_bytes: NonNegativeInt

    @property
    def shared_bytes(self) -> int:
        return self.static_shared_bytes + self.dynamic_shared_bytes


class Occupancy(Value):
    """How many blocks of 16×16 threads fit on one multiprocessor, and what stops the next one."""

    blocks: NonNegativeInt
    warps: NonNegativeInt
    max_warps: PositiveInt
    limited_by: Literal["registers", "shared memory", "threads", "blocks"]

    @property
    def fraction(self) -> float:
        return self.warps / self.max_warps


class Badge(StrEnum):
    CUDA_CORES = "cuda-cores"
    TENSOR_CORES = "tensor-cores"
    DEFAULT_LAUNCH = "default-launch"
    DECLARED_LAUNCH = "declared-launch"


class CodeLine(Value):
    """The machine code of one source line: how often each opcode, with its modifiers, stands
    in the kernel's machine code.

    instructions: the first of them, of those in loops that compute where it has such, as the
        disassembler writes them; none in earlier reports.
    """

    line: PositiveInt
    opcodes: dict[str, PositiveInt]
    instructions: tuple[str, ...] = ()


class Producer(StrEnum):
    """The source of a register's value for which an instruction waits."""

    ARITHMETIC = "arithmetic"
    SPECIAL = "special function"
    FP64 = "FP64"
    TENSOR = "tensor core"
    SHARED = "shared memory"
    LOCAL = "local memory"
    GLOBAL = "global memory"


class Wait(NamedTuple):
    """One instruction of a loop that needs the result of another, which was issued before it."""

    producer: Producer
    issued: int
    """Index of the producer in the loop; negative where it stands in an earlier iteration."""
    used: int
    line: int | None = None
    """The source line of a load from global memory."""


class CodeLoop(Value):
    """An innermost loop of the machine code, and the source lines that it came from."""

    first_line: PositiveInt | None
    last_line: PositiveInt | None
    opcodes: dict[str, PositiveInt]
    waits: tuple[Wait, ...] = ()
    """The waits that can delay a warp, in the order of use; empty in reports older than this."""
    issue_clocks: NonNegativeInt = 0
    """Clocks that a scheduler takes to issue one iteration of one warp, as the banks of registers
    permit; 0 in reports older than this."""
    loads_around: tuple[dict[int, PositiveInt], ...] = ()
    """Loads from global memory in the loop around this one, by source line: one entry for those
    that a warp waits for together."""

    @property
    def source_lines(self) -> range:
        """The source lines from the first to the last; none where they are not known."""
        return range(self.first_line or 0, (self.last_line or -1) + 1)


class KernelFacts(Value):
    """The facts about every kernel that compiles."""

    _read = _without("code_sha256")

    program_sha256: Sha256 | None = None
    """The hash of the program that ran, in PTX without lines and with its names numbered, and of
    its launch line. It tells one kernel from another. None in older reports."""
    arch: str
    launch: LaunchLine
    resources: Resources
    occupancy: Occupancy


class DisassembledKernel(KernelFacts):
    """The facts about a kernel whose machine code was read: one that is correct and safe so far, or
    that is explained."""

    badges: tuple[Badge, ...]
    """The badge of the cores, then that of the launch. The first is missing where the machine code
    could not be read."""
    instructions: dict[str, PositiveInt]
    """How often each opcode stands in the machine code (static, not executed); empty where it
    could not be read."""
    lines: tuple[CodeLine, ...] = ()
    loops: tuple[CodeLoop, ...] = ()


# -------------------------------------------------------------------------------------- device


class DeviceKind(StrEnum):
    CUDA = "cuda"
    CPU = "cpu"


class DeviceInfo(Value):
    """The device that ran the kernel."""

    _read = _without("memory_bytes")

    kind: DeviceKind
    name: str
    arch: str
    """The architecture to compile for, such as sm_90a."""
    uuid: str | None = None
    """The GPU of the machine, as NVIDIA's tools name it."""
    driver: str | None = None
    cuda_runtime: str | None = None
    baseline_version: str | None = Field(
        default=None, validation_alias=AliasChoices("baseline_version", "cublas")
    )
    """Version of the baseline's library. Its name in older reports was `cublas`."""
    multiprocessors: PositiveInt | None = None
    max_clock_mhz: PositiveInt | None = None
    l2_bytes: PositiveInt | None = None
    fp32_peak_tflops: float | None = None
    """Multiprocessors × FP32 lanes × 2 (fused multiply-add) × highest clock."""
    memory_gb_per_s: float | None = None
    """Peak of the device memory: bus width in bytes × memory clock × 2 (double data rate)."""
    notes: tuple[str, ...] = ()
    """Sentences on what makes times on this GPU less steady than elsewhere."""


# ------------------------------------------------------------------------------- wrong answers


class Element(Value):
    row: NonNegativeInt
    column: NonNegativeInt
    expected: float
    found: float


class BlockMap(Value):
    """The wrong blocks of the output: `#` wrong, `.` right, one string for each row of blocks.

    scale: blocks along each side of a character (1 unless the output is too large to draw).
    """

    rows: tuple[str, ...]
    scale: PositiveInt = 1


class Counterexample(Value):
    """The first case that went wrong, so that it can be replayed."""

    case: Case
    seed: NonNegativeInt
    error: float
    """The error of the worst block; for exact inputs the largest |C - R|."""
    worst_block: tuple[NonNegativeInt, NonNegativeInt]
    """Row and column of the block, counted in 16×16 blocks."""
    wrong_blocks: NonNegativeInt
    blocks: PositiveInt
    elements: Annotated[tuple[Element, ...], Field(min_length=1, max_length=8)]
    map: BlockMap
    pattern: str
    """The likely meaning of the map, in one sentence."""


# ------------------------------------------------------------------------------ unsafe kernels


class Tool(StrEnum):
    MEMCHECK = "memcheck"
    RACECHECK = "racecheck"
    INITCHECK = "initcheck"
    SYNCCHECK = "synccheck"


class Hazard(StrEnum):
    OUT_OF_BOUNDS = "out-of-bounds"
    MISALIGNED = "misaligned"
    UNINITIALISED = "uninitialised"
    RACE = "race"
    DIVERGENT_BARRIER = "divergent-barrier"
    EARLY_RETURN = "early-return"
    """Threads had returned before a barrier: allowed, but listed where it may explain an error."""
    DEADLOCK = "deadlock"


class Array(StrEnum):
    """Memory that is no buffer."""

    SHARED = "shared memory"
    LOCAL = "local memory"
    MODULE = "module memory"


class Place(Value):
    """A place in the source, and the thread that was there. caller: the line of the call, if the
    line is of a function that the compiler inlined at several lines."""

    line: PositiveInt | None = None
    caller: PositiveInt | None = None
    thread: tuple[NonNegativeInt, NonNegativeInt, NonNegativeInt] | None = None
    block: tuple[NonNegativeInt, NonNegativeInt, NonNegativeInt] | None = None


class Finding(Value):
    """One thing that a sanitizer tool, a guard or the device itself found."""

    tool: Tool
    hazard: Hazard
    message: str
    """One sentence for people. The other fields have most of its facts."""
    at: Place
    other: Place | None = None
    """The second access of a race."""
    access: Literal["read", "write", "atomic"] | None = None
    size: PositiveInt | None = None
    """Bytes accessed."""
    array: Annotated[str, Field(pattern=r"^[\w ]{1,64}$")] | None = None
    """An `Array`, or the name of a buffer in the kernel's signature."""
    row: int | None = None
    column: int | None = None
    bytes_outside: NonNegativeInt | None = None
    """Bytes between the access and the nearest end of the array."""
    shape: Shape | None = None
    occurrences: PositiveInt = 1


# ------------------------------------------------------------------------------------ outcomes


class Score(Value):
    """The time of the baseline divided by that of the submission: the median of the rounds' ratios,
    and its 95 % interval."""

    ratio: float
    low: float
    high: float
    kernel_ms: float
    baseline_ms: float
    tflops: float
    slower_on: str | None = None
    """Set where the kernel is slower on one kind of inputs: the score is that of these rounds."""
    peak_share: float | None
    """Share of the GPU's FP32 peak at its highest clock."""
    ratio_by_cycles: float | None = None
    """The median of the ratios in cycles of the multiprocessors, in which a lowered clock does not
    show. Where it is the lower one by more than 1 %, it is the score."""


class Unscored(Value):
    """Why an accepted kernel has no score."""

    reason: Literal["device", "throttled", "clocks"]
    message: str


class Accepted(Value):
    verdict: Literal[Verdict.ACCEPTED] = Verdict.ACCEPTED
    score: Score | Unscored

    @property
    def message(self) -> str:
        """The reason why it has no score; empty if it has one."""
        return self.score.message if isinstance(self.score, Unscored) else ""


class CompileError(Value):
    """The file cannot be read as a submission, or does not compile."""

    verdict: Literal[Verdict.COMPILE_ERROR] = Verdict.COMPILE_ERROR
    stage: Literal[Stage.READ, Stage.COMPILE]
    message: str
    diagnostics: tuple[Diagnostic, ...] = ()


class WrongAnswer(Value):
    verdict: Literal[Verdict.WRONG_ANSWER] = Verdict.WRONG_ANSWER
    stage: RunStage
    message: str
    counterexample: Counterexample


class MemoryFault(Value):
    verdict: Literal[Verdict.MEMORY_ERROR] = Verdict.MEMORY_ERROR
    stage: RunStage
    message: str
    findings: tuple[Finding, ...] = ()
    """Empty only where the GPU itself stopped the kernel and gave no place."""
    counterexample: Counterexample | None = None
    """The error that it caused in the result, if verification found one."""


class Race(Value):
    verdict: Literal[Verdict.RACE] = Verdict.RACE
    stage: RunStage
    message: str
    findings: Annotated[tuple[Finding, ...], Field(min_length=1)]
    counterexample: Counterexample | None = None


class RuntimeFault(Value):
    verdict: Literal[Verdict.RUNTIME_ERROR] = Verdict.RUNTIME_ERROR
    stage: RunStage | Literal[Stage.COMPILE]
    message: str
    at: Place | None = None


class TimeLimit(Value):
    verdict: Literal[Verdict.TIME_LIMIT] = Verdict.TIME_LIMIT
    stage: RunStage | Literal[Stage.COMPILE]
    message: str
    seconds: float
    at: Place | None = None
    shape: Shape | None = None


class Rule(StrEnum):
    INPUTS_CHANGED = "inputs-changed"
    STALE_RESULT = "stale-result"
    IMPOSSIBLE_SCORE = "impossible-score"


class RuleViolation(Value):
    verdict: Literal[Verdict.RULE_VIOLATION] = Verdict.RULE_VIOLATION
    stage: Stage
    rule: Rule
    message: str


class Unsupported(Value):
    verdict: Literal[Verdict.UNSUPPORTED] = Verdict.UNSUPPORTED
    stage: Literal[Stage.COMPILE, Stage.VERIFY, Stage.SANITIZE]
    message: str
    instruction: str | None = None
    at: Place | None = None


class JudgeError(Value):
    """Our fault, never the submission's."""

    verdict: Literal[Verdict.JUDGE_ERROR] = Verdict.JUDGE_ERROR
    stage: Stage
    message: str
    details: str = ""


Outcome = Annotated[
    Accepted
    | CompileError
    | WrongAnswer
    | MemoryFault
    | Race
    | RuntimeFault
    | TimeLimit
    | RuleViolation
    | Unsupported
    | JudgeError,
    Field(discriminator="verdict"),
]


def score_of(outcome: Outcome) -> Score | None:
    if isinstance(outcome, Accepted) and isinstance(outcome.score, Score):
        return outcome.score
    return None


# -------------------------------------------------------------------------------------- stages


class CaseResult(Value):
    """One case that the kernel passed."""

    case: Case
    error: NonNegativeFloat
    """The error of the worst block; for exact inputs the largest |C - R|."""
    seconds: NonNegativeFloat = 0.0
    """The time of the launch. Committed reports do not have it."""
    sampled_blocks: PositiveInt | None = None
    """The number of blocks that were run and compared, where it was not the whole launch."""
    blocks: PositiveInt | None = None
    """The number of blocks of the whole launch, where only some were run."""


class Verification(Value):
    cases: tuple[CaseResult, ...]
    worst_error: NonNegativeFloat
    """The largest error of the cases that are not exact."""
    note: str | None = None
    """One sentence on what this device could not verify."""


class InputsAccuracy(Value):
    """How accurate the kernel is on one kind of inputs, next to a baseline."""

    inputs: str
    grade: Grade
    kernel: Errors
    baseline: Errors


class AccuracyAt(Value):
    """The accuracy of the kernel at one size."""

    shape: Shape
    baseline: str
    """The implementation with which it is compared."""
    grade: Grade
    results: tuple[InputsAccuracy, ...]


class Accuracy(Value):
    """How accurate the kernel is on structured inputs: the worst grade of all sizes."""

    grade: Grade
    sizes: tuple[AccuracyAt, ...]


class ToolRun(Value):
    """One sanitizer tool on all its shapes."""

    tool: Tool
    status: Literal["clean", "found", "dismissed", "unavailable"]
    """dismissed: another program rules out the races that it reported."""
    seconds: NonNegativeFloat
    message: str | None = None
    """Why it is unavailable, or why its findings are dismissed."""


class WatchedBlocks(Value):
    """How much a sanitizer ran of a launch that is too large for all tools."""

    blocks: PositiveInt
    """The number of blocks of the whole launch."""
    watched: NonNegativeInt
    """How many blocks all tools watched to their end."""
    bounded: NonNegativeInt
    """In how many blocks the bounds of every access were checked."""


class Sanitizing(Value):
    """One program's tools on small awkward shapes."""

    program: str
    """compute-sanitizer and its version, or the CPU device."""
    shapes: tuple[Shape, ...]
    tools: tuple[ToolRun, ...]
    ranked: WatchedBlocks | None = None
    """The blocks of the ranked size that were run, where this program ran some."""


class FirstLaunch(Value):
    """The costs that a program pays once, in milliseconds."""

    context_ms: NonNegativeFloat
    compile_ms: NonNegativeFloat
    module_load_ms: NonNegativeFloat
    first_allocation_ms: NonNegativeFloat
    first_launch_ms: NonNegativeFloat
    second_launch_ms: NonNegativeFloat


class HostMemoryKind(StrEnum):
    PINNED = "pinned"
    PAGEABLE = "pageable"


class HostMemory(Value):
    """All buffers of the ranked size in one kind of host memory: the inputs are copied to the
    device, and the output is copied back."""

    kind: HostMemoryKind
    allocate_ms: NonNegativeFloat
    fill_ms: NonNegativeFloat
    to_device_ms: NonNegativeFloat
    to_host_ms: NonNegativeFloat
    to_device_gb_per_s: NonNegativeFloat
    to_host_gb_per_s: NonNegativeFloat


class Round(Value):
    """One timed launch of the baseline and one of the kernel, on fresh inputs."""

    kernel_ms: NonNegativeFloat
    baseline_ms: NonNegativeFloat
    kernel_host_ms: NonNegativeFloat | None = None
    """The kernel's launch by the host's clock."""
    baseline_host_ms: NonNegativeFloat | None = None
    kernel_cycles: NonNegativeInt | None = None
    """The kernel's launch in cycles of the multiprocessors."""
    baseline_cycles: NonNegativeInt | None = None
    inputs: str = "uniform"
    """The kind of the inputs of both launches."""
    kernel_first: bool
    clock_mhz: NonNegativeInt
    power_w: NonNegativeFloat
    throttled: tuple[str, ...] = ()
    """Reasons that the driver gives for a lowered clock during the round."""
    clocks_differ: bool = False
    """The two clocks do not tell the same."""
    dropped: bool = False
    check: NonNegativeFloat
    """The error of the kernel's output, divided by the limit."""


class Steadiness(StrEnum):
    STEADY = "interval within the target"
    TIME = "time limit"


class InputsTime(Value):
    """How long the kernel takes on one kind of inputs."""

    inputs: str
    scored: bool
    launches: PositiveInt
    kernel_ms: NonNegativeFloat
    """The median."""
    ratio: NonNegativeFloat
    """The baseline's median over all rounds, over `kernel_ms`."""


class Sustained(Value):
    """Kernel and baseline, each launched back to back for some seconds, as a program does that
    multiplies all the time. Power may hold the clock down, which it does not in a single launch."""

    seconds: float
    """How long each of the two was launched."""
    kernel_ms: float
    """The time of one launch."""
    baseline_ms: float
    kernel_joules: NonNegativeFloat | None = None
    """The energy of one launch; None where the GPU does not count it."""
    baseline_joules: NonNegativeFloat | None = None

    @property
    def ratio(self) -> float:
        """The kernel's speed over the baseline's."""
        return self.baseline_ms / self.kernel_ms

    @property
    def kernel_watts(self) -> float | None:
        """The power that the GPU draws while the kernel runs."""
        return None if self.kernel_joules is None else self.kernel_joules / self.kernel_ms * 1e3

    @property
    def baseline_watts(self) -> float | None:
        """The power that the GPU draws while the baseline runs."""
        joules = self.baseline_joules
        return None if joules is None else joules / self.baseline_ms * 1e3


class SizeScore(Value):
    """The score at another size; it does not rank."""

    shape: Shape
    score: Score | Unscored


class Measurement(Value):
    _read = _without("warm_up_launches", "warm_up_seconds")

    rounds: tuple[Round, ...]
    stopped_by: Steadiness
    audit_error: NonNegativeFloat | None
    """The error of one timed launch, compared with the full product of the CPU; None in a quick
    grading."""
    first_launch: FirstLaunch
    host_memory: tuple[HostMemory, ...]
    pinning_pays_after: NonNegativeFloat | None
    """Round trips after which pinned memory has saved the time of its allocation; None where it
    never does, or was not measured."""
    sizes: tuple[SizeScore, ...] = ()
    """Scores at other sizes, where they were asked for."""
    by_inputs: tuple[InputsTime, ...] = ()
    """How long the kernel takes on each kind of inputs, the slowest first; for information."""
    sustained: Sustained | None = None
    """None in a quick grading."""


class LineCounters(Value):
    """The costs of one source line, summed over the counted blocks."""

    line: PositiveInt
    global_requests: NonNegativeInt = 0
    global_sectors: NonNegativeInt = 0
    global_min_sectors: NonNegativeInt = 0
    """Sectors that as many different bytes could lie in at best."""
    global_first_sectors: NonNegativeInt = 0
    """Sectors that no thread of their block had touched before: the others are read again."""
    global_new_sectors: NonNegativeInt = 0
    """Sectors that their warp had not touched among its latest 1024, which are as much as an L1
    cache has for one block of eight. Other warps may have."""
    global_passes: NonNegativeInt = 0
    """Cycles that the L1 cache takes for them: it looks up one line of 128 bytes a cycle."""
    copy_passes: NonNegativeInt = 0
    """The passes among these that asynchronous copies take. Their data then reaches shared
    memory, where the wavefronts are the same passes."""
    shared_requests: NonNegativeInt = 0
    shared_wavefronts: NonNegativeInt = 0
    shared_min_wavefronts: NonNegativeInt = 0
    """Wavefronts that the same requests could take at best."""
    instructions: NonNegativeInt = 0
    """How many instructions the threads executed."""
    warp_instructions: NonNegativeInt = 0
    """How many the warps executed: 32 threads share one, unless the warp diverged."""


class Counters(Value):
    """The memory accesses of some blocks, counted by the CPU device.

    A request is one warp's memory instruction. A sector is 32 bytes of global memory that it
    touches. A wavefront is one pass of the 32 banks of shared memory.
    """

    shape: Shape
    counted_blocks: PositiveInt
    blocks: PositiveInt
    blocks_depend: bool = False
    """Whether the blocks depend on one another. Then all were counted, and need not be equally
    long."""
    global_load_requests: NonNegativeInt
    global_load_sectors: NonNegativeInt
    global_store_requests: NonNegativeInt
    global_store_sectors: NonNegativeInt
    shared_load_requests: NonNegativeInt
    shared_load_wavefronts: NonNegativeInt
    shared_store_requests: NonNegativeInt
    shared_store_wavefronts: NonNegativeInt
    bank_conflicts: NonNegativeInt
    """Wavefronts beyond the fewest that the same requests could take."""
    flop: NonNegativeInt
    """Useful floating-point operations: 2·M·N·K over the counted blocks."""
    flop_per_global_byte: NonNegativeFloat
    divergent_branches: NonNegativeInt
    instructions: dict[str, NonNegativeInt]
    """Thread instructions executed, by PTX opcode."""
    warp_instructions: NonNegativeInt = 0
    lines: tuple[LineCounters, ...] = ()


MAX_PRINTED = 4096
"""How much a report keeps of what a kernel prints, in characters."""


class StageTime(Value):
    stage: Stage
    seconds: NonNegativeFloat


class Environment(Value):
    """The judge's own machine and tools."""

    judge: str
    cases: PositiveInt
    """CASES_VERSION: results of two versions are not comparable."""
    python: str
    system: str
    nvrtc: str | None = None
    isolation: tuple[str, ...] = ()
    """Restrictions by the operating system on the processes that compiled and ran the kernel."""

    @classmethod
    def here(cls, cases: int, **more: Any) -> Self:
        """Return that of this process. more: the fields that a machine does not give."""
        system = f"{platform.system()} {platform.release()} {platform.machine()}"
        python = platform.python_version()
        return cls(judge=__version__, cases=cases, python=python, system=system, **more)


class Signature(Value):
    """An Ed25519 signature of a report's text without this field."""

    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The public key."""
    value: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class Report(Value):
    """All that one grading found."""

    schema_version: Literal[1] = 1
    environment: Environment
    created: datetime
    seed: NonNegativeInt
    quick: bool
    """A sample of the cases and of the rounds: never ranked."""
    submission: Submission
    device: DeviceInfo | None
    outcome: Outcome
    diagnostics: tuple[Diagnostic, ...] = ()
    """Warnings of the reader and the compiler; the errors are in the outcome."""
    kernel: DisassembledKernel | KernelFacts | None = None
    verification: Verification | None = None
    accuracy: Accuracy | None = None
    """The accuracy, which a full grading of a correct kernel finds."""
    sanitizing: tuple[Sanitizing, ...] = ()
    """The findings of compute-sanitizer, if there is a GPU, and of the CPU device."""
    measurement: Measurement | None = None
    counters: Counters | None = None
    printed: str = ""
    """The beginning of what the kernel printed: shown as its words, never interpreted."""
    stages: tuple[StageTime, ...] = ()
    signature: Signature | None = None
    """The signature of the leaderboard whose judge wrote it."""

    @property
    def verdict(self) -> Verdict:
        return self.outcome.verdict

    @property
    def score(self) -> Score | None:
        return score_of(self.outcome)

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        if isinstance(self.outcome, Accepted):
            needed: dict[str, object] = {
                "device": self.device,
                "kernel": self.kernel if isinstance(self.kernel, DisassembledKernel) else None,
                "verification": self.verification,
                "sanitizing": self.sanitizing or None,
            }
            if self.score is not None:
                needed["measurement"] = self.measurement
            missing = [name for name, value in needed.items() if value is None]
            if missing:
                raise ValueError(f"an accepted report needs {', '.join(missing)}")
        return self
