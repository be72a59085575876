"""The command line of the lab: `python -m lab`."""

import sys

from harness import bootstrap


def main() -> int:
    startup = bootstrap.Startup()
    bootstrap.enter_environment("lab")

    from harness.cli.main import main
    from lab import commands

    return main(sys.argv[1:], commands, started=startup.over)


if __name__ == "__main__":
    sys.exit(main())
