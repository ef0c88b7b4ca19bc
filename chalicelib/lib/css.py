"""Style sheets, made smaller."""

import re

_COMMENT = re.compile(r"/\*(?!!).*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s+")
_AROUND = re.compile(r" ?([{};,]) ?|(:) (?!\")")
"""White space that means nothing. A string may hold a colon with a space before its end."""


def minify(style: str) -> str:
    """Return a style sheet without comments and needless white space.

    A comment that begins with ``!``, such as a licence, stays.
    """
    text = _SPACE.sub(" ", _COMMENT.sub("", style))
    return _AROUND.sub(r"\1\2", text).replace(";}", "}").strip()
