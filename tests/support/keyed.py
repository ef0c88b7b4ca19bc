"""Expect an error by its key and its facts, because its sentence may change.

The functions return the ``check`` of ``pytest.raises``.
"""

from collections.abc import Callable

from chalicelib.core.errors import AppError
from chalicelib.gateways.public_http import FetchError


def keyed(key: str, **facts: object) -> Callable[[AppError], bool]:
    """Expect an error with this key and these facts."""
    return lambda error: error.key == key and facts.items() <= error.details.items()


def failed(key: str, *named: str) -> Callable[[FetchError], bool]:
    """Expect a failed request with this key, whose reason names these hosts or values."""
    return lambda error: error.key == key and all(each in error.reason for each in named)
