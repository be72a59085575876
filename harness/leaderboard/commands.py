"""The leaderboard's subcommands: leaderboard, submit, export, import, merge, regrade, compare."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import track

from harness.leaderboard import committed, compare, regrade, terminal
from harness.leaderboard.entry import Entry
from harness.leaderboard.ranking import Edition, Filter, rank
from harness.leaderboard.store import DEFAULT_STORE, Document, Store, StoreError
from harness.report import Badge

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

STORE_VARIABLE = "MATMUL_ARENA_STORE"
OK, NO, MISUSE = 0, 1, 2

Run = Callable[[argparse.Namespace], int]


def register(subparsers: Subparsers, grade: regrade.Grader) -> None:
    """Add the leaderboard's subcommands. Each sets `run`, which returns the exit code.

    grade: how `regrade` grades a submission, on the device at hand.
    """
    _leaderboard(subparsers)
    _submit(subparsers)
    _export(subparsers)
    _import(subparsers)
    _merge(subparsers)
    _regrade(subparsers, grade)
    _compare(subparsers)


def default_store() -> Path:
    """Where the store is unless --store says otherwise."""
    return Path(os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)


# ---------------------------------------------------------------------------------- subcommands


def _leaderboard(subparsers: Subparsers) -> None:
    parser = _parser(
        subparsers,
        "leaderboard",
        _show_leaderboard,
        "show the ranking, and write it as a site",
        "leaderboard --badge cuda-cores --site site",
    )
    _filters(parser)
    parser.add_argument(
        "--reports",
        type=Path,
        metavar="DIR",
        help="rank the files DIR/GPU/KERNEL.json instead of a store",
    )
    parser.add_argument(
        "--readme",
        type=Path,
        metavar="FILE",
        help="with --reports: write the table between FILE's board markers",
    )
    parser.add_argument(
        "--solutions",
        type=Path,
        default=Path("solutions"),
        metavar="DIR",
        help="with --readme: the kernels that the reports are of (default: %(default)s)",
    )
    parser.add_argument("--site", type=Path, metavar="DIR", help="write a static site there")
    parser.add_argument("--json", action="store_true", help="print the boards as JSON")


def _show_leaderboard(arguments: argparse.Namespace) -> int:
    with _source(arguments) as (entries, document):
        boards = rank(entries, Edition.current(), _filter(arguments))
        if arguments.site:
            _write_site(arguments, entries, document)
    if arguments.readme:
        _write_readme(arguments)
    if arguments.json:
        _print_json([terminal.as_data(board) for board in boards])
    else:
        terminal.show(Console(), boards, entries)
    return OK if boards else NO


@contextmanager
def _source(
    arguments: argparse.Namespace,
) -> Iterator[tuple[list[Entry], Callable[[str], Document]]]:
    """The entries to rank, and how to get the report of one by its id."""
    if arguments.reports:
        reports = {one.document.id: one for one in committed.read(arguments.reports)}
        yield [one.entry for one in reports.values()], lambda id: reports[id].document
    else:
        with Store(arguments.store) as store:
            yield store.entries(), store.document


def _write_readme(arguments: argparse.Namespace) -> None:
    if not arguments.reports:
        raise StoreError("--readme needs --reports: its table is made from committed reports.")
    reports = committed.read(arguments.reports)
    problems = committed.misfits(reports, arguments.solutions)
    if problems:
        raise StoreError("the README was not written.\n" + "\n".join(problems))
    committed.write(
        arguments.readme, committed.markdown(reports, arguments.solutions, arguments.readme)
    )


def _write_site(
    arguments: argparse.Namespace, entries: list[Entry], document: Callable[[str], Document]
) -> None:
    from harness.leaderboard.site import Site  # its template engine would slow every command

    site = Site(arguments.site, entries, Edition.current(), _filter(arguments))
    site.write_boards()
    console = Console(stderr=True)
    pages = site.write_entries(document)
    written = sum(
        1 for _ in track(pages, "Pages", len(site.entries), console=console, transient=True)
    )
    console.print(
        f"{arguments.site / 'index.html'}: "
        f"submissions: {len(site.entries)}, pages written: {written}.",
        highlight=False,
    )


def _submit(subparsers: Subparsers) -> None:
    parser = _parser(
        subparsers,
        "submit",
        _submit_reports,
        "enter reports that `grade --json` has written",
        "submit report.json --store contest.sqlite",
    )
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.json")


def _submit_reports(arguments: argparse.Namespace) -> int:
    documents = [Document.parse(_read(path), str(path)) for path in arguments.reports]
    return _enter(arguments.store, documents)


def _export(subparsers: Subparsers) -> None:
    parser = _parser(
        subparsers,
        "export",
        _export_reports,
        "write reports as JSON lines, or the source of one entry",
        "export > contest.jsonl",
    )
    parser.add_argument("entries", nargs="*", metavar="ENTRY", help=_ENTRY_HELP + "; default: all")
    parser.add_argument("--source", action="store_true", help="the kernel's source instead")


def _export_reports(arguments: argparse.Namespace) -> int:
    with Store(arguments.store) as store:
        if not arguments.entries:
            if arguments.source:
                raise StoreError("--source needs an ENTRY: whose source?")
            for text in store.texts():
                print(text)
        for name in arguments.entries:
            document = _find(store, name)
            if arguments.source:
                sys.stdout.write(document.report.submission.source)
            else:
                print(document.text)
    return OK


def _import(subparsers: Subparsers) -> None:
    parser = _parser(
        subparsers,
        "import",
        _import_reports,
        "enter the reports of an export; all of them or none",
        "import contest.jsonl --store leaderboard.sqlite",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")


def _import_reports(arguments: argparse.Namespace) -> int:
    return _enter(
        arguments.store, (document for path in arguments.files for document in _lines(path))
    )


def _merge(subparsers: Subparsers) -> None:
    parser = _parser(
        subparsers,
        "merge",
        _merge_stores,
        "enter everything that other stores hold; they are not changed",
        "merge machine-b.sqlite --store machine-a.sqlite",
    )
    parser.add_argument("others", nargs="+", type=Path, metavar="STORE")


def _merge_stores(arguments: argparse.Namespace) -> int:
    return _enter(
        arguments.store, (document for path in arguments.others for document in _all(path))
    )


def _all(path: Path) -> Iterator[Document]:
    with Store(path, "read") as other:
        for text in other.texts():
            yield Document.parse(text, f"an entry of {path}")


def _regrade(subparsers: Subparsers, grade: regrade.Grader) -> None:
    parser = _parser(
        subparsers,
        "regrade",
        _regrade_entries,
        'grade again what the board calls "regrade", and show what changes before it is entered',
        "regrade --gpu H100 --yes",
    )
    _filters(parser)
    parser.add_argument("--yes", action="store_true", help="enter the new results without asking")
    parser.add_argument("--json", action="store_true", help="print the changes as JSON")
    parser.set_defaults(grade=grade)


def _regrade_entries(arguments: argparse.Namespace) -> int:
    kept = arguments.store.with_suffix(".regraded.jsonl")
    console = Console(stderr=arguments.json)
    with Store(arguments.store) as store:
        boards = rank(store.entries(), Edition.current(), _filter(arguments))
        todo = regrade.stale(boards)
        if not todo:
            console.print(f"Nothing to regrade: every scored result is of {Edition.current()}.")
            return OK
        if kept.exists():
            raise StoreError(
                f"{kept} holds a regrading that was not entered: `import {kept}` it or delete it."
            )
        changes = []
        found = regrade.regrade(store, todo, arguments.grade, kept)
        for number, change in enumerate(found, start=1):
            console.print(f"{number} of {len(todo)}: {change.why}", style="dim", highlight=False)
            changes.append(change)
        if arguments.json:
            _print_json(regrade.as_data(changes))
        else:
            regrade.show(console, changes)
        if not kept.exists():
            console.print("Nothing to enter.")
            return NO
        if not (arguments.yes or _agreed(console)):
            console.print(
                f"Nothing was entered. The new reports are in {kept}: `import` applies them."
            )
            return NO
        entered = store.enter_documents(_lines(kept))
        kept.unlink()
    console.print(f"{entered.new} new results entered.")
    return OK


def _compare(subparsers: Subparsers) -> None:
    parser = _parser(
        subparsers,
        "compare",
        _compare_two,
        "two submissions or versions side by side",
        "compare ada/tile report.json",
    )
    parser.add_argument("a", metavar="A", help=_ENTRY_HELP + ", or a report's file")
    parser.add_argument("b", metavar="B", help="the same")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")


def _compare_two(arguments: argparse.Namespace) -> int:
    a, b = (_entry_or_file(arguments.store, name) for name in (arguments.a, arguments.b))
    comparison = compare.compare(a, b)
    if arguments.json:
        _print_json(compare.as_data(comparison))
    else:
        compare.show(Console(), comparison)
    return OK


# -------------------------------------------------------------------------------------- helpers

_ENTRY_HELP = "the beginning of an entry's id, or AUTHOR/NAME for its best run"


def _parser(
    subparsers: Subparsers, name: str, run: Run, summary: str, example: str
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example:\n  python3 -m harness {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--store",
        type=Path,
        default=default_store(),
        metavar="FILE",
        help=f"the store (default: %(default)s; or set {STORE_VARIABLE})",
    )
    parser.set_defaults(run=_explaining(run))
    return parser


def _explaining(run: Run) -> Run:
    """What cannot be done becomes its sentence and exit code 2."""

    def explained(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except StoreError as error:
            print(f"error: {error}", file=sys.stderr)
            return MISUSE
        except BrokenPipeError:
            raise  # who reads our output has seen enough; main knows
        except OSError as error:
            print(f"error: {error.filename or 'output'}: {error.strerror}.", file=sys.stderr)
            return MISUSE

    return explained


def _filters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("who takes part (ranks are given among those alone)")
    group.add_argument("--gpu", metavar="NAME", help="a part of the GPU's name")
    group.add_argument(
        "--badge",
        action="append",
        default=[],
        choices=[badge.value for badge in Badge],
        help="may be given twice",
    )
    group.add_argument("--author", metavar="NAME")
    group.add_argument(
        "--since", type=_day, metavar="YYYY-MM-DD", help="graded on this day (UTC) or later"
    )


def _filter(arguments: argparse.Namespace) -> Filter:
    return Filter(
        gpu=arguments.gpu,
        badges=frozenset(arguments.badge),
        author=arguments.author,
        since=arguments.since,
    )


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write 2026-01-31") from None


def _enter(store: Path, documents: Iterable[Document]) -> int:
    with Store(store, "create") as opened:
        entered = opened.enter_documents(documents)
    known = len(entered.ids) - entered.new
    already = f", {known} already there" if known else ""
    print(f"{entered.new} entered into {store}{already}.")
    return OK


def _lines(path: Path) -> Iterator[Document]:
    """The reports of a file of JSON lines. Raises StoreError where there is none."""
    text = _read(path)
    if not text.strip():
        raise StoreError(f"{path} is empty: it holds no report.")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield Document.parse(line, f"{path}, line {number},")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise StoreError(f"{path} is not UTF-8 text: is it a report?") from None


def _find(store: Store, name: str) -> Document:
    """The entry whose id begins so, or the best run of AUTHOR/NAME."""
    entries = store.entries()
    found = [entry for entry in entries if len(name) >= 4 and entry.id.startswith(name)]
    if not found:
        found = [entry for entry in entries if f"{entry.author}/{entry.name}" == name]
        found.sort(key=lambda entry: (entry.score or 0.0, entry.created))
        found = found[-1:]
    if not found:
        raise StoreError(f"{store.path} has no entry {name}; name {_ENTRY_HELP}.")
    if len(found) > 1:
        raise StoreError(f"{name} is the beginning of {len(found)} ids; write more of it.")
    return store.document(found[0].id)


def _entry_or_file(store: Path, name: str) -> Document:
    path = Path(name)
    if path.is_file():
        return Document.parse(_read(path), name)
    with Store(store) as opened:
        return _find(opened, name)


def _agreed(console: Console) -> bool:
    if not sys.stdin.isatty():
        return False
    return console.input("Enter these results? [y/N] ").strip().lower() in ("y", "yes")


def _print_json(data: object) -> None:
    print(json.dumps(data, ensure_ascii=False, indent=2))
