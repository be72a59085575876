"""Numbers as every view writes them."""

from __future__ import annotations

import math


def ratio(value: float | None) -> str:
    """A score: 1.032."""
    return "–" if value is None else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """0.898 to 0.902."""
    return "–" if low is None or high is None else f"{ratio(low)} to {ratio(high)}"


def milliseconds(value: float | None) -> str:
    """Four figures, and whole milliseconds at least: 8.123, 66.91, 423.0, 1782."""
    return "–" if value is None else _figures(value, 4)


def tflops(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def grouped(count: int) -> str:
    """A large count: 16 384, with spaces that do not break."""
    return f"{count:,}".replace(",", "\N{NO-BREAK SPACE}")


def share(part: int, whole: int) -> str:
    """So many of all blocks: 64 of 131 072 blocks (0.049 %)."""
    return f"{grouped(part)} of {grouped(whole)} blocks ({100 * part / whole:.2g} %)"


def error(value: float) -> str:
    """A small number: 2.2e-6, 1e-5."""
    return f"{value:.2g}".replace("e-0", "e-")


def change(before: float, after: float) -> str:
    """How much larger the second is: +3.2 %."""
    return f"{100 * (after / before - 1):+.1f} %".replace("-", "−")


def minute(timestamp: str) -> str:
    """2026-01-31 12:05 UTC."""
    return f"{timestamp[:10]} {timestamp[11:16]} UTC"


def _figures(value: float, count: int) -> str:
    """So many significant figures, without an exponent and with at most three decimals."""
    if not math.isfinite(value):
        return str(value)
    before_point = len(str(int(abs(value)))) if abs(value) >= 1 else 1
    return f"{value:.{min(3, max(0, count - before_point))}f}"
