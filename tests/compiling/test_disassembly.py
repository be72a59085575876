"""A disassembler's listing, read: opcodes, lines, and the loops that compute."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.compiling import disassembly
from harness.compiling.disassembly import Function, Instruction, disassemble
from harness.protocol.report import CodeLine, CodeLoop


def made(*instructions: str) -> Function:
    """`OPCODE operands ; line`, one instruction each."""
    found = []
    for text in instructions:
        code, _, line = text.partition(";")
        opcode, _, operands = code.strip().partition(" ")
        found.append(Instruction(opcode, operands, None, int(line) if line.strip() else None))
    return Function("k", tuple(found))


@pytest.mark.parametrize(
    ("opcode", "operands", "target"),
    [
        ("BRA", "0x40", 4),
        ("BRA.U", "UP0, 0x1f0", 31),
        ("BRX", "R2, 0x0", 0),
        ("BRA", "", None),
        ("BRA", "`(.L_x_1)", None),
        ("CALL", "0x40", None),
    ],
)
def test_a_branch_goes_to_an_instruction(opcode: str, operands: str, target: int | None) -> None:
    assert Instruction(opcode, operands, None, None).target == target


def test_modifiers_are_no_part_of_a_name() -> None:
    assert Instruction("LDG.E.128", "R1", None, 3).name == "LDG"
    function = made("LDG.E.128 R1", "FFMA R1", "LDG.E R2", "EXIT")
    assert disassembly.opcodes([function, made("FFMA R1", "FFMA R2")]) == {
        "FFMA": 3,
        "LDG": 2,
        "EXIT": 1,
    }
    assert [*disassembly.opcodes([function])] == ["LDG", "FFMA", "EXIT"]  # most often first


def test_each_line_of_the_source_has_its_opcodes() -> None:
    function = made("LDG.E R1;7", "LDG.E R2;7", "FFMA R1;9", "MOV R1", "LDG R1;7")
    other = Function("other", made("EXIT ;7").instructions)
    assert disassembly.lines([other, function], "k") == (
        CodeLine(line=7, opcodes={"LDG.E": 2, "LDG": 1}),
        CodeLine(line=9, opcodes={"FFMA": 1}),
    )
    assert disassembly.lines([other], "k") == ()


def test_a_loop_is_a_branch_back_over_something_computed() -> None:
    function = made("MOV R1;3", "LDG R1;5", "FFMA R1;6", "MOV R2", "BRA 0x10;4", "EXIT ;9")
    assert disassembly.loops([function], "k") == (
        CodeLoop(first_line=4, last_line=6, opcodes={"LDG": 1, "FFMA": 1, "MOV": 1, "BRA": 1}),
    )


@pytest.mark.parametrize(
    "instructions",
    [
        ("LDG R1;5", "MOV R1;6", "BRA 0x0;6"),
        ("BRA 0x20;5", "FFMA R1;6", "EXIT ;7"),
        ("FFMA R1;5", "BRA 0x10;6"),
        ("FFMA R1;5", "EXIT ;6"),
        ("MOV R1;5", "BRA 0x0;6", "FFMA R1;7"),
    ],
    ids=["computes nothing", "goes ahead", "stands still", "never branches", "computes behind"],
)
def test_what_is_no_loop(instructions: tuple[str, ...]) -> None:
    assert disassembly.loops([made(*instructions)], "k") == ()


def test_only_the_innermost_loops_are_told() -> None:
    function = made(
        "MOV R1;1",
        "FFMA R1;2",
        "BRA 0x10;3",  # inner: 1 to 2
        "HMMA R1;4",
        "BRA 0x30;5",  # inner: 3 to 4
        "FFMA R2;6",
        "BRA 0x0;7",  # outer: 0 to 6
    )
    found = disassembly.loops([function], "k")
    assert [(each.first_line, each.last_line) for each in found] == [(2, 3), (4, 5)]


def test_loops_that_only_overlap_are_each_their_own() -> None:
    function = made("FFMA R1;1", "MOV;2", "FFMA;3", "BRA 0x0;4", "MOV;5", "BRA 0x20;6")
    assert [each.last_line for each in disassembly.loops([function], "k")] == [4, 6]


@pytest.mark.parametrize("opcode", ["FFMA", "FFMA2", "HMMA.16816", "HGMMA.64x128x8"])
def test_a_loop_may_compute_with_any_unit(opcode: str) -> None:
    assert len(disassembly.loops([made(f"{opcode} R1;1", "BRA 0x0;2")], "k")) == 1


def test_loops_that_share_an_end_are_told_from_one_another() -> None:
    shared_start = made("FFMA R1;1", "BRA 0x0;2", "MOV R1;3", "BRA 0x0;4")
    assert [each.last_line for each in disassembly.loops([shared_start], "k")] == [2]
    shared_end = made("MOV R1;1", "FFMA R1;2", "BRA P0, 0x10;3", "BRA 0x0;4")
    assert [each.first_line for each in disassembly.loops([shared_end], "k")] == [2]


def test_a_loop_without_lines_has_none() -> None:
    assert disassembly.loops([made("FFMA R1", "BRA 0x0")], "k") == (
        CodeLoop(first_line=None, last_line=None, opcodes={"FFMA": 1, "BRA": 1}),
    )


@pytest.mark.parametrize(
    ("opcode", "tensor"),
    [("HMMA", True), ("HGMMA", True), ("UTCHMMA", True), ("IMMA", True), ("FFMA", False)],
)
def test_tensor_cores_are_known_by_their_opcodes(opcode: str, tensor: bool) -> None:
    assert disassembly.uses_tensor_cores({"MOV": 3, opcode: 1}) is tensor
    assert not disassembly.uses_tensor_cores({})


# ------------------------------------------------------------------------------- the program

LISTING = [
    {"version": 1},
    [
        {
            "function-name": "k",
            "sass-instructions": [
                {"opcode": "MOV", "operands": "R1, R2"},
                {"opcode": "LDG.E", "source-line": "7", "source-file-id": "1"},
                {"opcode": "FFMA", "operands": "R1", "predicate": "@!P0"},
                {"opcode": "ST", "source-line": "12", "source-file-id": "0"},
                {"opcode": "EXIT", "source-line": "8", "source-file-id": "2"},
            ],
        },
        {"function-name": "other", "sass-instructions": []},
    ],
    {"files": [{"file": "mma.h"}, {"file": "kernel.cu"}, {"file": "kernel.cu"}]},
]


class Nvdisasm:
    """The disassembler, as far as it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listing: Any = LISTING
        self.code = 0
        self.asked: list[Any] = []
        self.read = b""
        monkeypatch.setattr(
            disassembly.pathfinder, "find_nvidia_binary_utility", lambda name: f"/bin/{name}"
        )
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, command: list[str], **how: Any) -> Any:
        self.asked = [*command[:-1]]
        self.how = how
        self.read = Path(command[-1]).read_bytes()
        if self.listing is None:
            raise subprocess.TimeoutExpired(command, how["timeout"])
        return subprocess.CompletedProcess(command, self.code, json.dumps(self.listing).encode())


