"""How much is tried: a little of everything in `make test`, all of it in `make pr`.

A test marked slow is left out of the first, and some quick test keeps the same promise there. Of
hypothesis' examples there are few or many: HYPOTHESIS_PROFILE or --hypothesis-profile chooses.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

DEV, CI = 20, 200

COMMON = {
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
"""The same examples each time: who changes one thing learns of that thing."""
settings.register_profile("ci", max_examples=CI, print_blob=True, **COMMON)
"""Other examples each time; of a failing one, the line that repeats it is printed."""
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def examples(in_ci: int, **more: int) -> settings:
    """Return settings for a test whose examples cost more or less than most: so many in `ci`."""
    return settings(max_examples=max(2, in_ci * settings.default.max_examples // CI), **more)


def slow_but_for(quick: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """Return values of a parameter, all marked slow but these."""
    return [
        value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values
    ]


def matrix(names: str, *axes: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrise with every combination, slow but for a diagonal on which each value comes up."""
    longest = max(map(len, axes))
    diagonal = [tuple(axis[n % len(axis)] for axis in axes) for n in range(longest)]
    combinations = [
        pytest.param(*values, marks=() if values in diagonal else pytest.mark.slow)
        for values in product(*axes)
    ]
    return pytest.mark.parametrize(names, combinations)
