"""The commands, one file each: the arguments a command takes, what it calls and shows.

`harness/cli/main.py` finds every module here whose name has no underscore in front. The first line
of its docstring is its summary, in `--help` and in `nox --list`. The rest ends its `--help`;
`arguments` adds its options to a parser, and `run` returns its exit code or raises UsageError.
"""
