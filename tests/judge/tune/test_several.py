"""Tuning on several GPUs, none of which is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from harness.judge.stages import rounds
from harness.judge.tune import several
from harness.judge.tune.several import tune_on
from harness.judge.tune.tune import Tuning, TuningOptions
from harness.protocol.errors import UsageError
from harness.protocol.report import Stage, Submission
from problem.problem import Problem
from tests.judge.stages.fakes import INFO, FakeSession
from tests.judge.tune.test_trials import CASE, SUBMISSION, Listener, Machine
from tests.waiting import PATIENCE

TWELVE = SUBMISSION.source.replace("// tune: 1 2 3", "// tune: 1 2 3 4 5 6 7 8 9 10 11 12")
MANY = SUBMISSION.model_copy(update={"source": TWELVE})


@pytest.fixture(autouse=True)
def few_and_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Problem, "cases", lambda *_, **how: [CASE])
    monkeypatch.setattr(rounds, "MIN_WARM_UP_SECONDS", 0.0)


def on(machine: Machine, uuid: str) -> FakeSession:
    info = INFO.model_copy(update={"uuid": uuid})
    return replace(machine.session, known=info)


def tuned(
    *machines: Machine, submission: Submission = MANY, listener: Listener | None = None
) -> Tuning:
    sessions = [on(machine, f"GPU-{number}") for number, machine in enumerate(machines)]
    options = TuningOptions(seed=5)
    return tune_on(submission, sessions, options, listener or Listener())


def rows(found: Tuning) -> list[int]:
    return [int(variant.setting["ROWS"]) for variant in found.variants]


def test_every_variant_is_tried_once_on_whichever_gpu_is_free() -> None:
    both = threading.Barrier(2)

    def busy() -> Machine:
        """It begins when the other does, too: neither does it all."""
        begun: list[int] = []

        def compiled(row: int) -> None:
            begun.append(row)
            if len(begun) == 1:
                both.wait(PATIENCE)

        return Machine(compiled)

    machines = busy(), busy()
    listener = Listener()
    found = tuned(*machines, listener=listener)
    assert rows(found) == list(range(1, 13)) and found.planned == 12
    assert {variant.gpu for variant in found.variants} == {"GPU-0", "GPU-1"}
    tried = sorted(listener.of("tried"), key=lambda each: each[1])
    assert tried == [("tried", n, found.variants[n - 1]) for n in range(1, 13)]
    assert listener.told[0] == ("plan", 12, 12, 5) and found.device.uuid == "GPU-0"
    assert [machine.turns for machine in machines] == [1, 1]


def test_variants_near_the_best_are_timed_again_on_one_gpu() -> None:
    """The second GPU is 2 % faster than its twin, so that its best is none."""
    slow = {row: 10.0 + row for row in range(1, 13)} | {3: 8.0, 5: 8.05}
    fast = {row: ms * 0.98 for row, ms in slow.items()}
    listener = Listener()
    found = tuned(Machine(ms=slow), Machine(ms=fast), listener=listener)
    again = listener.of("trying")
    assert again == [("trying", number, {"ROWS": number}) for _, number, _ in again]
    assert sorted(number for _, number, _ in again) == [3, 5]
    for each in again:
        assert listener.told[listener.told.index(each) + 1] == (Stage.MEASURE, None)
    assert listener.of("tried")[12:] == [
        ("tried", number, found.variants[number - 1]) for _, number, _ in again
    ]
    assert found.best is not None and found.best.setting == {"ROWS": 3}
    near = [variant for variant in found.variants if variant.setting["ROWS"] in (3, 5)]
    assert {variant.gpu for variant in near} == {"GPU-0"}
    assert [round(each.score.ratio, 2) for each in near if each.score] == [1.0, 0.99]


def test_an_interruption_ends_it_with_what_there_is() -> None:
    class Impatient(Listener):
        def tried(self, number: int, variant: Any) -> None:
            super().tried(number, variant)
            if len(self.of("tried")) == 4:
                raise KeyboardInterrupt

    machines = Machine(), Machine()
    found = tuned(*machines, listener=Impatient())
    assert len(found.variants) in (0, 4) and found.planned == 12
    assert not found.variants or found.variants[0].setting == {"ROWS": 1}
    assert all(machine.renewed for machine in machines), "what hangs is not waited for"


def test_a_gpu_that_is_taken_ends_it_with_a_sentence() -> None:
    @contextmanager
    def taken(_: str) -> Iterator[None]:
        raise UsageError("another grading has held this GPU")
        yield

    free, busy = Machine(), Machine()
    sessions = [on(free, "GPU-0"), replace(on(busy, "GPU-1"), lock=taken)]
    with pytest.raises(UsageError, match="another grading"):
        tune_on(MANY, sessions, TuningOptions(seed=5), Listener())


@pytest.mark.parametrize(
    ("near", "ms", "again"),
    [
        (0.03, {1: 8.0, 2: 8.2, 3: 8.3}, [1, 2]),  # 1, 0.976 and 0.964 times cuBLAS
        (0.03, {1: 4.0, 2: 5.0, 3: 6.0}, []),
        (0.0, {1: 8.0, 2: 8.0, 3: 9.0}, [1, 2]),
    ],
)
def test_near_the_best_is_by_its_score(
    near: float, ms: dict[int, float], again: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(several, "NEAR", near)
    listener, machine = Listener(), Machine(ms=ms)
    machine.table.noise = 0
    tuned(machine, submission=SUBMISSION, listener=listener)
    assert [number for _, number, _ in listener.of("trying")] == again


class Stopping(Listener):
    """Interrupts when the first variant has been tried."""

    def __init__(self, released: threading.Event) -> None:
        super().__init__()
        self.released = released

    def tried(self, number: int, variant: Any) -> None:
        super().tried(number, variant)
        self.released.set()
        raise KeyboardInterrupt


def test_the_files_own_setting_is_tried_first_or_nothing_is() -> None:
    found = tuned(Machine(), listener=Stopping(threading.Event()))
    assert rows(found) == [1]
    second, released = threading.Event(), threading.Event()

    def slow(row: int) -> None:
        if row == 1:
            second.set()
            released.wait(PATIENCE)
        elif row == 2:
            second.wait(PATIENCE)

    listener = Stopping(released)
    found = tuned(Machine(slow), Machine(slow), listener=listener)
    assert [number for _, number, _ in listener.of("tried")] == [2]
    assert rows(found) == [] and found.planned == 12
