"""Reads the messages of NVRTC and ptxas, which are text only, as typed diagnostics."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

from harness.compiling.occupancy import number_of
from harness.protocol.report import Diagnostic
from harness.ptxcpu.ptx.names import base_name

MAX_DIAGNOSTICS = 50
MAX_MESSAGE = 500
"""A source can make the compiler print a megabyte; a report keeps only the beginning."""

_FRONT_END = re.compile(
    r"^(?P<file>[^()\s][^()\n]*)\((?P<line>\d{1,9})\): (?:catastrophic )?"
    r"(?P<severity>error|warning)(?: #\S+)?: (?P<message>.*)$"
)
_PTXAS = re.compile(
    r"^ptxas (?:[^,;]+, line (?P<line>\d{1,9}); )?"
    r"(?P<severity>error|fatal|warning)\s*: (?P<message>.*)$"
)
# (C7510) says so of wgmma instructions that wait for each other. Other remarks with a number are
# about lines of the PTX, which the author of the source did not write.
_PTXAS_ADVICE = re.compile(r"^ptxas info\s*: \(C\d+\) (?P<message>Potential Performance Loss.*)$")
_UNDEFINED = re.compile(r"Unresolved extern function '(\w+)'")
_ABORTED = "Ptx assembly aborted due to errors"
"""ptxas ends with this after other errors."""
_DECLARED = re.compile(r"(\w+)\s*[(=;\[{]")
_UNKNOWN = re.compile(r'(?:identifier|has no member) "(\w+)"')
_UNUSED = re.compile(r'"(?:[^"(]*\W)?(\w+)(?:\(.*)?" (?:\(.*\) )?was declared but never referenced')
_HOST = re.compile(
    r"is considered a host (?:function|variable), and host (?:function|variable)s"
    r"|was inferred to be __host__"
)


_END_OF_SOURCE = re.compile(
    r"^At end of source: (?:catastrophic )?error(?: #\S+)?: (?P<message>.*)$"
)
_OPENED_AT = re.compile(r"\((?P<line>\d{1,9})\): note \S+: to match this")


def of_nvrtc(log: str, file_name: str, code: str = "") -> list[Diagnostic]:
    """Return NVRTC's errors, and its warnings about the submission's own lines."""
    lines = log.split("\n")
    found: list[Diagnostic] = []
    for number, text in enumerate(lines):
        end = _END_OF_SOURCE.match(text)
        if end:
            found.append(_at_end(end["message"], lines[number + 1 : number + 2], code))
        match = _FRONT_END.match(text)
        if not match:
            continue
        ours = match["file"] == file_name
        if not ours and match["severity"] == "warning":
            continue  # the user cannot change a header
        # The source line and a caret under the place follow, both indented by two.
        caret = next((below for below in lines[number + 2 : number + 3] if "^" in below), "")
        column = caret.find("^") - 1 if ours and caret.strip() == "^" else 0
        line = int(match["line"]) or None if ours else None
        header = "" if ours else f"in {match['file'].rsplit('/', 1)[-1]}: "
        message = header + match["message"] + _cure(match["message"], line, column, code)
        if "U+" in message and any((each.message, each.line) == (message, line) for each in found):
            continue
        found.append(
            Diagnostic(
                severity="error" if match["severity"] == "error" else "warning",
                message=message,
                line=line,
                column=column if column > 0 else None,
            )
        )
    return found


def _at_end(message: str, notes: list[str], code: str) -> Diagnostic:
    """Return the error that the file ends too early, with the line of what is not closed."""
    opened = _OPENED_AT.search(notes[0]) if notes else None
    if opened and message == 'expected a "}"':
        line = int(opened["line"])
        message = f"the `{{` of line {line} is never closed; a `}}` is missing after it"
    else:
        line = code.rstrip().count("\n") + 1
        message = f"the file ends too early: {message}"
    return Diagnostic(severity="error", message=message, line=line)


def _cure(message: str, line: int | None, column: int, code: str) -> str:
    """Return advice for an error whose position the compiler gives only indirectly."""
    if line is None:
        return ""
    lines = code.split("\n")[:line]
    before = lines[-1][: column - 1] if column > 0 else ""
    if message == "unrecognized token" and column > 0:
        # Columns are bytes, and the compiler reports each byte of a character.
        start = len(lines[-1].encode()[: column - 1].decode(errors="ignore"))
        character = (lines[-1][start : start + 1] or " ")[0]
        if not character.isascii():
            name = unicodedata.name(character, "unnamed")
            return f" U+{ord(character):04X} ({name}): only comments and strings may have it"
    if message == 'expected a ";"' and not before.strip():
        place = next((n for n in range(line - 1, 0, -1) if lines[n - 1].strip()), None)
        return f"; write one at the end of line {place}" if place else ""
    if message == "expected a declaration" and lines[-1][column - 1 :].startswith("}"):
        return "; there is one `}` too many before this place, or a `{` is missing"
    if message == "expected an expression" and column > 0:
        behind = lines[-1][column - 1 :]
        if behind.startswith("{") and before.rstrip().endswith("("):
            return "; GCC's `({ … })` may not contain `return` or `goto` here"
        if behind.startswith(":") and before.rstrip().endswith("?"):
            return "; write the value between `?` and `:`, which only GCC lets you leave out"
    return ""


def of_ptxas(
    log: str, line_of: Callable[[int], int | None], line_of_call: Callable[[str], int | None]
) -> list[Diagnostic]:
    """Return the messages of ptxas, with its advice as warnings.

    line_of: returns the source line of a line of PTX. line_of_call: returns that of the first call
    of a function.
    """
    found = []
    for text in log.split("\n"):
        advice = _PTXAS_ADVICE.match(text)
        if advice:
            found.append(Diagnostic(severity="warning", message=f"ptxas: {advice['message']}"))
        match = _PTXAS.match(text)
        undefined = _UNDEFINED.search(text)
        if undefined:
            message = f"`{base_name(undefined[1])}` is called, but the file does not define it"
            line = line_of_call(undefined[1])
            found.append(Diagnostic(severity="error", message=message, line=line))
        elif match and _ABORTED not in text:
            found.append(
                Diagnostic(
                    severity="warning" if match["severity"] == "warning" else "error",
                    message=f"ptxas: {match['message']}",
                    line=line_of(int(match["line"])) if match["line"] else None,
                )
            )
    return found


def is_about_host_code(diagnostic: Diagnostic) -> bool:
    """Return whether NVRTC reports host code."""
    return bool(_HOST.search(diagnostic.message))


def declared_at(found: Iterable[Diagnostic], code: str) -> dict[str, int]:
    """Return the first name that each of these lines declares, with its line."""
    lines = code.split("\n")
    names: dict[str, int] = {}
    for number in sorted({each.line for each in found if each.line is not None}):
        name = _DECLARED.search(lines[number - 1]) if number <= len(lines) else None
        if name:
            names.setdefault(name[1], number)
    return names


def with_advice(
    errors: Iterable[Diagnostic],
    host_lines: Mapping[str, int],
    advice: Callable[[Diagnostic], str],
) -> list[Diagnostic]:
    """Return the errors. If a name is unknown because it belongs to host code, the error says what
    to do. Otherwise advice is added to the first error, which often causes the others."""
    found: list[Diagnostic] = []
    for error in errors:
        unknown = _UNKNOWN.search(error.message)
        line = host_lines.get(unknown[1]) if unknown else None
        message = error.message
        if line is not None:
            message += f": line {line} defines it for the host; "
            message += "write `__device__` or `constexpr` before it"
        elif not found:
            message += advice(error)
        found.append(error.model_copy(update={"message": message}))
    return found


def of_a_macro(error: Diagnostic, code: str) -> str:
    """Return what to do if a macro for a number stands where the error is, as in `int M`."""
    text = "".join(code.split("\n")[(error.line or 1) - 1 : error.line])
    name = re.match(r"\w+", text[(error.column or 1) - 1 :])
    defined = name and re.search(
        rf"^[ \t]*#[ \t]*define[ \t]+{name[0]}[ \t]+(\d\w*)", code, re.MULTILINE
    )
    if not name or not defined:
        return ""
    line = code.count("\n", 0, defined.start()) + 1
    stands = f"; line {line} makes `{name[0]}` stand for {defined[1]}"
    return f"{stands}; remove that line or rename the macro"


_CONSEQUENCES = (
    *("attribute ", "explicit type is missing", "this declaration has no storage class"),
    'incomplete type "void"',
)
"""How errors begin that often come before the cause, which is an unknown name in their line."""


def with_causes_first(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the errors, with an unknown name before what the compiler says of its line first."""
    if not found or not found[0].message.startswith(_CONSEQUENCES):
        return [*found]
    line = found[0].line
    return sorted(found, key=lambda e: e.line != line or not _UNKNOWN.match(e.message))


