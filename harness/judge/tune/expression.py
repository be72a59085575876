"""Whole-number expressions over names, such as `4 * STAGES * (BM + BN)`.

Python's own parser reads them, and this module evaluates the tree. No text of a file is executed.
"""

import ast
import operator
from collections.abc import Callable, Mapping

MAX_CHARACTERS = 200
MAX_DEPTH = 32
"""The longest chain of constants that are defined by other constants."""
MOST = (1 << 63) - 1
"""Larger than anything a launch can ask for, and small enough that no product takes long."""


def _quotient(a: int, b: int) -> int:
    """Divide as C does, towards zero."""
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _quotient,
    ast.FloorDiv: _quotient,
    ast.Mod: lambda a, b: a - b * _quotient(a, b),
}


class ExpressionError(Exception):
    """An expression has no value; the message says why."""


def evaluate(
    expression: str, definitions: Mapping[str, str], values: dict[str, int], depth: int = 0
) -> int:
    """Return the value of an expression; division is that of C. Raises ExpressionError.

    definitions: the expressions of the names that have no value yet. values: the values of the
    others; gets the values of those that are defined.
    """
    shown = expression.strip()
    if len(shown) > MAX_CHARACTERS:
        raise ExpressionError(f"`{shown[:20]}...` is longer than {MAX_CHARACTERS} characters")
    try:
        body = ast.parse(shown, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"`{shown}` is not an expression") from None

    def value_of(name: str) -> int:
        if name not in values:
            if name not in definitions:
                raise ExpressionError(f"`{name}` is no constant that the file defines once")
            if depth == MAX_DEPTH:
                raise ExpressionError(f"`{name}` is defined by too many other constants")
            values[name] = evaluate(definitions[name], definitions, values, depth + 1)
        return values[name]

    def walk(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                result = value
            case ast.Name(id=name):
                result = value_of(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                result = -walk(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                a, b = walk(left), walk(right)
                if b == 0 and isinstance(op, ast.Div | ast.FloorDiv | ast.Mod):
                    raise ExpressionError(f"`{shown}` divides by zero")
                result = _OPERATORS[type(op)](a, b)
            case _:
                raise ExpressionError(
                    f"`{shown}` may contain only whole numbers, names, + - * / % and parentheses"
                )
        if abs(result) > MOST:
            raise ExpressionError(f"`{shown}` is too large a number")
        return result

    return walk(body)
