"""compute-sanitizer's tools, which are started early; the program itself is a fake."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from harness.devices.cuda import sanitizer
from harness.devices.cuda.watched_job import give_job, wait_for_job
from harness.protocol.device import Load, Sanitize, Sanitized
from harness.protocol.report import Tool
from harness.protocol.request import Fault
from problem.cases import Case, Shape
from tests.judge.stages.fakes import kernel
from tests.requests import inputs_of
from tests.waiting import eventually

PROGRAM = """\
import json, os, sys, time
from pathlib import Path
import numpy as np
if sys.argv[1:] == ["--version"]:
    print("Version 1.2")
    sys.exit()
if sys.argv[1:] == ["--help"]:
    sys.exit()
results = Path(sys.argv[-2])
xml = next(word.partition("=")[2] for word in sys.argv if word.startswith("--save="))
with open(PLACE + "/started", "a") as started:
    print(os.getpid(), file=started)
while not (results / "job.txt").is_file():
    time.sleep(0.01)
folder = Path((results / "job.txt").read_text())
with open(results / "placements.jsonl", "w") as placements:
    for number, launch in enumerate(json.loads((folder / "job.json").read_text())["launches"]):
        A, B = (np.load(folder / f"{name}{number}.npy") for name in "AB")
        print(json.dumps(dict(arguments=launch, addresses=(0, 0, 0))), file=placements)
        for name, matrix in zip("ABC", (A, B, A @ B)):
            np.save(results / f"{name}{number}.npy", matrix)
Path(xml).write_text("<ComputeSanitizerOutput/>")
with open(PLACE + "/ended", "a") as ended:
    print(os.getpid(), file=ended)
while Path(PLACE, "hang").exists():
    time.sleep(0.01)
"""

TOOLS = (Tool.MEMCHECK, Tool.RACECHECK)


def request(seed: int) -> Sanitize:
    shape = Shape(3, 4, 5)
    A, B = Case(shape).draw(seed)
    return Sanitize(launches=(inputs_of(shape, A, B),), tools=TOOLS, seconds=60)


class Place:
    """The folder in which the program notes its start and its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def noted(self, what: str) -> list[int]:
        path = self.folder / what
        return [int(line) for line in path.read_text().split()] if path.is_file() else []


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    program = tmp_path / "compute-sanitizer"
    program.write_text(f"#!{sys.executable}\nPLACE = {str(tmp_path)!r}\n{PROGRAM}")
    program.chmod(0o755)
    monkeypatch.setattr(sanitizer, "program", lambda: str(program))
    yield Place(tmp_path)


def right(answer: object, asked: Sanitize) -> bool:
    assert isinstance(answer, Sanitized) and answer.program == "compute-sanitizer 1.2"
    assert [(run.tool, run.status) for run in answer.runs] == [(tool, "clean") for tool in TOOLS]
    C = np.matmul(*asked.launches[0].matrices)
    assert [product.tool for product in answer.products] == [*TOOLS]
    return all(np.array_equal(product.output, C) for product in answer.products)


def test_tools_are_started_when_they_are_asked_for(place: Place) -> None:
    assert right(sanitizer.sanitize(kernel(), request(1)), request(1))
    assert len(place.noted("started")) == 2


def test_the_device_starts_its_tools_before_it_is_asked(place: Place) -> None:
    device = sanitizer.CudaSanitizer()
    eventually(lambda: len(place.noted("started")) == 2, "two tools")
    device.answer(Load(kernel=kernel()))
    for seed, started in ((1, 2), (2, 4)):
        assert right(device.answer(request(seed)), request(seed))
        assert len(place.noted("started")) == started == len(place.noted("ended"))


def test_a_tool_that_does_not_end_is_stopped(place: Place) -> None:
    (place.folder / "hang").touch()
    answer = sanitizer.sanitize(kernel(), request(1).model_copy(update={"seconds": 0.5}))
    assert isinstance(answer, Fault) and answer.cause == "time-limit"
    for process in place.noted("started"):
        assert not Path(f"/proc/{process}").exists()


def test_a_missing_program_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizer, "program", lambda: None)
    answer = sanitizer.sanitize(kernel(), request(1))
    assert isinstance(answer, Sanitized) and "missing" in answer.program
    assert {run.status for run in answer.runs} == {"unavailable"}
    assert all("pip install" in (run.message or "") for run in answer.runs)


def test_a_program_that_does_not_start_is_unavailable(place: Place) -> None:
    (place.folder / "compute-sanitizer").write_text("#!/bin/sh\necho cannot start; exit 1\n")
    answer = sanitizer.sanitize(kernel(), request(1))
    assert isinstance(answer, Sanitized) and answer.products == ()
    assert [run.status for run in answer.runs] == ["unavailable"] * len(TOOLS)
    assert all("cannot start" in (run.message or "") for run in answer.runs)


def test_a_job_is_waited_for(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(wait_for_job, tmp_path, os.getpid())
        give_job(tmp_path / "job", tmp_path)
        assert waiting.result() == tmp_path / "job"


def test_waiting_ends_with_the_process_that_gives_jobs(tmp_path: Path) -> None:
    gone = os.fork()
    if not gone:
        os._exit(0)
    os.waitpid(gone, 0)
    assert wait_for_job(tmp_path, gone) is None
