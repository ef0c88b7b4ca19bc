"""Functions of modules in this process, whose code can be replaced while they stay the same."""

import gc
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import _lru_cache_wrapper
from types import CodeType, FunctionType
from typing import Any

from infra.proof.parts import ROOT


class LiveCode:
    """All functions of some modules: methods, properties, and those under decorators too."""

    def __init__(self, paths: Iterable[str]) -> None:
        gc.unfreeze()  # the tests' conftest has hidden what existed after their collection
        files = {str(ROOT / path): path for path in paths}
        self._functions: dict[str, list[FunctionType]] = defaultdict(list)
        self._caches: list[Any] = []
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename in files:
                self._functions[files[each.__code__.co_filename]].append(each)
            elif isinstance(each, _lru_cache_wrapper):
                self._caches.append(each)
        gc.freeze()

    def replace(self, path: str, module: CodeType) -> bool:
        """Replace the code of the functions of a module that differ.

        What these functions have cached is forgotten. Return False if no function differs, or if
        one closes over other variables than before, which Python does not allow.
        """
        code = {_place(each): each for each in _functions_in(module)}
        changed = set()
        for function in self._functions[path]:
            new = code.get(_place(function.__code__))
            if new is None or new == function.__code__:
                continue
            if new.co_freevars == function.__code__.co_freevars:
                function.__code__ = new
                changed.add(function)
        self._forget(changed)
        return bool(changed)

    def forget(self) -> None:
        """Forget what the functions have cached, so that the next test executes them."""
        self._forget({each for some in self._functions.values() for each in some})

    def _forget(self, functions: Collection[FunctionType]) -> None:
        for cache in self._caches:
            if cache.__wrapped__ in functions:
                cache.cache_clear()


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _functions_in(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _functions_in(each)
