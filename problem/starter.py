"""The starter: a simple, complete and correct kernel."""

from pathlib import Path


def text() -> str:
    return Path(__file__).with_name("starter.cu").read_text(encoding="utf-8")
