"""The command line, a file a command: what it takes, and what it calls.

`harness/cli.py` finds every module here whose name has no underscore in front. The first line of
its docstring is its summary, in `--help` and in `nox --list`.
"""
