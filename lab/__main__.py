"""`python -m lab`: the commands of the lab."""

import sys

from harness.cli.main import main
from lab import commands

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], commands))
