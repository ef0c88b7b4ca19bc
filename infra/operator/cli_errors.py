"""Failures of command lines as one line on stderr, with exit status 1."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click


@contextmanager
def report_errors_in_one_line() -> Iterator[None]:
    """Print a failure in one line and exit, unexpected exceptions included."""
    from chalicelib.core.errors import AppError  # noqa: PLC0415  the help does not need the service

    try:
        yield
    except click.ClickException as error:
        line = error.format_message()
    except click.Abort:
        line = "Stopped."
    except AppError as error:
        reason = f"{error.code}: {error.key}" if error.key else error.code
        line = f"{error.message} ({reason})"
    except Exception as error:  # noqa: BLE001  operators read one line, not a traceback
        from infra.deploy.aws.errors import explain  # noqa: PLC0415  botocore takes a while to import

        line = explain(error) or f"{type(error).__name__}: {error}"
    else:
        return
    click.echo(" ".join(line.split()), err=True)
    sys.exit(1)


class OneLineErrors(click.Group):
    """A group that prints every failure in one line, including wrong usage."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  as click's own
        """Run the command line and exit."""
        with report_errors_in_one_line():
            status = super().main(*args, **{**options, "standalone_mode": False})
        sys.exit(status if isinstance(status, int) else 0)
