"""Paths of categories as text: ``Tea / Black``, with a backslash before a slash of a name."""

import re
from collections.abc import Iterable

_NAME = re.compile(r"(?:\\[\\/]|[^/])+")


def path_text(names: Iterable[str]) -> str:
    r"""Return the path of a category.

    >>> path_text(["CD/DVD", "Used"])
    'CD\\/DVD / Used'
    """
    return " / ".join(re.sub(r"[\\/]", r"\\\g<0>", name) for name in names)


def path_names(text: str) -> tuple[str, ...]:
    """Return the names of a category's path, from the top."""
    names = (re.sub(r"\\([\\/])", r"\1", part.strip()) for part in _NAME.findall(text))
    return tuple(filter(None, names))
