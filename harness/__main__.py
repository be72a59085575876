"""`python -m harness`."""

import sys

from harness.judge.workers.isolation import Role
from harness.judge.workers.processes import start_ahead

if __name__ == "__main__":
    # On several GPUs it is another process that compiles.
    elsewhere = any(word.startswith(("-h", "--help", "--gpus")) for word in sys.argv[2:])
    if sys.argv[1:2] in (["grade"], ["explain"]) and not elsewhere:
        start_ahead(Role.COMPILER)  # it starts while the judge does, and is waited for

    from harness.cli.main import main

    sys.exit(main(sys.argv[1:]))
