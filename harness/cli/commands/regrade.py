"""Grade unverified results and those of other versions again, show the changes, and enter them.

examples:
  python3 -m harness regrade
  python3 -m harness regrade --gpu H100 --yes
"""

import argparse
from collections.abc import Iterable

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.board.entry import Version
from harness.board.ranking import rank
from harness.board.regrade import Change, as_data, regrade, to_regrade
from harness.cli.commands._arguments import add_filters, add_json, add_store, chosen, write_json
from harness.cli.commands._command import Exit
from harness.cli.commands._stores import open_store, read_all
from harness.cli.views.console import Terminal
from harness.judge import figures
from harness.judge.grade import grade
from harness.judge.workers import session as workers
from harness.protocol.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    add_filters(parser, "regrade only these results")
    parser.add_argument("--yes", action="store_true", help="enter the new results without asking")
    add_json(parser, "the changes")
    add_store(parser)
    parser.set_defaults(starts_workers=True)


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    kept = arguments.store.sibling(".regraded.jsonl")
    with open_store(arguments.store, key=arguments.key) as store:
        todo = to_regrade(rank(store.entries(), chosen(arguments)), Version.current())
        if not todo:
            terminal.show(f"Nothing to regrade: every score is verified, by {Version.current()}.")
            return Exit.YES
        if kept.exists():
            raise UsageError(
                f"{kept} holds a regrading that was not entered: `import {kept}` it or delete it."
            )
        changes = []
        with workers.open_session("auto") as session:
            for change in regrade(store, todo, lambda found: grade(found, session), kept):
                changes.append(change)
                terminal.show(Text(f"{len(changes)} of {len(todo)}: {change.why}", "dim"))
        terminal.show(screen(changes))
        write_json(arguments, terminal, as_data(changes))
        if not kept.exists():
            terminal.show("Nothing to enter.")
            return Exit.NO
        if not (arguments.yes or terminal.confirm("Enter these results?")):
            terminal.show(
                f"Nothing was entered. The new reports are in {kept}: `import` applies them."
            )
            return Exit.NO
        entered = store.enter_documents(read_all(kept))
        kept.unlink()
    terminal.show(f"{entered.new} new results entered.")
    return Exit.YES


def screen(changes: Iterable[Change]) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    for heading in ("Kernel", "Author", "Before", "After", "Change", ""):
        right = heading in ("Before", "After", "Change")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for change in changes:
        before, after = change.before, change.after
        scored = after is not None and after.score is not None
        table.add_row(
            before.name,
            before.author,
            figures.ratio(before.score),
            figures.ratio(after.score if after else None),
            figures.change(before.score or 1, after.score or 1) if after and scored else "",
            Text(change.why, "" if change.applies else "yellow"),
        )
    return table
