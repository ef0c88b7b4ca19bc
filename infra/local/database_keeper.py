"""The process that runs the database of a ``chalice local`` started by hand.

Autoreload replaces the process that serves requests after each edit. The database therefore belongs
to this process, which runs as long as the command: ``python -m infra.local.database_keeper PID``.
"""

import signal
import sys
import time
from contextlib import ExitStack

from infra.local import supervisor
from infra.local.dynamodb import SetupError
from infra.local.stack import InUseError, LocalStack, open_database, take_folder

LOOK_SECONDS = 0.5
"""Seconds between checks that the database still runs."""


def main(pid: int) -> int:
    """Run the database until the process ``pid`` ends, and return the exit status."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)
    stack = LocalStack.from_environment()
    with ExitStack() as started:
        try:
            supervisor.end_with(pid)
            take_folder(stack, started)
            database = open_database(stack, started)
            while database.server and database.server.running:
                time.sleep(LOOK_SECONDS)
        except InUseError:
            pass  # Another process locked the folder first. Its database is used.
        except SetupError as error:
            print(f"chalice local: {error}", file=sys.stderr, flush=True)
            return 1
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
