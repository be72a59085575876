"""`python -m harness`."""

import sys

from harness.workers.isolation import Role
from harness.workers.processes import start_ahead

if __name__ == "__main__":
    if sys.argv[1:2] == ["grade"] and not {"-h", "--help"} & {*sys.argv}:
        start_ahead(Role.COMPILER)  # it starts while the judge does, and is waited for

    from harness.cli import main

    sys.exit(main(sys.argv[1:]))
