"""Names and numbers as every view of the leaderboard writes them."""

from __future__ import annotations

import unicodedata

from harness.leaderboard.entry import Entry

_BIDIRECTIONAL = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def one_line(text: str) -> str:
    """A stranger's text without what moves the cursor or turns the reading direction around."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        or character in _BIDIRECTIONAL
        else character
        for character in text
    )


def lines(text: str) -> str:
    """A stranger's text of many lines, as harmless as one_line."""
    return "\n".join(one_line(line.expandtabs()) for line in text.split("\n"))


def ratio(value: float | None) -> str:
    """A score: 1.032."""
    return "–" if value is None else f"{value:.3f}"


def interval(entry: Entry) -> str:
    return f"{ratio(entry.low)} to {ratio(entry.high)}"


def milliseconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def tflops(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def grouped(count: int) -> str:
    """A large count: 16 384, with spaces that do not break."""
    return f"{count:,}".replace(",", "\N{NO-BREAK SPACE}")


def change(before: float, after: float) -> str:
    """How much larger the second is: +3.2 %."""
    return f"{100 * (after / before - 1):+.1f} %".replace("-", "−")


def minute(timestamp: str) -> str:
    """2026-01-31 12:05 UTC."""
    return f"{timestamp[:10]} {timestamp[11:16]} UTC"


def provenance(entry: Entry) -> list[str]:
    """Where a score comes from, in short phrases; the GPU is the board's."""
    return [
        *sorted(entry.badges),
        minute(entry.created),
        f"{or_dash(entry.clock_mhz)} MHz",
        f"driver {or_dash(entry.driver)}",
        f"CUDA {or_dash(entry.cuda)}",
        f"judge {entry.judge}",
        f"seed {entry.seed}",
        entry.id[:8],
    ]


def twins(authors: tuple[str, ...]) -> str:
    return f"same source as {', '.join(map(one_line, authors))}"


def or_dash(value: object | None) -> str:
    return "–" if value is None else str(value)
