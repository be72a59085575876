"""A plugin of pytest: it changes the code, one thing at a time, and asks which test notices."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import _lru_cache_wrapper
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from lab.mutation.changes import Change, changes

ROOT = Path(__file__).resolve().parents[2]

SLOWER = 10.0
SPARE_SECONDS = 1.0
"""A change is endless with which a test takes so many times what it usually takes, and that much
besides: of the processor's time, or six times that by the clock."""

ASKED_SECONDS = 6.0
"""How long the tests of one change may take together. Those of the file's own come first, then the
quickest: there are thousands of changes."""

NOTICED = ("noticed", "endless")

Function = tuple[str, str]
"""The file of a function, and its name as Python qualifies it."""


@dataclass(frozen=True, slots=True)
class CleanRun:
    """The tests, by their numbers, while nothing is changed."""

    failed: list[str]
    seconds: list[float]
    """How long each test took by the clock."""
    work: list[float]
    """The processor's seconds, which are the same whatever else the machine does."""
    calls: dict[Function, list[int]]
    """The tests that call it."""
    modules: list[str]
    """What they have imported."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--change", action="append", default=[], help="a file to change")
    parser.addoption("--every", type=int, default=1, help="of so many changes only one")
    parser.addoption("--outcomes", help="a file: what became of each change")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    items, files = session.items, session.config.getoption("change")
    for file in files:
        importlib.import_module(file.removesuffix(".py").replace("/", "."))
    clean = in_child(lambda: clean_run(items))
    if clean is None or clean.failed:
        pytest.exit(f"as the code stands, these fail: {clean and clean.failed}", returncode=1)
    print(f"{len(items)} tests in {sum(clean.seconds):.0f} s", flush=True)
    for name in clean.modules:  # so that no child has to
        with suppress(Exception):
            importlib.import_module(name)
    gc.unfreeze()  # else what was there when the tests were collected would not be found
    functions = functions_by_place()
    timed = [*zip(items, clean.seconds, strict=True)]
    path = Path(session.config.getoption("outcomes"))
    outcomes = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    gc.freeze()  # nothing of this is looked through again, in any child
    for file in files:
        known, found = outcomes.get(file, {}), dict[str, str]()
        noticed = Counter[int]()
        """How many of this file's changes each test noticed. It is asked first about the next."""
        unchanged = set[str]()
        """Functions of which the same tests notice nothing while they are not changed."""
        for change in changes(ROOT / file):
            outcome = known.get(change.key)
            if outcome in NOTICED:
                found[change.key] = outcome
                continue
            if outcome is None and int(change.key, 16) % session.config.getoption("every") != 0:
                continue
            place = (file, change.function)
            own = named_after(file, items)
            numbers = to_ask({*own, *clean.calls.get(place, ())}, own, clean.work)
            numbers.sort(key=lambda n: (-noticed[n], clean.work[n]))
            tests = [timed[number] for number in numbers]
            if change.function not in unchanged:
                outcome, by = became_of(
                    replace(change, after=change.before), functions[place], tests
                )
                if outcome in NOTICED:
                    failed = "a test" if by is None else tests[by][0].nodeid
                    pytest.exit(f"{failed} fails where {place} is as it stands", returncode=1)
                unchanged.add(change.function)
            found[change.key], by = became_of(change, functions[place], tests)
            if by is not None:
                noticed[numbers[by]] += 1
            if len(found) % 20 == 0:
                outcomes[file] = known | found
                path.write_text(json.dumps(outcomes), encoding="utf-8")
        outcomes[file] = found
        path.write_text(json.dumps(outcomes), encoding="utf-8")
        survived = sum(outcome not in NOTICED for outcome in found.values())
        print(f"{file}: {len(found) - survived} of {len(found)} noticed", flush=True)
    return True