@pytest.fixture
def nvdisasm(monkeypatch: pytest.MonkeyPatch) -> Nvdisasm:
    return Nvdisasm(monkeypatch)


def test_a_listing_names_a_line_where_it_changes(nvdisasm: Nvdisasm) -> None:
    k, other = disassemble(b"code", "kernel.cu")
    assert k == Function(
        "k",
        (
            Instruction("MOV", "R1, R2", None, None),
            Instruction("LDG.E", "", None, 7),
            Instruction("FFMA", "R1", "@!P0", 7),
            Instruction("ST", "", None, None),  # of a header
            Instruction("EXIT", "", None, 8),
        ),
    )
    assert other == Function("other", ())
    assert nvdisasm.asked == ["/bin/nvdisasm", "--emit-json", "--print-line-info"]
    assert nvdisasm.read == b"code" and nvdisasm.how["stdin"] == subprocess.DEVNULL
    assert 0 < nvdisasm.how["timeout"] <= 60
    assert (nvdisasm.how["capture_output"], nvdisasm.how["check"]) == (True, False)


def test_a_listing_without_files_names_no_lines(nvdisasm: Nvdisasm) -> None:
    nvdisasm.listing = LISTING[:2]
    assert {each.line for each in disassemble(b"code", "kernel.cu")[0].instructions} == {None}


def test_nothing_is_read_where_there_is_no_listing(
    nvdisasm: Nvdisasm, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvdisasm.code = 1
    assert disassemble(b"code", "kernel.cu") == ()
    nvdisasm.code, nvdisasm.listing = 0, None
    assert disassemble(b"code", "kernel.cu") == ()
    monkeypatch.setattr(disassembly.pathfinder, "find_nvidia_binary_utility", lambda name: None)
    assert disassemble(b"code", "kernel.cu") == ()
