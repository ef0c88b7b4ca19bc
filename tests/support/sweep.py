"""Checks many values in one test, and reports each value that fails.

A parametrised test costs two milliseconds for each value, in pytest and in the exchange between
processes. For a check of declarations that is more than the check itself. A check that changes
what is stored needs ``parametrize``, which restores it in between.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

from tests.support.selection import is_about_others

FAILURES = (Exception, pytest.fail.Exception)
MAX_SHOWN = 10
"""Maximum number of failures that are shown in full."""


def sweep(
    names: str | tuple[str, ...], values: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test for each value of an argument, or of several, in one test.

    The test fails after the last value with an exception group. A note of each exception has its
    value. ``--operations`` leaves values out, as it does tests.
    """
    arguments = (names,) if isinstance(names, str) else names
    all_values = list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def check_all(*args: Any, **fixtures: Any) -> None:
            failures = []
            for value in all_values:
                parts = (value,) if isinstance(names, str) else value
                if any(map(is_about_others, parts)):
                    continue
                try:
                    test(*args, **fixtures, **dict(zip(arguments, parts, strict=True)))
                except FAILURES as failure:
                    failure.add_note(f"{', '.join(arguments)} = {_format(value)}")
                    failures.append(failure)
            assert all_values, "the sweep has no values"
            if failures:
                message = f"{len(failures)} of {len(all_values)} fail"
                raise BaseExceptionGroup(message, failures[:MAX_SHOWN])

        signature = inspect.signature(test)
        others = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.name not in arguments
        ]
        check_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return check_all

    return decorate


def _format(value: Any) -> str:
    parts = value if isinstance(value, tuple) else (value,)
    return ", ".join(str(getattr(part, "name", part)) for part in parts)
