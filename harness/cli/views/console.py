"""The only way to the terminal: text of a submission is shown, and never controls it.

Nothing else in this project writes to standard output or standard error for people; the linter
enforces that (banned-api in pyproject.toml).
"""

import codecs
import io
import os
import sys
from collections.abc import Iterable
from typing import Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import track
from rich.segment import Segment
from rich.text import Text

from harness.board import escaping

T = TypeVar("T")


class SafeConsole(Console):
    """A console on which only the judge itself moves the cursor or changes a colour.

    Text is never markup. Control and format characters are replaced twice: before the layout, so
    that tables stay straight, and in the final output.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        if isinstance(renderable, Text):
            renderable = renderable.copy()
            renderable.plain = escaping.laid_out(renderable.plain)
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(escaping.lines(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, which main handles: the reader of the output has seen enough."""
        raise BrokenPipeError


_PLAIN = {"×": "x", "³": "^3", "±": "+-", "│": "|", "█": "#", "·": ".", "…": "...", "→": "->"} | {
    "–": "-",
    "≤": "<=",
    "≥": ">=",
    "ᵀ": "^T",
}
"""The replacement of a character that the output's encoding does not have."""

_WIDE = 10_000
"""The width of an output that is not a terminal: nothing is wrapped there."""


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in missing), error.end


codecs.register_error("plain", _plain)


class Terminal:
    """Standard output and standard error, as a command uses them."""

    def __init__(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="plain")
        self.results = _console()
        """The console on which people read results and watch progress."""
        self._notes = _console(stderr=True)

    def leave_output_to_programs(self) -> None:
        """Leave standard output to JSON alone; people read standard error from now on."""
        self.results = _console(stderr=True)

    def show(self, *renderables: RenderableType) -> None:
        """Show a result to people."""
        for renderable in renderables:
            _print(self.results, renderable)

    def note(self, sentence: str) -> None:
        """Write a sentence that is no result to standard error."""
        _print(self._notes, sentence)

    def json(self, text: str) -> None:
        """Print JSON, a result for programs."""
        sys.stdout.write(escaping.json_text(text, sys.stdout.encoding or "utf-8") + "\n")
        sys.stdout.flush()

    def file(self, text: str) -> None:
        """Print a file's content unchanged; on a terminal, without control characters."""
        sys.stdout.write(escaping.lines(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()

    def track(self, steps: Iterable[T], what: str, total: int) -> Iterable[T]:
        """Yield the steps, and show how many are done in a line that disappears."""
        return track(steps, what, total, console=self._notes, transient=True)

    def hang_up(self) -> None:
        """Let the interpreter's last flush go nowhere, since the reader has gone."""
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115

    def confirm(self, question: str) -> bool:
        """Ask a yes-no question; without a terminal, the answer is no."""
        if not sys.stdin.isatty():
            return False
        return self.results.input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _console(stderr: bool = False) -> SafeConsole:
    """Return a console as wide as the terminal, or as the longest line if there is no terminal."""
    console = SafeConsole(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = SafeConsole(stderr=stderr, width=_WIDE)
    return console


def _print(console: SafeConsole, renderable: RenderableType) -> None:
    """Print without the blanks that pad lines, unless a terminal shows them."""
    if console.is_terminal:
        console.print(renderable)
        return
    with console.capture() as captured:
        console.print(renderable)
    lines = captured.get().split("\n")
    console.file.write("\n".join(line.rstrip(" ") for line in lines))
    console.file.flush()
