"""Shares botocore's descriptions of AWS services among all sessions of a process.

A session reads the description of a service, up to 10 MB as objects, for its first client. Code and
tests create many sessions, and this took a worker up to 300 MB. The loaders of one folder of data
are equal, so here they have one cache.
"""

from typing import Any

from botocore.loaders import Loader

_caches: dict[tuple[str, ...], dict[Any, Any]] = {}


def share() -> None:
    """Let all loaders with the same folders use one cache, for the rest of the process."""

    def cache_of(loader: Loader) -> dict[Any, Any]:
        return _caches.setdefault(tuple(loader.search_paths), {})

    def ignore(_: Loader, __: dict[Any, Any]) -> None:
        """Leave the shared cache in place: a new loader sets an empty one of its own."""

    Loader._cache = property(cache_of, ignore)
