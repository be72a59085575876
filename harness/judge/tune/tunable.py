"""The constants of a kernel file that may vary, and the file with other values.

    constexpr int BK = 16;  // tune: 8 16 32
    // tune: solve tile={BM}x{BN} shared_memory={4 * STAGES * BK * (BM + BN)}

The first comment follows a constant (constexpr, #define, default of a template parameter) and lists
the values to try. The second gives the file's `// solve:` line for each of them; its expressions
may use every constant of the file. Only the tuner reads these comments.
"""

import math
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from harness.compiling import lexical
from harness.compiling.errors import SourceError
from harness.compiling.source import parse_launch_line
from harness.compiling.syntax import descendants, syntax_tree, text_of
from harness.judge.tune.expression import ExpressionError, evaluate
from harness.protocol.errors import UsageError

Setting = dict[str, int | bool]
"""A value for each tuned constant, by name."""

_EXAMPLE = "`constexpr int BK = 16;  // tune: 8 16 32`"


@dataclass(frozen=True, slots=True)
class Constant:
    """A name to which the file gives a value, as written; bytes start to end of the file."""

    name: str
    written: str
    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class Tuned:
    """A constant that may vary. written: the file's own value."""

    constant: Constant
    written: int | bool
    values: tuple[int | bool, ...]


@dataclass(frozen=True, slots=True)
class LaunchTemplate:
    """The words of the launch line with expressions in braces; what they replace in the file."""

    words: str
    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tunables:
    """A file with tuned constants. others: constants that depend on the tuned ones or are fixed."""

    code: bytes
    tuned: tuple[Tuned, ...]
    others: dict[str, str]
    template: LaunchTemplate | None

    @property
    def written(self) -> Setting:
        """The setting of the file as it is written."""
        return {each.constant.name: each.written for each in self.tuned}

    @property
    def count(self) -> int:
        """The number of variants: every combination of the values, and the file as written."""
        listed = all(each.written in each.values for each in self.tuned)
        return self._combinations + (not listed)

    def settings(self, limit: int, seed: int) -> list[Setting]:
        """Return at most `limit` settings: that of the file first, then a random sample of the
        others."""
        numbers: Iterable[int] = range(self._combinations)
        if self._combinations > limit:
            most = min(self._combinations, sys.maxsize)  # of a range with a length
            numbers = random.Random(seed).sample(range(most), limit)
        others = (each for each in map(self._setting, numbers) if each != self.written)
        return [self.written, *others][:limit]

    def source(self, setting: Setting) -> str:
        """Return the file with these values and no other change. Raises UsageError."""
        edits = [
            (each.constant.start, each.constant.end, as_written(setting[each.constant.name]))
            for each in self.tuned
            if setting[each.constant.name] != each.written
        ]
        if self.template is not None and setting != self.written:
            edits.append((self.template.start, self.template.end, self.launch_words(setting)))
        code = self.code
        for start, end, text in sorted(edits, reverse=True):
            code = code[:start] + text.encode() + code[end:]
        return code.decode()

    def launch_words(self, setting: Setting) -> str:
        """Return the template's words with the values of its expressions. Raises UsageError."""
        assert self.template is not None
        known = {name: int(value) for name, value in setting.items()}
        try:
            return re.sub(
                r"\{([^{}]*)\}",
                lambda match: str(evaluate(match[1], self.others, known)),
                self.template.words,
            )
        except ExpressionError as error:
            shown = " ".join(f"{name}={as_written(value)}" for name, value in setting.items())
            raise UsageError(f"line {self.template.line}: {error} (with {shown})") from None

    @property
    def _combinations(self) -> int:
        return math.prod(len(each.values) for each in self.tuned)

    def _setting(self, index: int) -> Setting:
        """Return combination number `index`; the last constant varies fastest."""
        setting: Setting = {}
        for each in reversed(self.tuned):
            index, digit = divmod(index, len(each.values))
            setting[each.constant.name] = each.values[digit]
        return dict(reversed(setting.items()))


def as_written(value: int | bool) -> str:
    """Return a value as C++ writes it."""
    return str(value).lower()


