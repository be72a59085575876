"""The names of C++ functions, which a compiler mangles."""

import re

_PART = re.compile(r"(\d{1,9})(\w+)")


def base_name(symbol: str) -> str:
    """Return the C++ name of a function without its namespaces."""
    if not symbol.startswith("_Z"):
        return symbol
    is_nested = symbol.startswith("_ZN")
    name, rest = symbol, symbol[3:] if is_nested else symbol[2:]
    while match := _PART.match(rest):
        length = int(match[1])
        name, rest = match[2][:length], match[2][length:]
        if not is_nested:
            break
    return name
