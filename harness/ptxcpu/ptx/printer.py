"""A parsed program as text again: one statement a line, no comments, nothing that was not parsed.

This text, and never the compiler's own, is what becomes machine code.
"""

from __future__ import annotations

import hashlib

from harness.ptxcpu.ptx.syntax import Instruction, Program


def canonical(program: Program) -> str:
    """The program's text."""
    return "\n".join(statement.text for statement in program.statements) + "\n"


def fingerprint(program: Program) -> str:
    """A hash of what the program does: of all statements but those for debuggers, with every name
    that the program gives replaced by the number of its first appearance. Equal hashes mean equal
    programs up to the choice of names.

    A name that means something by itself stays: that of an instruction in use, or of a function
    that is defined elsewhere.
    """
    opcodes = {
        item.opcode
        for function in program.functions.values()
        for item in function.body
        if isinstance(item, Instruction)
    }
    names = program.names - opcodes - (program.declared.keys() - program.functions.keys())
    numbers: dict[str, str] = {}
    digest = hashlib.sha256()
    for statement in program.statements:
        if statement.is_debugging:
            continue
        for token in statement.tokens:
            word = token
            if token in names:
                word = numbers.setdefault(token, f"\x01{len(numbers)}")
            digest.update(word.encode() + b"\0")
        digest.update(b"\n")
    return digest.hexdigest()