def unused(warning: Diagnostic) -> str | None:
    """Return the name that a warning calls unused."""
    found = _UNUSED.search(warning.message)
    return found[1] if found else None


def is_about_an_instance(diagnostic: Diagnostic) -> bool:
    """Return whether the error is about the requested instance of a template."""
    return diagnostic.message.startswith("in __nv_name_map: ")


def of_severity(severity: str, found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(diagnostic for diagnostic in found if diagnostic.severity == severity)


def bounded(found: list[Diagnostic]) -> list[Diagnostic]:
    """Return at most MAX_DIAGNOSTICS diagnostics, errors first, and shorten long messages."""
    if len(found) > MAX_DIAGNOSTICS:
        found = sorted(found, key=lambda diagnostic: diagnostic.severity != "error")
    return [
        diagnostic
        if len(diagnostic.message) <= MAX_MESSAGE
        else diagnostic.model_copy(update={"message": diagnostic.message[:MAX_MESSAGE] + "…"})
        for diagnostic in found[:MAX_DIAGNOSTICS]
    ]


def unexplained(log: str) -> tuple[Diagnostic]:
    """Return the end of a log that names no error, as the only error."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    lines = [line for line in lines if "detected in the compilation of" not in line]
    message = lines[-1] if lines else "the compiler gave no reason"
    return (Diagnostic(severity="error", message=message),)


_REQUIRES = re.compile(r"'(?P<feature>[^']+)' requires \.target (?P<arch>sm_\w+)")
_NOT_SUPPORTED = re.compile(
    r"'(?P<feature>[\w.:]+)[^']*' (?:not supported on \.target|cannot be compiled for architecture)"
)
_ONLY_ON = {"wgmma": "sm_90a", "setmaxnreg": "sm_90a", "tcgen05": "sm_100a"}
"""Families of instructions that only some architectures have, by the beginning of their names."""


def lacking(errors: Sequence[Diagnostic], arch: str) -> tuple[str, str] | None:
    """Return what the architecture lacks, as a sentence and as the name of the feature, if all of
    ptxas's errors are about that. The feature that the fewest architectures have comes first."""
    found: list[tuple[int, str, str]] = []
    for error in errors:
        match = _REQUIRES.search(error.message) or _NOT_SUPPORTED.search(error.message)
        if match is None:
            return None
        feature = match["feature"]
        if "arch" in match.re.groupindex:
            needed, having = number_of(match["arch"]), f"{match['arch']} or newer"
        else:
            only = _ONLY_ON.get(feature.partition(".")[0])
            needed, having = (1000, f"{only} only") if only else (999, "other architectures")
        where = f"line {error.line}: " if error.line else ""
        found.append((needed, feature, f"{where}`{feature}` exists on {having}; this is {arch}"))
    if not found:
        return None
    _, feature, sentence = max(found, key=lambda each: each[0])
    return sentence, feature
