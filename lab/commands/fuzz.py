"""Add small errors to correct kernels, and report those that the judge accepts.

An oracle, which knows where each mutant may be wrong, checks it; if it is
wrong, it is graded. Accepted ones are listed with the seed that repeats the
grading.

examples:
  nox -s lab -- fuzz --minutes 10
  nox -s lab -- fuzz --minutes 60 --json reports/fuzz.json solutions/0*.cu
"""

import argparse
import hashlib
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tree_sitter import Node

from harness import __version__
from harness.cli.commands._command import Exit
from harness.cli.commands.grade import SOLUTIONS
from harness.cli.views.console import Terminal
from harness.compiling.syntax import text_of, walked
from harness.judge.grade import GradingOptions, grade
from harness.judge.grading import Grading, launch_inputs
from harness.judge.progress import Silent
from harness.judge.session import Session
from harness.judge.stages.outcomes import launch_outcome
from harness.judge.stages.verify import prepare, run_cases
from harness.judge.submission import read_kernel
from harness.judge.workers.session import open_session
from harness.protocol.compiler import Compile, Compiled
from harness.protocol.device import Load, Ready, Sanitize, Sanitized
from harness.protocol.files import write_whole
from harness.protocol.report import Stage, Submission, Tool, Value
from harness.protocol.request import Fault
from problem.cases import CASES_VERSION, UNIFORM, Case, Shape
from problem.problem import MATRIX_MULTIPLICATION as PROBLEM


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE.cu",
        help="correct kernels (default: 01 to 08 of solutions/)",
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="how long (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, help="repeats the mutants of another run")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all that was tried")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    paths = arguments.files or sorted(SOLUTIONS.glob("0[1-8]*.cu"))
    kernels = [*map(read_kernel, paths)]
    seed = random.SystemRandom().getrandbits(40) if arguments.seed is None else arguments.seed
    started = time.monotonic()
    tried: list[Tried] = []
    with open_session("cpu") as session:
        try:
            for each in until(started + 60 * arguments.minutes, fuzz(session, kernels, seed)):
                tried.append(each)
                words = f"{each.kernel}:{each.line} {each.change}, {each.guard}"
                found = f"{each.verdict or 'not wrong'}{', MISSED' if each.missed else ''}"
                terminal.show(f"{len(tried)}  {words}: {found}")
        finally:
            record = Record(
                seed=seed,
                seconds=time.monotonic() - started,
                judge=__version__,
                cases=CASES_VERSION,
                device=session.info.name,
                tried=tuple(tried),
            )
            if arguments.json:
                write_whole(arguments.json, record.model_dump_json(indent=1))
    wrong = Counter((each.change, each.guard) for each in tried if each.wrong)
    missed = Counter((each.change, each.guard) for each in tried if each.missed)
    for kind, count in sorted(wrong.items()):
        terminal.show(f"{', '.join(kind)}: {count} wrong, {missed[kind]} of them accepted")
    total = f"{wrong.total()} wrong, {missed.total()} of them accepted"
    terminal.show(f"{len(tried)} mutants, {total}; seed {seed}")
    return Exit.NO if missed else Exit.YES


SECONDS = 20.0
SMALL_SHAPES = 60
"""Shapes of up to 80 rows and columns that the oracle tries."""


class Guard(NamedTuple):
    """A condition on the kernel's variables, and shapes that meet it in some block."""

    name: str
    condition: str
    shapes: tuple[Shape, ...]


GUARDS = (
    Guard("always", "", ()),
    Guard("many rows", "M > 1500", (Shape(1501, 37, 33), Shape(1600, 64, 64))),
    Guard("large product", "(long long)M * K > 1 << 20", (Shape(1040, 33, 1030),)),
    Guard("K modulo 48", "K % 48 == 16", (Shape(33, 50, 64), Shape(64, 64, 112))),
    Guard("one K", "K == 1000", (Shape(20, 45, 1000),)),
    Guard("one block", "blockIdx.x == 37 && blockIdx.y == 2", (Shape(64, 40, 720),)),
    Guard("after five launches", "atomicAdd(&launches, 0) > 5 * 256", ()),
)

