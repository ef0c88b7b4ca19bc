"""Minify style sheets."""

import re

_COMMENT = re.compile(r"/\*(?!!).*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s+")
_AROUND = re.compile(r" ?([{};,]) ?|(:) (?!\")")
"""White space without a meaning. A colon before a quotation mark may be inside a string."""


def minify_css(style: str) -> str:
    """Return a style sheet without comments and needless white space.

    A comment that begins with ``!``, such as a licence, is kept.
    """
    text = _SPACE.sub(" ", _COMMENT.sub("", style))
    return _AROUND.sub(r"\1\2", text).replace(";}", "}").strip()
