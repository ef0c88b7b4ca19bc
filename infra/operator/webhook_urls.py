"""The URL of a stage that a messenger sends updates to."""

import click

from chalicelib.core.settings import settings


def webhook_url(path: str, *, messenger: str, locally: str) -> str:
    """Return the URL of a path for a messenger. ``locally`` says why make dev needs none.

    Raises:
        click.ClickException: the stage has no HTTPS URL.
    """
    base = settings().public_url
    if not base.startswith("https://"):
        msg = (
            f"PUBLIC_URL: expected an HTTPS URL that {messenger} can reach, received {base!r}."
            f" Choose a deployed stage with --stage. make dev needs no webhook: {locally}."
        )
        raise click.ClickException(msg)
    return base + path
