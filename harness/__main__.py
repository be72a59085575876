"""`python -m harness`."""

import sys

from harness import bootstrap


def main() -> int:
    startup = bootstrap.Startup()
    bootstrap.enter_environment("harness")

    from harness.judge.workers import processes
    from harness.judge.workers.isolation import Role

    helps = any(word.startswith(("-h", "--help")) for word in sys.argv[2:])
    if sys.argv[1:2] in (["grade"], ["explain"]) and not helps:
        # The compiler starts while the judge does, and is waited for.
        startup.undo = processes.end_ahead
        startup.run(lambda: processes.start_ahead(Role.COMPILER))

    from harness.cli.main import main

    return main(sys.argv[1:], started=startup.over)


if __name__ == "__main__":
    sys.exit(main())
