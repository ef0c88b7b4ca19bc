"""Functions whose modules are imported on the first call, to keep cold starts short (ADR 22)."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Lazy(Generic[P, R]):
    """A function by its module and name, such as ``chalicelib.transports.rest:health``."""

    # ``tests/transports/test_lazy_routes.py`` imports each function and compares its signature.
    def __init__(self, target: str) -> None:
        self.target = target
        self._module, _, self._name = target.partition(":")

    def resolve(self) -> Callable[P, R]:
        function: Callable[P, R] = getattr(_module(self._module), self._name)
        return function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.resolve()(*args, **kwargs)


@cache
def _module(name: str) -> Any:  # noqa: ANN401  any attribute
    # Even the lookup of an imported module takes time.
    return import_module(name)