COUNTER = """
__device__ unsigned launches;
"""
COUNT = "if (blockIdx.x == 0 && blockIdx.y == 0) atomicAdd(&launches, 1);"


class Change(NamedTuple):
    """The text that replaces the bytes from start to end. `{guard}` stands for the condition."""

    name: str
    line: int
    start: int
    end: int
    text: str


class Mutant(NamedTuple):
    change: Change
    guard: Guard
    source: str


class Tried(Value):
    """A mutant, and the results of oracle and judge."""

    kernel: str
    change: str
    line: int
    guard: str
    wrong: str = ""
    """The error that the oracle found; empty if it found none."""
    verdict: str = ""
    """The judge's verdict; empty if the oracle found no error, since the mutant was not graded
    then."""
    seed: int = 0
    """The seed of the grading."""

    @property
    def missed(self) -> bool:
        return bool(self.wrong) and self.verdict == "accepted"


class Record(Value):
    """All mutants of one run."""

    seed: int
    seconds: float
    judge: str
    cases: int
    device: str
    tried: tuple[Tried, ...]


def changes(source: str) -> list[Change]:
    """Return all changes that can be made to the kernel's code."""
    found: list[Change] = []
    for node in walked(source.encode()).nodes:
        text, line = text_of(node), node.start_point[0] + 1

        def add(name: str, changed: str, line: int = line, node: Node = node) -> None:
            found.append(Change(name, line, node.start_byte, node.end_byte, changed))

        if node.type == "expression_statement" and re.match(r"__sync(threads|warp)\b", text):
            add("barrier dropped", f"if (!({{guard}})) {{{{ {text} }}}}")
        elif node.type == "expression_statement" and text.startswith("__threadfence"):
            add("fence dropped", f"if (!({{guard}})) {{{{ {text} }}}}")
        elif node.type == "assignment_expression" and "+=" in text and "*" in text:
            left, right = (each.strip() for each in text.split("+=", 1))
            cut = f"__uint_as_float(__float_as_uint({left} + {right}) & 0xfffff800u)"
            add("sum loses bits", f"{left} = ({{guard}}) ? {cut} : {left} + ({right})")
            add("term dropped", f"{left} += ({{guard}}) && threadIdx.x == 3 ? 0.0f : ({right})")
        elif node.type == "init_declarator" and _is_index(node):
            name, value = text.split("=", 1)
            add("type narrowed", f"{name}= ({{guard}}) ? (unsigned char)({value}) : ({value})")
        elif node.type == "binary_expression" and node.child_count == 3:
            operator = node.children[1].type
            above = node.parent.type if node.parent is not None else ""
            left, right = text_of(node.children[0]), text_of(node.children[2])
            if (
                operator in {"<", ">="}
                and re.fullmatch(r"[MNK]", right)
                and above != "for_statement"
            ):
                loose = "<=" if operator == "<" else ">"
                add("bound loosened", f"(({{guard}}) ? {left} {loose} {right} : {text})")
            elif operator == "<" and above == "for_statement" and re.search(r"\bN\b", right):
                add("last step dropped", f"{left} + (({{guard}}) ? 1 : 0) < {right}")
    return found


def _is_index(declarator: Node) -> bool:
    """Return whether this declares an int that is computed from the index of the block."""
    declaration = declarator.parent
    kind = declaration.child_by_field_name("type") if declaration is not None else None
    by_index = re.search(r"\bblockIdx\b", text_of(declarator))
    return kind is not None and text_of(kind) == "int" and by_index is not None


def mutant(source: str, change: Change, guard: Guard) -> Mutant:
    """Return the source with the change under the guard."""
    code = source.encode()
    text = change.text.format(guard=guard.condition or "true")
    changed = code[: change.start] + text.encode() + code[change.end :]
    if "launches" in guard.condition:
        body = re.search(rb"matrix_multiplication_kernel\s*\([^)]*\)\s*\{", changed)
        if body is not None:
            place = body.end()
            changed = changed[:place] + COUNT.encode() + changed[place:]
        changed = COUNTER.encode() + changed
    return Mutant(change, guard, changed.decode())


