"""A click group that prints each failure as one line on stderr and exits with 1."""

import sys
from typing import Any

import click


class OneLineErrors(click.Group):
    """Prints every failure in one line, including wrong usage and unexpected exceptions."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  as click's own
        """Run the command line and exit."""
        from chalicelib.core.errors import AppError  # noqa: PLC0415  the help does not need the service

        try:
            status = super().main(*args, **{**options, "standalone_mode": False})
            sys.exit(status if isinstance(status, int) else 0)
        except click.ClickException as error:
            line = error.format_message()
        except click.Abort:
            line = "Stopped."
        except AppError as error:
            line = error.message
        except Exception as error:  # noqa: BLE001  operators read one line, not a traceback
            from infra.deploy.aws.errors import explain  # noqa: PLC0415  botocore takes a while to import

            line = explain(error) or f"{type(error).__name__}: {error}"
        click.echo(" ".join(line.split()), err=True)
        sys.exit(1)
