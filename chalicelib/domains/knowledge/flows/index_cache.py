"""Copies of the index files used last, on the local disk (``/tmp`` on Lambda).

A file never changes under its key, so a copy is valid for ever.
"""

import atexit
import shutil
import tempfile
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import NamedTuple

from chalicelib.gateways.object_store import object_store

MAX_FILES = 20
MAX_BYTES = 100 * 2**20
LOADERS = 4  # files that a process loads at the same time


class _Copy(NamedTuple):
    path: Path
    size: int


class IndexCache:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(LOADERS, "knowledge-index")
        self._loading: dict[str, Future[Path]] = {}
        self._copies: OrderedDict[str, _Copy] = OrderedDict()

    def request(self, key: str) -> "Future[Path]":
        """Return the future path of an index. Calls for one key share one download.

        The download continues if the caller does not wait. The future raises FileNotFoundError if
        the object does not exist, and UnavailableError if the store fails.
        """
        with self._lock:
            if copy := self._copies.get(key):
                self._copies.move_to_end(key)
                future: Future[Path] = Future()
                future.set_result(copy.path)
                return future
            if key not in self._loading:
                self._loading[key] = self._pool.submit(self._load, key)
            return self._loading[key]

    def forget(self, key: str) -> None:
        """Remove an index, so that the next request loads it again."""
        with self._lock:
            self._remove(key)

    def _load(self, key: str) -> Path:
        try:
            body = object_store().get(key)
            if body is None:
                raise FileNotFoundError(key)
            path = self._folder / f"{token_hex(16)}.sqlite"
            # Another thread may still read an earlier copy of the same index.
            path.write_bytes(body)
            with self._lock:
                self._copies[key] = _Copy(path, len(body))
                while len(self._copies) > MAX_FILES or self._size > MAX_BYTES:
                    self._remove(next(iter(self._copies)))
            return path
        finally:
            with self._lock:
                # A failed download must not be shared by later callers.
                self._loading.pop(key, None)

    @property
    def _size(self) -> int:
        return sum(copy.size for copy in self._copies.values())

    def _remove(self, key: str) -> None:
        if copy := self._copies.pop(key, None):
            copy.path.unlink(missing_ok=True)


@cache
def index_cache() -> IndexCache:
    """Return the cache of this process."""
    folder = tempfile.mkdtemp(prefix="knowledge-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return IndexCache(Path(folder))