def oracle(session: Session, source: str, guard: Guard, generator: random.Random) -> str | None:
    """Return the error of a kernel, "" if none is found; None if it does not compile or load."""
    compiled = session.compiler.ask(Compile(source=source, arch=session.arch))
    if not isinstance(compiled, Compiled):
        return None
    if not isinstance(session.device.ask(Load(kernel=compiled.kernel)), Ready):
        return None
    few = [Shape(*(generator.randint(1, 80) for _ in "MNK")) for _ in range(SMALL_SHAPES)]
    drawn = (
        prepare(PROBLEM, Case(each, UNIFORM), generator.getrandbits(40))
        for each in (*guard.shapes, *few)
    )
    submission = Submission(name="", author=None, sha256="0" * 64, source=source)
    options = GradingOptions(seed=0, seconds=SECONDS)
    grading = Grading(submission, session, options, Silent(), PROBLEM, compiled=compiled)
    failure = run_cases(grading, drawn, [])
    if failure is not None:
        return f"{failure.outcome.verdict.value} at {failure.case}"
    if not isinstance(session.sanitizer.ask(Load(kernel=compiled.kernel)), Ready):
        return None
    cases = [Case(shape, UNIFORM) for shape in (*guard.shapes[:1], Shape(40, 70, 50))]
    launches = [launch_inputs(PROBLEM, case, PROBLEM.draw(case, 1)) for case in cases]
    request = Sanitize(launches=tuple(launches), tools=tuple(Tool), seconds=SECONDS)
    answer = session.sanitizer.ask(request)
    if isinstance(answer, Fault):
        return launch_outcome(answer, launches[0].shape, SECONDS, Stage.SANITIZE).verdict.value
    assert isinstance(answer, Sanitized)
    return answer.findings[0].message if answer.findings else ""


def fuzz(session: Session, kernels: Sequence[Submission], seed: int) -> Iterator[Tried]:
    """Yield mutants of these kernels and their results, without end.

    A mutant is a kernel with one change. A barrier, a fence, a bound or a term is removed, a sum
    loses bits, or an index becomes too narrow. A condition on the shape, the block or the number of
    launches may guard the change. Then it takes effect in some launches only. The oracle knows the
    condition and runs shapes that meet it, while the judge draws its own shapes.
    """
    generator = random.Random(seed)
    places = {kernel.name: changes(kernel.source) for kernel in kernels}
    chosen = [kernel for kernel in kernels if places[kernel.name]]
    while chosen:
        kernel = generator.choice(chosen)
        kinds = sorted({change.name for change in places[kernel.name]})
        kind = generator.choice(kinds)
        change = generator.choice([each for each in places[kernel.name] if each.name == kind])
        made = mutant(kernel.source, change, generator.choice(GUARDS))
        session.start(cpu_sanitizer=True)
        try:
            wrong = oracle(session, made.source, made.guard, generator)
        finally:
            session.renew()
        if wrong is None:
            continue
        tried = Tried(
            kernel=kernel.name,
            change=change.name,
            line=change.line,
            guard=made.guard.name,
            wrong=wrong,
        )
        if wrong:
            chosen_seed = generator.getrandbits(40)
            digest = hashlib.sha256(made.source.encode()).hexdigest()
            submission = kernel.model_copy(update={"sha256": digest, "source": made.source})
            report = grade(submission, session, GradingOptions(seed=chosen_seed, seconds=SECONDS))
            found = {"verdict": report.verdict.value, "seed": chosen_seed}
            tried = tried.model_copy(update=found)
        yield tried


def until(deadline: float, found: Iterator[Tried]) -> Iterator[Tried]:
    """Yield the results found before a time of the monotonic clock."""
    for tried in found:
        yield tried
        if time.monotonic() > deadline:
            return
