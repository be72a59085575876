"""The text of numbers and facts, which all views share."""

import math
from datetime import UTC, datetime

from harness.protocol.report import Occupancy, Resources, Verification
from problem.reference import MAX_ERROR


def ratio(value: float | None) -> str:
    """Return a score, such as 1.032."""
    return "–" if value is None else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """Return an interval, such as 0.898 to 0.902."""
    return "–" if low is None or high is None else f"{ratio(low)} to {ratio(high)}"


def milliseconds(value: float | None) -> str:
    """Return milliseconds with four figures and at most three decimals, such as 8.123, 66.91, 423.0
    or 1782."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return str(value)
    before_point = len(str(int(abs(value))))
    return f"{value:.{min(3, max(0, 4 - before_point))}f}"


def tflops(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def grouped(count: int) -> str:
    """Return a large count with no-break spaces, such as 16 384."""
    return f"{count:,}".replace(",", "\N{NO-BREAK SPACE}")


def share(part: int, whole: int) -> str:
    """Return a part of all blocks, such as 64 of 131 072 blocks (0.049 %), or all 2 048 blocks."""
    if part == whole:
        return f"all {grouped(whole)} blocks"
    per_cent = min(100 * part / whole, 99)  # two digits of more would be 1e+02
    return f"{grouped(part)} of {grouped(whole)} blocks ({per_cent:.2g} %)"


def error(value: float) -> str:
    """Return a small number, such as 2.2e-6 or 1e-5."""
    return f"{value:.2g}".replace("e-0", "e-")


def quantity(value: float | str | None) -> str:
    """Return a quantity of a report, such as 131 072, 0.4401 or 2.2e-6."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if abs(value) >= 1000:
        return grouped(round(value))
    return f"{value:.4g}" if value == 0 or abs(value) >= 0.001 else error(value)


def change(before: float, after: float) -> str:
    """Return by how much the second is larger, such as +3.2 %."""
    return f"{100 * (after / before - 1):+.1f} %".replace("-", "−")


def minute(at: datetime) -> str:
    """Return a time, such as 2026-01-31 12:05 UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def resources(used: Resources) -> str:
    """Return resources, such as 38 registers, 2 048 B shared memory, 0 B spilled."""
    spilled = used.spill_store_bytes + used.spill_load_bytes
    shared = grouped(used.shared_bytes)
    return f"{used.registers} registers, {shared} B shared memory, {grouped(spilled)} B spilled"


def occupancy(room: Occupancy) -> str:
    """Return an occupancy, such as 75 %: 6 blocks per multiprocessor, limited by registers."""
    blocks = f"{room.blocks} block{'s' * (room.blocks != 1)} per multiprocessor"
    return f"{percent(room.fraction)}: {blocks}, limited by {room.limited_by}"


def verification(found: Verification) -> str:
    """Return a verification, such as 82 cases right; worst block 2.1e-6 (limit 1e-5)."""
    worst = f"worst block {error(found.worst_error)} (limit {error(MAX_ERROR)})"
    return f"{len(found.cases)} cases right; {worst}"
