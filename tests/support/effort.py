"""Selects few tests for `make test` and all tests for `make pr`.

A test marked slow is left out of `make test`, where a fast test covers the same behaviour.
HYPOTHESIS_PROFILE or --hypothesis-profile selects the number of hypothesis examples.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings

DEV, CI = 20, 200
Case = TypeVar("Case")

COMMON: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
}

settings.register_profile("dev", max_examples=DEV, derandomize=True, **COMMON)
"""The same examples each time, so that a new failure comes from the change under test."""
settings.register_profile("ci", max_examples=CI, print_blob=True, **COMMON)
"""Different examples each time. For a failing one, the line that reproduces it is printed."""
settings.register_profile(
    "mutations",
    settings.get_profile("dev"),
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[*COMMON["suppress_health_check"], HealthCheck.differing_executors],
)
"""Runs all tests before the tests of a mutant, in one process. Nobody reads a failing example."""
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def examples(in_ci: int, in_dev: int | None = None, **more: int) -> settings:
    """Return settings for a test with costly or cheap examples.

    ``in_ci`` is the number of examples in `ci`. In `dev`, the default is a tenth of this number.
    """
    is_dev = settings.default.max_examples == DEV
    share = in_ci * settings.default.max_examples // CI
    return settings(max_examples=in_dev if in_dev and is_dev else max(2, share), **more)


def slow_but_for(quick: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Return a parameter's values, all marked slow except these."""
    return [
        value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values
    ]


def drawn(cases: Sequence[Case], values: Iterable[Any]) -> list[Any]:
    """Return pairs of a value and its cases, for a parameter that each case costs a request.

    Each value has one of the cases in turn. A slow test of each value has all cases.
    """
    quick = [(value, [cases[n % len(cases)]]) for n, value in enumerate(values)]
    return quick + [pytest.param(value, [*cases], marks=pytest.mark.slow) for value, _ in quick]


def matrix(names: str, *axes: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrise with every combination.

    All are slow except a diagonal that has each value once.
    """
    longest = max(map(len, axes))
    diagonal = [tuple(axis[n % len(axis)] for axis in axes) for n in range(longest)]
    combinations = [
        pytest.param(*values, marks=() if values in diagonal else pytest.mark.slow)
        for values in product(*axes)
    ]
    return pytest.mark.parametrize(names, combinations)
