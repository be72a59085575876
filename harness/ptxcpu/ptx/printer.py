"""Prints a parsed program: one statement per line, no comments, nothing that was not parsed.

Machine code is generated from this text, never from the compiler's own.
"""

import hashlib

from harness.ptxcpu.ptx.syntax import Instruction, Program


def canonical(program: Program) -> str:
    """Return the program's text."""
    return "\n".join(statement.text for statement in program.statements) + "\n"


def fingerprint(program: Program) -> str:
    """Return a hash of all statements except debugging information, in which every name that the
    program declares is replaced by the number of its first use. Equal hashes mean equal programs
    except for the choice of names.

    Names with a fixed meaning stay: those of instructions, and of functions that are defined
    elsewhere.
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
        words = [
            numbers.setdefault(token, f"\x01{len(numbers)}") if token in names else token
            for token in statement.tokens
        ]
        digest.update("\0".join([*words, "\n"]).encode())
    return digest.hexdigest()
