"""Dataclasses whose methods are not compiled: a tenth of what the standard ones cost to make.

The standard decorator writes ``__init__`` and its like as source and compiles that, for each class
and at each cold start; there are some forty on the way to a first answer. Here all classes share
the methods, which look up the fields; making an instance takes a microsecond more. The rest is the
standard's: ``replace``, ``fields`` and type checkers know no difference. Slots are not made. What
is made by the thousand is a ``NamedTuple`` (ADR 0022).
"""

from collections.abc import Callable, Hashable
from dataclasses import MISSING, FrozenInstanceError, fields
from dataclasses import dataclass as standard
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(  # noqa: ANN201  declared above
        made: type | None = None,
        /,
        *,
        frozen: bool = False,
        slots: bool = False,  # noqa: ARG001  taken, and not made
        kw_only: bool = False,
    ):
        """Make a class a dataclass, by those arguments of the standard decorator that we use."""
        if made is None:
            return lambda cls: dataclass(cls, frozen=frozen, kw_only=kw_only)
        cls = standard(init=False, repr=False, eq=False, kw_only=kw_only)(made)
        methods = {"__init__": _init, "__repr__": _repr, "__eq__": _eq, "__hash__": None}
        if frozen:
            frozen_ones = {"__setattr__": _refuse, "__delattr__": _refuse, "__hash__": _hash}
            methods |= frozen_ones
        for name, method in methods.items():
            if name not in made.__dict__:
                setattr(cls, name, method)
        return cls


class _Plan(NamedTuple):
    """What the shared methods know of a class."""

    positional: tuple[str, ...]
    accepted: frozenset[str]
    defaults: dict[str, Any]
    factories: tuple[tuple[str, Callable[[], Any]], ...]
    compared: tuple[str, ...]
    shown: tuple[str, ...]


@cache
def _plan(cls: Hashable) -> _Plan:
    every = fields(cast("Any", cls))
    given = [each for each in every if each.init]
    return _Plan(
        tuple(each.name for each in given if not each.kw_only),
        frozenset(each.name for each in given),
        {each.name: each.default for each in given if each.default is not MISSING},
        tuple((f.name, f.default_factory) for f in every if f.default_factory is not MISSING),
        tuple(each.name for each in every if each.compare),
        tuple(each.name for each in every if each.repr),
    )


def _plan_of(self: object) -> _Plan:
    return _plan(cast("Hashable", type(self)))


def _init(self: Any, /, *args: Any, **given: Any) -> None:  # noqa: ANN401  fields of any type
    plan, values = _plan_of(self), self.__dict__
    values.update(plan.defaults)
    values.update(zip(plan.positional, args, strict=False))
    values.update(given)
    for name, make in plan.factories:
        if name not in values:
            values[name] = make()
    if (
        not plan.accepted <= values.keys()
        or not given.keys() <= plan.accepted
        or len(args) > len(plan.positional)
        or not given.keys().isdisjoint(plan.positional[: len(args)])
    ):
        raise TypeError(_misfit(type(self), plan, args, given))
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _misfit(cls: type, plan: _Plan, args: tuple[Any, ...], given: dict[str, Any]) -> str:
    taken = {*plan.positional[: len(args)], *given, *plan.defaults, *dict(plan.factories)}
    problems = {
        "lacks": plan.accepted - taken,
        "has no": given.keys() - plan.accepted,
        "is given twice": given.keys() & set(plan.positional[: len(args)]),
    }
    told = [f"{what} {', '.join(sorted(names))}" for what, names in problems.items() if names]
    return f"{cls.__qualname__}() {'; '.join(told) or 'takes fewer positional arguments'}"


def _repr(self: Any) -> str:  # noqa: ANN401
    shown = (f"{name}={getattr(self, name)!r}" for name in _plan_of(self).shown)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compared(self: Any) -> tuple[Any, ...]:  # noqa: ANN401
    return tuple([getattr(self, name) for name in _plan_of(self).compared])


def _eq(self: Any, other: object) -> bool:  # noqa: ANN401
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:  # noqa: ANN401
    return hash(_compared(self))


def _refuse(self: Any, name: str, *_value: Any) -> None:  # noqa: ANN401
    msg = f"{type(self).__qualname__} is frozen: {name} cannot change; use replace"
    raise FrozenInstanceError(msg)


__all__ = ["dataclass"]
