"""Regular expressions that are compiled by their first use, to keep cold starts short."""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, AnyStr, cast


class _LazyPattern:
    def __init__(self, compile_pattern: Callable[[], Any]) -> None:
        self._compile = compile_pattern

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  an attribute of a pattern
        """Return an attribute of the compiled pattern, and keep it for the next use."""
        value = getattr(self._compile(), name)
        setattr(self, name, value)
        return value


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression for a module's constant.

    It has the methods and attributes of a compiled pattern. The functions of ``re`` do not accept
    it. An invalid pattern raises ``re.error`` at its first use, so a test compiles all of them.
    """
    return cast("re.Pattern[AnyStr]", _LazyPattern(cache(partial(re.compile, pattern, flags))))
