"""Play-off: grade kernels, then time them together on one GPU after another until their order is
known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from harness import __version__
from harness.judge.grade import GradingOptions, grade
from harness.judge.progress import Progress
from harness.judge.session import Session
from harness.judge.stages.compile import compile_kernel, load_kernel
from harness.judge.stages.measure import MAX_LAUNCH_SECONDS
from harness.judge.stages.playoff import Ended, Game, Player, PlayOff, differences, play, settled
from harness.protocol.compiler import Compiled, Kernel
from harness.protocol.device import Ready
from harness.protocol.errors import JudgeFailure, UsageError
from harness.protocol.report import Report, Submission, Verdict
from problem.cases import CASES_VERSION

FEWEST_GPUS = 2
"""GPUs to play on if the machine has so many: one GPU cannot speak for its model."""

Opening = Callable[[str], AbstractContextManager[Session]]
"""Opens a session on the GPU with this UUID."""


def play_off(
    submissions: Sequence[Submission],
    gpus: Sequence[str],
    opening: Opening,
    progress: Progress,
    graded: Callable[[Report], None] = lambda _: None,
    options: GradingOptions = GradingOptions(),
) -> PlayOff:
    """Order at least two kernels. graded: gets the report of each kernel before the play-off.

    Raises UsageError if a kernel is not accepted, and JudgeFailure if the play-off fails.
    """
    games: list[Game] = []
    players: tuple[Player, ...] = ()
    for gpu in gpus:
        with opening(gpu) as session:
            if not players:
                players = _qualified(submissions, session, progress, graded, options)
            games.append(play_game(submissions, session, progress, options))
        if len(games) >= FEWEST_GPUS and settled(differences(games)):
            break
    return PlayOff(
        judge=__version__,
        cases=CASES_VERSION,
        created=datetime.now(UTC).replace(microsecond=0),
        players=players,
        games=tuple(games),
        differences=differences(games),
    )


def _qualified(
    submissions: Sequence[Submission],
    session: Session,
    progress: Progress,
    graded: Callable[[Report], None],
    options: GradingOptions,
) -> tuple[Player, ...]:
    """Grade each kernel; only accepted kernels may play."""
    players: list[Player] = []
    for submission in submissions:
        report = grade(submission, session, options, progress)
        graded(report)
        if report.verdict is not Verdict.ACCEPTED or report.score is None or report.kernel is None:
            why = getattr(report.outcome, "message", "it has no score")
            raise UsageError(f"{submission.name} cannot play: {report.verdict.value}: {why}")
        code = report.kernel.program_sha256
        assert code is not None, "this judge's reports have it"
        same = [player.name for player in players if player.code == code]
        if same:
            raise UsageError(f"{submission.name} and {same[0]} are one program; leave one out")
        players.append(
            Player(
                name=submission.name, author=submission.author, sha256=submission.sha256, code=code
            )
        )
    return tuple(players)


def play_game(
    submissions: Sequence[Submission],
    session: Session,
    progress: Progress,
    options: GradingOptions = GradingOptions(),
) -> Game:
    """Time accepted kernels together on one GPU. Raises JudgeFailure or UsageError."""
    kernels = [_compiled(submission, session) for submission in submissions]
    with session.exclusive_lock(progress), session.timing_of_each(len(kernels)) as workers:
        for submission, kernel, each in zip(submissions, kernels, workers, strict=True):
            ready = load_kernel(each.kernel, kernel)
            if not isinstance(ready, Ready):
                raise _failure(submission, session, getattr(ready, "message", ready.verdict.value))
        seconds = min(options.seconds, MAX_LAUNCH_SECONDS)
        game = play(workers, session.info, seconds=seconds, progress=progress)
    if isinstance(game, Ended):
        message = getattr(game.outcome, "message", game.outcome.verdict.value)
        raise _failure(submissions[game.player], session, message)
    return game


def _compiled(submission: Submission, session: Session) -> Kernel:
    found = compile_kernel(session.compiler, submission.source, session.arch)
    if not isinstance(found, Compiled):
        message = getattr(found, "message", found.verdict.value)
        raise _failure(submission, session, message)
    return found.kernel


def _failure(submission: Submission, session: Session, message: str) -> JudgeFailure:
    gpu = session.info.uuid or session.info.name
    return JudgeFailure(
        f"the play-off ended: {submission.name}, which had been accepted, on {gpu}: {message}"
    )
