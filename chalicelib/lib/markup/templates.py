"""Environment for Jinja templates, with the options that all templates share."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(*folders: Path, autoescape: bool = True) -> "Environment":
    """Return an environment that renders the templates of folders, which are searched in order."""
    # The import takes 30 ms, and only pages need it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Unless ``autoescape`` is off, every value that is not ``Markup`` is escaped. An undefined name
    # is an error.
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=autoescape,  # noqa: S701  only Markdown and the plain e-mail is not escaped  # nosec B701
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # The templates are a part of the deployment, so looking for changes would only cost time.
        auto_reload=False,
    )
