"""A click group whose failures are one line on stderr and exit 1 (contract)."""

import sys
from typing import Any

import click


class OneLineErrors(click.Group):
    """Says what went wrong in one line, mistyped calls and surprises included."""

    def main(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401  as click's own
        """Run the command line and exit."""
        from chalicelib.core.errors import AppError  # noqa: PLC0415  the help needs no service

        try:
            status = super().main(*args, **{**options, "standalone_mode": False})
            sys.exit(status if isinstance(status, int) else 0)
        except click.ClickException as error:
            line = error.format_message()
        except click.Abort:
            line = "Stopped."
        except AppError as error:
            line = error.message
        except Exception as error:  # noqa: BLE001  an operator reads a line, not a traceback
            from infra.deploy.aws.errors import explain  # noqa: PLC0415  botocore takes a while to import

            line = explain(error) or f"{type(error).__name__}: {error}"
        click.echo(" ".join(line.split()), err=True)
        sys.exit(1)
