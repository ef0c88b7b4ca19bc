"""Code that the packager compiled instead of the standard library at each start (ADR 22)."""

import collections
import dataclasses
import marshal
import re
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from re import _compiler  # type: ignore[attr-defined]  # private, so not in the stubs
from types import CodeType
from typing import Any

# The methods of dataclasses and named tuples, type hints in strings, and regular expressions have
# only their source until a module is imported. Compiling them takes a quarter of a cold start.
# ``infra.deploy.package.manifest`` writes a table of these sources with their code. A source that
# is not in the table is compiled as always.
PACKAGE = Path(__file__).parents[1]
# The name has the version of Python and of regular expressions, because code fits only one.
TABLE = PACKAGE / f"precompiled.{sys.implementation.cache_tag}.{_compiler.MAGIC}"

# A source, with "exec", "eval" or the flags of a regular expression.
Key = tuple[str | bytes, str | int]
Pattern = re.Pattern[Any]


def use() -> None:
    """Have the standard library take code from the table, if the package has one."""
    if not TABLE.exists():
        return
    table: dict[Key, bytes] = marshal.loads(TABLE.read_bytes())  # noqa: S302  our own file  # nosec B302
    compile_pattern: Callable[[str | bytes, int], Pattern] = _compiler.compile
    pattern_of: Callable[..., Pattern] = _compiler._sre.compile  # noqa: SLF001  no public way

    def code(source: str, mode: str) -> CodeType:
        packed = table.get((source, mode))
        return compiled(source, mode=mode) if packed is None else marshal.loads(packed)  # noqa: S302  our own file  # nosec B302

    def pattern(source: str | bytes, flags: int = 0) -> Pattern:
        packed = table.get((source, int(flags)))
        if packed is None:
            return compile_pattern(source, flags)
        return pattern_of(source, *marshal.loads(packed))  # noqa: S302  our own file  # nosec B302

    replace(code, pattern)


def replace(
    code: Callable[[str, str], CodeType], pattern: Callable[[str | bytes, int], Pattern]
) -> None:
    """Have the standard library compile source and regular expressions with these functions."""
    # A global name of a module hides the built-in function that the module calls.
    vars(dataclasses)["exec"] = lambda source, *names: exec(code(source, "exec"), *names)  # noqa: S102  the standard library's own source  # nosec B102
    vars(collections)["eval"] = lambda source, *names: eval(code(source, "eval"), *names)  # noqa: S307  the standard library's own source  # nosec B307
    vars(typing)["compile"] = lambda source, _file, mode: code(source, mode)
    _compiler.compile = pattern


def compiled(source: str, *, mode: str) -> CodeType:
    """Compile a source as the standard library does."""
    return compile(source, "<string>", mode, dont_inherit=True)
