"""Exceptions that are raised across the judge, and the description of a crash."""

import re
import traceback
from pathlib import Path

from pydantic import ValidationError

_ROOT = Path(__file__).resolve().parent.parent.parent
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+@~-]+/)+[\w.+@~-]*")


class UsageError(Exception):
    """The command cannot be carried out as given. The message says what to do instead."""


class StoreError(UsageError):
    """A store, a key or a report cannot be used; the message says what is wrong and what to do."""


class JudgeFailure(Exception):
    """A defect of the judge or of its machine, never of a submission."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


def crash(error: BaseException) -> tuple[str, str]:
    """Describe an unexpected exception in one sentence, and say where it was raised. Reports are
    published, so neither contains a path of this machine."""
    text = without_paths(str(error))
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{_file(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames]
    name = type(error).__name__
    return f"the judge failed: {name}: {text}", "\n".join([*where, f"{name}: {text}"])


def first_mistake(error: ValidationError) -> str:
    """Return the place of the first mistake in a value, and what is wrong there."""
    first = error.errors(include_url=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def without_paths(text: str) -> str:
    """Return the text with every absolute path cut to its last part."""
    return _PATH.sub(lambda match: "…/" + match[0].rstrip("/").rpartition("/")[2], text)


def _file(name: str) -> str:
    path = Path(name)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else path.name
