"""Tuning on several GPUs of one machine at once: one queue of variants for all.

Two GPUs of one model differ by more than two good variants do. So the variants that come near the
best are timed again on one GPU, and the best of those is chosen.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

from harness.judge.progress import Silent, Stoppable, Stopped
from harness.judge.session import Session
from harness.judge.tune.tunable import Setting
from harness.judge.tune.tune import Planned, Trial, Tuning, TuningOptions, Variant, Watcher, plan
from harness.protocol.report import Stage, Submission

NEAR = 0.03
"""How near a score must be to the best to be timed again: GPUs of one model differ by less."""

MOST_AGAIN = 10


def tune_on(
    submission: Submission, sessions: Sequence[Session], options: TuningOptions, watcher: Watcher
) -> Tuning:
    """Tune with a session on each GPU; an interruption ends it with the variants so far.

    Raises UsageError.
    """
    planned = plan(submission, options)
    watcher.plan(len(planned.settings), planned.tunables.count, planned.seed)
    tried: dict[int, Variant] = {}
    try:
        _try_all(planned, sessions, watcher, tried)
        tried |= _again(planned, sessions[0], watcher, tried)
    except KeyboardInterrupt:
        if 1 not in tried:  # the file as it stands comes first, or nothing does
            tried.clear()
    return planned.tuning(sessions[0].info, [tried[number] for number in sorted(tried)])


def _try_all(
    planned: Planned, sessions: Sequence[Session], watcher: Watcher, tried: dict[int, Variant]
) -> None:
    jobs: queue.SimpleQueue[tuple[int, Setting]] = queue.SimpleQueue()
    for job in enumerate(planned.settings, start=1):
        jobs.put(job)
    done: queue.SimpleQueue[tuple[int, Variant] | BaseException | None] = queue.SimpleQueue()
    stopping = threading.Event()

    def serve(session: Session) -> None:
        progress = Stoppable(Silent(), stopping)
        try:
            with session.exclusive_lock(progress):
                trial = Trial(planned, session, progress)
                while True:
                    number, setting = jobs.get_nowait()
                    done.put((number, _on(session, trial, setting)))
        except (queue.Empty, Stopped):
            pass
        except BaseException as error:
            done.put(error)
        finally:
            done.put(None)

    threads = [threading.Thread(target=serve, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    at_work = len(threads)
    try:
        while at_work:
            match done.get():
                case None:
                    at_work -= 1
                case BaseException() as error:
                    raise error
                case number, variant:
                    tried[number] = variant
                    watcher.tried(number, variant)
    finally:
        stopping.set()
        if at_work:
            for session in sessions:
                session.renew()  # what hangs in a worker is not waited for
        for thread in threads:
            thread.join()


def _again(
    planned: Planned, session: Session, watcher: Watcher, tried: dict[int, Variant]
) -> dict[int, Variant]:
    """Time the best variants again on one GPU."""
    scores = {number: each.score.ratio for number, each in tried.items() if each.score}
    best = sorted(scores, key=lambda number: -scores[number])
    near = [number for number in best if scores[number] >= (1 - NEAR) * scores[best[0]]]
    if len(near) < 2:
        return {}
    found: dict[int, Variant] = {}
    with session.exclusive_lock(watcher):
        trial = Trial(planned, session, watcher)
        for number in near[:MOST_AGAIN]:
            setting = tried[number].setting
            watcher.trying(number, setting)
            watcher.begin(Stage.MEASURE, None)
            found[number] = _on(session, trial, setting)
            watcher.tried(number, found[number])
    return found


def _on(session: Session, trial: Trial, setting: Setting) -> Variant:
    return trial.judge(setting).model_copy(update={"gpu": session.info.uuid})
