"""Arguments that several commands take, and the values that they give."""

import argparse
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from harness.board.ranking import Filter
from harness.cli.commands._stores import DEFAULT_STORE, Address
from harness.cli.views.console import Terminal
from harness.protocol.compiler import ARCHITECTURES
from harness.protocol.files import write_whole
from harness.protocol.report import Badge
from problem.cases import Shape

STORE_VARIABLE = "MATMUL_ARENA_STORE"

MAX_SEED = (1 << 63) - 1
MAX_PRODUCTS = 1 << 33
"""The largest M·N·K whose accesses the CPU device counts within minutes."""


def add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store",
        type=Address,
        default=Address(os.environ.get(STORE_VARIABLE) or DEFAULT_STORE.text),
        metavar="STORE",
        help="the leaderboard: a file, the folder of an arena, or postgresql://OWNER@HOST/DATABASE "
        f"(default: %(default)s; or set {STORE_VARIABLE})",
    )
    parser.add_argument(
        "--key",
        type=Path,
        metavar="FILE",
        help="the key that signs results (default: next to the store, or in the arena's folder)",
    )


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --json to a command. With - for standard output, people read standard error (main.py)."""
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help=f"write {what} as JSON; - for standard output"
    )


def write_json(
    arguments: argparse.Namespace, terminal: Terminal, result: BaseModel | list[dict[str, Any]]
) -> None:
    """Write a result where --json says, if it does."""
    if arguments.json is None:
        return
    text = (
        result.model_dump_json(indent=2)
        if isinstance(result, BaseModel)
        else json.dumps(result, ensure_ascii=False, indent=2)
    )
    if str(arguments.json) == "-":
        terminal.json(text)
    else:
        write_whole(arguments.json, text + "\n")


def add_seed(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument(
        "--seed", type=number("a seed is a whole number", 0, MAX_SEED), metavar="N", help=help
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device to a command that runs kernels on either device."""
    parser.add_argument(
        "--device",
        choices=("auto", "cuda", "cpu"),
        default="auto",
        help="the device that runs kernels (default: a GPU, if there is one)",
    )
    parser.set_defaults(starts_workers=True)


def add_arch(parser: argparse.ArgumentParser) -> None:
    """Add --arch, which chooses the CPU device."""
    parser.add_argument(
        "--arch",
        choices=ARCHITECTURES,
        metavar="ARCH",
        help=f"compile for this GPU and grade on the CPU device: {', '.join(ARCHITECTURES)} "
        "(default there: sm_90a)",
    )


def add_filters(parser: argparse.ArgumentParser, title: str) -> None:
    """Add the options that select results, as a group with this title."""
    group = parser.add_argument_group(title)
    group.add_argument("--gpu", metavar="NAME", help="a part of the GPU's name")
    group.add_argument(
        "--badge",
        action="append",
        default=[],
        choices=[badge.value for badge in Badge],
        metavar="BADGE",
        help=f"{', '.join(badge.value for badge in Badge)}; may be given twice",
    )
    group.add_argument(
        "--accuracy", choices=("A", "B", "C"), help="this accuracy grade or a better one"
    )


def chosen(arguments: argparse.Namespace) -> Filter:
    """Return the filter that the options of add_filters describe."""
    return Filter(gpu=arguments.gpu, badges=frozenset(arguments.badge), accuracy=arguments.accuracy)


def number(what: str, low: int, high: int) -> Callable[[str], int]:
    """Return the reader of a whole number in this range. what: how the error begins."""

    def read(text: str) -> int:
        digits = text.strip()
        found = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 20 else -1
        if not low <= found <= high:
            raise argparse.ArgumentTypeError(f"{what} from {low} to {high}, not {text!r}")
        return found

    return read


count = number("workers are a number", 1, 1000)


def parse_shape(text: str) -> Shape:
    """Return the shape that a text such as 256x256x256 names. Raises ArgumentTypeError."""
    sizes = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text, re.ASCII)
    if sizes is None:
        raise argparse.ArgumentTypeError(f"a shape is MxNxK, such as 256x256x256, not {text!r}")
    M, N, K = map(int, sizes.groups())
    if M * N * K > MAX_PRODUCTS:
        raise argparse.ArgumentTypeError(
            f"{text} has {M * N * K:.1e} products, too many to count; at most {MAX_PRODUCTS:.1e}, "
            "such as 2048x2048x2048"
        )
    return Shape(M, N, K)