def clean_run(items: Sequence[pytest.Item]) -> CleanRun:
    """Each test by itself, so that what it calls is known, fixtures included."""
    entered: set[CodeType] = set()
    prefix = f"{ROOT}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        entered.add(frame.f_code)

    calls: dict[Function, list[int]] = defaultdict(list)
    failed, seconds, work = [], [], []
    for number, item in enumerate(items):
        forget_results()
        entered.clear()
        started, worked = time.perf_counter(), sum(os.times()[:4])
        threading.settrace(note)
        sys.settrace(note)
        passed = passes(item, None)
        sys.settrace(None)
        seconds.append(time.perf_counter() - started)
        work.append(sum(os.times()[:4]) - worked)
        threading.settrace(None)
        ours = {code for code in entered if code.co_filename.startswith(prefix)}
        for function in {(code.co_filename[len(prefix) :], outermost(code)) for code in ours}:
            calls[function].append(number)
        failed += [] if passed else [item.nodeid]
    return CleanRun(failed, seconds, work, dict(calls), list(sys.modules))


def forget_results() -> None:
    """Clear the caches of our functions, so that each test that needs one calls it."""
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in ("harness", "problem"):
            for value in vars(module).values():
                if isinstance(value, _lru_cache_wrapper):
                    value.cache_clear()


class EndAtFailure:
    """To write out how a test failed takes longer than most tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            raise call.excinfo.value


def passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, False, following))


def named_after(file: str, items: Sequence[pytest.Item]) -> list[int]:
    """A file's own tests; they are asked, too, of a function that they call in a fork only."""
    name = f"test_{Path(file).stem}"
    return [number for number, item in enumerate(items) if item.path.name.startswith(name)]


def to_ask(tests: Iterable[int], own: Sequence[int], work: Sequence[float]) -> list[int]:
    """Return as many of these tests as there is time for."""
    ordered = sorted(tests, key=lambda number: (number not in own, work[number]))
    ends = accumulate(work[number] for number in ordered)
    return [number for number, end in zip(ordered, ends, strict=True) if end <= ASKED_SECONDS]


def functions_by_place() -> dict[Function, list[FunctionType]]:
    """All that there are; one that is decorated is found behind its decorator."""
    found: dict[Function, list[FunctionType]] = defaultdict(list)
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            code = function.__code__
            with suppress(ValueError):
                file = str(Path(code.co_filename).relative_to(ROOT))
                found[file, outermost(code)].append(function)
    return found


def outermost(code: CodeType) -> str:
    """The name of the function that this is, or is made by."""
    return code.co_qualname.partition(".<locals>")[0]


def became_of(
    change: Change, functions: list[FunctionType], tests: list[tuple[pytest.Item, float]]
) -> tuple[str, int | None]:
    """What became of a change that these tests could notice, which take so many seconds as a rule;
    and by which it was noticed, if one came so far."""

    def attempt() -> tuple[str, int | None]:
        try:
            change.apply_to(functions)
        except ValueError:  # of a function within a function that has other variables now
            return "untried", None
        number = 0
        tests[0][0].config.pluginmanager.register(EndAtFailure())
        try:
            for number, (test, seconds) in enumerate(tests):
                limit(SLOWER * seconds + SPARE_SECONDS)
                following = tests[number + 1][0] if number + 1 < len(tests) else None
                if not passes(test, following):
                    return "noticed", number
        except BaseException:
            return "noticed", number
        return "survived", None

    if not tests or not functions:
        return "untested", None
    return in_child(attempt, quiet=True) or ("endless", None)


def limit(seconds: float) -> None:
    """Let this process end if it takes longer from now on."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 6 * seconds)


def in_child(work: Callable[[], Any], quiet: bool = False) -> Any:
    """The result of this work in a child process; None where it does not come to its end."""
    with tempfile.NamedTemporaryFile() as said:
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                if quiet:
                    nothing = os.open(os.devnull, os.O_RDWR)
                    for descriptor in (0, 1, 2):
                        os.dup2(nothing, descriptor)
                said.write(pickle.dumps(work()))
                said.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with suppress(ProcessLookupError):  # what it has started and left behind
            os.killpg(child, signal.SIGKILL)
        said.seek(0)
        text = said.read()
    return pickle.loads(text) if text else None
