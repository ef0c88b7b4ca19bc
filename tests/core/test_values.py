"""Our dataclasses behave as the standard library's do."""

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple

import pytest

from chalicelib.core import values


class Made(NamedTuple):
    point: Any
    sum: Any
    named: Any


def made_by(dataclass: Any) -> Made:
    @dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: int = 0
        tags: list[str] = field(default_factory=list, compare=False)
        secret: str = field(default="", repr=False)

        @property
        def double(self) -> "Point":
            return dataclasses.replace(self, x=self.x * 2)

    @dataclass
    class Sum:
        """A sum."""

        parts: tuple[int, ...]
        total: int = field(init=False)

        def __post_init__(self) -> None:
            self.total = sum(self.parts)

    @dataclass(frozen=True, kw_only=True)
    class Named(Point):
        """A point with a name."""

        name: str

        def __repr__(self) -> str:
            return self.name

    return Made(Point, Sum, Named)


STANDARD, OURS = made_by(dataclasses.dataclass), made_by(values.dataclass)

Make = Callable[[Made], Any]


@pytest.mark.parametrize(
    "make",
    [
        lambda made: made.point(1),
        lambda made: made.point(1, 2, ["a"]),
        lambda made: made.point(y=1, x=2, secret="s"),
        lambda made: made.point(3).double,
        lambda made: dataclasses.asdict(made.point(1, 2, ["a"])),
        lambda made: [each.name for each in dataclasses.fields(made.named)],
        lambda made: made.point(1, 2) == made.point(1, 2, ["other"]),
        lambda made: made.point(1, 2) == made.point(1, 3),
        lambda made: (made.point(1) == made.named(1, name="a"), made.point(1) != (1, 0)),
        lambda made: hash(made.point(1, 2)) == hash(made.point(1, 2, ["other"])),
        lambda made: made.sum((1, 2)),
        lambda made: dataclasses.replace(made.sum((1, 2)), parts=(4,)).total,
        lambda made: copy.deepcopy(made.named(1, 2, ["a"], name="a")).tags,
        lambda made: (made.named(1, name="a"), made.named(name="b", x=1).y),
        lambda made: made.point(1).tags is made.point(1).tags,
        lambda made: made.point.__match_args__,
    ],
)
def test_works_alike(make: Make) -> None:
    assert str(make(OURS)) == str(make(STANDARD))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda made: made.point(), "lacks x"),
        (lambda made: made.point(1, 2, [], "s", 5), "takes fewer positional arguments"),
        (lambda made: made.point(1, z=2), "has no z"),
        (lambda made: made.point(z=2), "lacks x; has no z"),
        (lambda made: made.point(1, x=2), "is given twice x"),
        (lambda made: made.sum((), total=2), "has no total"),
        (lambda made: made.named(1, 2, [], "", "name"), "lacks name"),
        (lambda made: setattr(made.point(1), "x", 2), "x cannot change"),
        (lambda made: delattr(made.named(1, name="a"), "x"), "x cannot change"),
        (lambda made: hash(made.sum(())), "unhashable"),
    ],
)
def test_refuses_alike(make: Make, told: str) -> None:
    with pytest.raises((TypeError, AttributeError)) as standard:
        make(STANDARD)
    with pytest.raises(type(standard.value), match=told):
        make(OURS)
