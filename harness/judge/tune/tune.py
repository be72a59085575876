"""The tuner compiles, checks and times every variant of a kernel file, as a quick grading does."""

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from pydantic import NonNegativeInt, PositiveInt

from harness import __version__
from harness.judge.grade import Lock, Part, run
from harness.judge.grading import Grading, GradingOptions
from harness.judge.progress import Progress
from harness.judge.session import Session
from harness.judge.stages.compile import await_machine_code, compile_submission, disassemble, load
from harness.judge.stages.measure import impossible
from harness.judge.stages.outcomes import Ended
from harness.judge.stages.rounds import QUICK, Measuring, load_kernel, timed_rounds
from harness.judge.stages.score import score
from harness.judge.stages.verify import start_references, verify
from harness.judge.tune.tunable import Setting, find_tunables
from harness.protocol.report import (
    Accepted,
    DeviceInfo,
    DisassembledKernel,
    JudgeError,
    KernelFacts,
    Outcome,
    Score,
    Stage,
    Submission,
    TimeLimit,
    Unscored,
    Value,
    score_of,
)

MAX_VARIANTS = 100
"""The most variants that are tried, unless another number is asked for."""


class Variant(Value):
    """One setting of the tuned constants, and its result."""

    setting: Setting
    outcome: Outcome
    kernel: DisassembledKernel | KernelFacts | None = None
    """The facts of the kernel; None if it did not compile."""

    @property
    def score(self) -> Score | None:
        return score_of(self.outcome)


class Tuning(Value):
    """The result of a tuning. Its times are those of quick gradings and are never ranked."""

    judge: str
    created: datetime
    seed: NonNegativeInt
    """The seed of the inputs and of the sample."""
    submission: Submission
    device: DeviceInfo
    possible: PositiveInt
    """The number of variants that the file allows."""
    planned: PositiveInt
    """The number of variants that were to be tried: at most the limit."""
    variants: tuple[Variant, ...]
    """The variants that were tried, the file as written first; fewer after an interruption."""

    @property
    def original(self) -> Variant | None:
        return self.variants[0] if self.variants else None

    @property
    def best(self) -> Variant | None:
        """The variant with the highest score."""
        scored = [(variant.score.ratio, variant) for variant in self.variants if variant.score]
        return max(scored, key=lambda pair: pair[0])[1] if scored else None

    @property
    def best_source(self) -> str | None:
        """The file with the best values."""
        if self.best is None:
            return None
        return find_tunables(self.submission.source).source(self.best.setting)


def tune(
    submission: Submission,
    session: Session,
    progress: Progress,
    options: GradingOptions = GradingOptions(quick=True),
    limit: int = MAX_VARIANTS,
    trying: Callable[[Setting], None] = lambda _: None,
    tried: Callable[[Variant], None] = lambda _: None,
) -> Tuning:
    """Try the variants of one kernel file; an interruption ends it with the variants so far.

    limit: the most variants to try. trying, tried: called before and after each variant. Raises
    UsageError if there is nothing to tune, or the GPU is in use.
    """
    seed = secrets.randbits(48) if options.seed is None else options.seed
    tunables = find_tunables(submission.source)
    settings = tunables.settings(limit, seed)
    for setting in settings:
        tunables.source(setting)  # raises where a launch line has no value
    options = replace(options, seed=seed)
    variants: list[Variant] = []

    def judged(setting: Setting) -> Variant:
        source = tunables.source(setting)
        variant = submission.model_copy(update={"source": source})
        grading = Grading(variant, session, options, progress)
        outcome = run(grading, _PARTS, own_processes=False)
        assert outcome is not None, "the last part has one"
        return Variant(setting=setting, outcome=outcome, kernel=grading.facts)

    with session.exclusive_lock(progress):
        with suppress(KeyboardInterrupt):  # the caller sees that fewer were tried than planned
            for setting in settings:
                trying(setting)
                variant = judged(setting)
                if variants and _may_be_a_worker_limit(variant.outcome):
                    # A worker's limits of CPU time and memory hold for its whole life.
                    session.renew()
                    variant = judged(setting)
                variants.append(variant)
                tried(variant)
        return Tuning(
            judge=__version__,
            created=datetime.now(UTC).replace(microsecond=0),
            seed=seed,
            submission=submission,
            device=session.info,
            possible=tunables.count,
            planned=len(settings),
            variants=tuple(variants),
        )


def _verify(grading: Grading) -> None:
    """Verify a variant; sanitizers, which might say more of what is wrong, do not run."""
    verify(grading)
    if grading.failure is not None:
        raise Ended(grading.failure.outcome)


def _time(grading: Grading) -> None:
    """Raise Ended with the score of a correct variant."""
    session, timing = grading.session, grading.session.timing
    if timing is None:
        unscored = Unscored(reason="device", message="scores come from a GPU")
        raise Ended(Accepted(score=unscored))
    disassemble(grading)
    assert grading.disassembled is not None
    grading.progress.begin(Stage.MEASURE, None)
    load_kernel(timing, grading.kernel)
    shape = grading.problem.ranked.shape
    measuring = Measuring(timing, grading.problem, shape, grading.options.seconds)
    timed = timed_rounds(measuring, QUICK, grading.progress)
    result = score(timed.rounds, session.info, shape)
    too_fast = impossible(result, session.info, grading.disassembled.kernel)
    raise Ended(too_fast or Accepted(score=result))


_PARTS = (
    Part(compile_submission, Stage.COMPILE, Lock.NONE),
    Part(load, Stage.COMPILE, Lock.NONE),
    Part(await_machine_code, Stage.COMPILE, Lock.NONE),
    Part(start_references, Stage.VERIFY, Lock.NONE),
    Part(_verify, Stage.VERIFY, Lock.NONE),
    Part(_time, Stage.MEASURE, Lock.NONE),
)
"""A quick grading without sanitizers, inside of the tuner's exclusive lock."""


def _may_be_a_worker_limit(outcome: Outcome) -> bool:
    return isinstance(outcome, JudgeError) or (
        isinstance(outcome, TimeLimit) and outcome.stage is Stage.COMPILE
    )