def find_tunables(text: str) -> Tunables:
    """Read the `// tune:` comments of a file. Raises UsageError."""
    code = text.encode()
    root = syntax_tree(code)
    constants = list(_constants(root))
    comments = list(_comments(text))
    tuned: list[Tuned] = []
    templates: list[tuple[str, int]] = []
    for comment in comments:
        if not comment.words.startswith("tune:"):
            continue
        words = comment.words.removeprefix("tune:").strip()
        if words.split()[:1] == ["solve"]:
            templates.append((words.removeprefix("solve").strip(), comment.line))
        else:
            tuned.append(_tuned(words, comment.line, constants))
    if not tuned:
        raise UsageError(f"no constant has values; list some after one, as in {_EXAMPLE}")
    for name, times in Counter(each.constant.name for each in tuned).items():
        if times > 1:
            lines = [str(each.constant.line) for each in tuned if each.constant.name == name]
            raise UsageError(f"{name} is tuned more than once, in lines {' and '.join(lines)}")
    if len(templates) > 1:
        raise UsageError(f"line {templates[1][1]}: a second `// tune: solve` line; keep one")
    names = {each.constant.name for each in tuned}
    defined = Counter(constant.name for constant in constants)
    tunables = Tunables(
        code=code,
        tuned=tuple(tuned),
        others={
            constant.name: constant.written
            for constant in constants
            if constant.name not in names and defined[constant.name] == 1
        },
        template=_template(*templates[0], comments) if templates else None,
    )
    _check_template(tunables)
    return tunables


def _check_template(tunables: Tunables) -> None:
    """Raise UsageError unless the template gives the file's launch line for the file's values."""
    template = tunables.template
    if template is None:
        return
    words = tunables.launch_words(tunables.written)
    written = tunables.code[template.start : template.end].decode()
    try:
        agree = parse_launch_line(words) == parse_launch_line(written)
    except SourceError as error:
        raise UsageError(f"line {template.line}: {error}") from None
    if not agree:
        raise UsageError(
            f"line {template.line}: with the file's own values this is `{words.strip()}`, but its "
            f"launch line says `{written.strip()}`; make them agree"
        )


# ---------------------------------------------------------------------------------- in the file


@dataclass(frozen=True, slots=True)
class _Comment:
    """A `//` comment: its words, and the line and byte at which they begin."""

    words: str
    line: int
    start: int


def _comments(text: str) -> Iterator[_Comment]:
    for match in lexical.comments(text):
        if match[0].startswith("//"):
            words = match[0][2:].lstrip()
            start = match.end() - len(words)
            line = text.count("\n", 0, start) + 1
            yield _Comment(words.rstrip(), line, len(text[:start].encode()))


_DEFINITIONS = {
    "init_declarator": ("declarator", "value"),
    "optional_parameter_declaration": ("declarator", "default_value"),
    "enumerator": ("name", "value"),
    "preproc_def": ("name", "value"),
}
"""The nodes that give a name a value, and their fields for the two."""


def _constants(root: Node) -> Iterator[Constant]:
    for node in descendants(root):
        if node.type not in _DEFINITIONS:
            continue
        name, value = map(node.child_by_field_name, _DEFINITIONS[node.type])
        if name is None or value is None:
            continue
        written = text_of(value)
        if node.type == "preproc_def":
            written = written.partition("//")[0].partition("/*")[0].rstrip()
        yield Constant(
            name=text_of(name),
            written=written,
            start=value.start_byte,
            end=value.start_byte + len(written.encode()),
            line=value.start_point[0] + 1,
        )


def _tuned(words: str, line: int, constants: list[Constant]) -> Tuned:
    before = [constant for constant in constants if constant.line == line]
    if not before:
        raise UsageError(
            f"line {line}: this `// tune:` follows no constant; write for example {_EXAMPLE}"
        )
    if len(before) > 1:
        names = " and ".join(constant.name for constant in before)
        raise UsageError(f"line {line}: {names} share a line; put each on a line of its own")
    constant = before[0]
    written = _value(constant.written)
    if written is None:
        raise UsageError(
            f"line {line}: {constant.name} is `{constant.written}`; only a plain whole number, "
            "true or false can be tuned"
        )
    values: list[int | bool] = []
    for word in words.replace(",", " ").split():
        value = _value(word)
        if value is None or type(value) is not type(written):
            kind = "true and false" if isinstance(written, bool) else "whole numbers"
            raise UsageError(
                f"line {line}: `{word[:40]}` is no value for {constant.name}; list {kind}, "
                "separated by spaces"
            )
        values.append(value)
    if not values:
        raise UsageError(f"line {line}: no values for {constant.name}; list some, as in {_EXAMPLE}")
    return Tuned(constant, written, tuple(dict.fromkeys(values)))


def _value(word: str) -> int | bool | None:
    if word in ("true", "false"):
        return word == "true"
    return int(word) if re.fullmatch(r"-?[0-9]{1,9}", word) else None


def _template(words: str, line: int, comments: list[_Comment]) -> LaunchTemplate:
    launch_lines = [comment for comment in comments if comment.words.startswith("solve:")]
    if not launch_lines:
        raise UsageError(
            f"line {line}: the file has no `// solve:` line for this one to vary; write it as it "
            "must be for the file's own values"
        )
    comment = launch_lines[0]
    start = comment.start + len("solve:")
    end = comment.start + len(comment.words.encode())
    return LaunchTemplate(words=f" {words}", line=line, start=start, end=end)
