"""The assembler of NVRTC's release and no other; what it refuses, and what becomes of a crash."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.compiling import ptxas
from harness.compiling.ptxas import Assembled, assemble


class Ptxas:
    """The program, as far as it is asked."""

    def __init__(self) -> None:
        self.says = "Cuda compilation tools, release 13.0, V13.0.88"
        self.code = 0
        self.said = b"said "
        self.asked: list[str] = []
        self.read = ""

    def run(self, command: list[str], **how: Any) -> Any:
        if command[1:] == ["--version"]:
            assert how["text"] and how["check"]
            return subprocess.CompletedProcess(command, 0, self.says)
        folder = Path(how["cwd"])
        self.asked, self.read = command, (folder / command[-1]).read_text()
        assert how["stdin"] == subprocess.DEVNULL and how["check"] is False
        (target,) = (word for word in command if word.startswith("--output-file="))
        (folder / target.partition("=")[2]).write_bytes(b"machine code")
        return subprocess.CompletedProcess(command, self.code, self.said, b"complained \xff")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ptxas]:
    made = Ptxas()
    monkeypatch.setattr(subprocess, "run", made.run)
    monkeypatch.setattr(ptxas.pathfinder, "find_nvidia_binary_utility", lambda name: f"/bin/{name}")
    monkeypatch.setattr(ptxas.nvrtc, "version", lambda: "13.0")
    ptxas.program.cache_clear()
    yield made
    ptxas.program.cache_clear()


def test_the_program_text_becomes_machine_code_with_lines(fake: Ptxas) -> None:
    assert assemble("a program", "sm_90a") == Assembled(b"machine code", "said complained \ufffd")
    assert fake.asked[0] == "/bin/ptxas" and fake.read == "a program"
    assert fake.asked[-2:] == ["--output-file=kernel.cubin", "kernel.ptx"]
    assert {"--gpu-name=sm_90a", "--generate-line-info", "--verbose"} <= {*fake.asked}


def test_what_it_refuses_is_no_machine_code(fake: Ptxas) -> None:
    fake.code = 255
    assert assemble("a program", "sm_90a") == Assembled(b"", "said complained \ufffd")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_a_crash_is_because_of_the_program(fake: Ptxas, number: signal.Signals) -> None:
    fake.code = -number
    made = assemble("a program", "sm_90a")
    assert made.cubin == b""
    assert made.log == f"said complained \ufffdptxas crashed on this program ({number.name})\n"


def test_who_is_ended_by_somebody_else_is_the_judges_fault(fake: Ptxas) -> None:
    fake.code = -signal.SIGKILL
    with pytest.raises(RuntimeError, match="ptxas was ended by SIGKILL: said complained"):
        assemble("a program", "sm_90a")
    fake.said = b"x" * 600
    with pytest.raises(RuntimeError) as error:
        assemble("a program", "sm_90a")
    end = f"{'x' * 488}complained \ufffd"
    assert str(error.value) == f"ptxas was ended by SIGKILL: {end}"


@pytest.mark.parametrize(
    ("says", "found"),
    [("Cuda compilation tools, release 12.9, V12.9", "12.9"), ("hello", "of no known release")],
)
def test_another_release_is_refused(fake: Ptxas, says: str, found: str) -> None:
    fake.says = says
    with pytest.raises(
        RuntimeError, match=f"/bin/ptxas is ptxas {found}; NVRTC needs that of 13.0"
    ):
        ptxas.program()


def test_without_it_one_is_told_what_to_install(
    fake: Ptxas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptxas.pathfinder, "find_nvidia_binary_utility", lambda name: None)
    with pytest.raises(RuntimeError, match=r"there is no ptxas; install nvidia-cuda-nvcc 13\.0"):
        ptxas.program()
