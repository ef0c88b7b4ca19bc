"""Minify style sheets."""

import re

# A comment that begins with ``!``, such as a licence, is kept.
_COMMENT = re.compile(r"/\*(?!!).*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s+")
# White space without a meaning. A colon before a quotation mark may be inside a string.
_AROUND = re.compile(r" ?([{};,>]) ?|(:) (?!\")")
_ZERO = re.compile(r"(?<=[ :(,-])0(?=\.\d)")  # of 0.5


def minify_css(style: str) -> str:
    """Return a style sheet without needless white space and comments, except those with ``/*!``."""
    text = _SPACE.sub(" ", _COMMENT.sub("", style))
    return _ZERO.sub("", _AROUND.sub(r"\1\2", text)).replace(";}", "}").strip()
