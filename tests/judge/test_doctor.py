"""The doctor reports parts that work, and says what to do about those that do not."""

import numpy as np

from harness.judge.doctor import Check, check_parts
from harness.protocol.request import Fault
from tests.judge.stages.fakes import INFO, FakeDevice, on_cpu

CPU_INFO = INFO.model_copy(update={"kind": "cpu", "name": "a processor"})


def parts(device: FakeDevice) -> dict[str, Check]:
    return {part.name: part for part in check_parts(on_cpu(device, known=CPU_INFO))}


def test_each_part_is_tried() -> None:
    found = parts(FakeDevice())
    working = {name for name, part in found.items() if part.works}
    tools = {"memcheck", "racecheck", "initcheck", "synccheck"}
    assert working == {"compiler", "disassembler", "device", "isolation", *tools}
    assert found["device"].message == "a processor" and found["memcheck"].message == "a fake"
    assert parts(FakeDevice())["isolation"] == Check("isolation", True, "cpu: no network")


def test_a_part_that_fails_says_why() -> None:
    fault = Fault(cause="judge", message="the driver could not be initialised")
    found = parts(FakeDevice(run=lambda _: fault))
    assert found["device"] == Check("device", False, "the driver could not be initialised")
    assert "memcheck" not in found
    wrong = parts(FakeDevice(multiply=lambda A, B: np.zeros((33, 50), np.float32)))
    assert wrong["device"].message == "its product is wrong"
    broken = parts(FakeDevice(unavailable=("initcheck",)))
    assert not broken["initcheck"].works and broken["initcheck"].message == "out of order"
    assert broken["memcheck"].works
