"""The random samples of ``--one-in``."""

from argparse import ArgumentTypeError
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import effort


def item(number: int, *marks: str) -> Any:
    found = {mark: mark for mark in marks}
    return SimpleNamespace(nodeid=f"tests/test_x.py::test_{number}", get_closest_marker=found.get)


ITEMS = [item(number) for number in range(300)]


def config(one_in: int, seed: int) -> Any:
    options = {"--one-in": one_in, "randomly_seed": seed}
    return SimpleNamespace(getoption=lambda name, default=None: options.get(name, default))


def test_a_sample_has_about_its_share_and_leaves_out_the_rest() -> None:
    kept, left_out = effort.sample(ITEMS, config(3, 1))
    assert 70 < len(kept) < 130
    assert sorted(each.nodeid for each in [*kept, *left_out]) == sorted(i.nodeid for i in ITEMS)


def test_a_seed_repeats_its_sample_in_any_order_of_tests() -> None:
    kept, _ = effort.sample(ITEMS, config(3, 1))
    again, _ = effort.sample(ITEMS[::-1], config(3, 1))
    other, _ = effort.sample(ITEMS, config(3, 2))
    assert kept == again[::-1] != other


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "half", ""])
def test_a_share_that_is_no_whole_number_from_1_is_refused(value: str) -> None:
    with pytest.raises(ArgumentTypeError, match="a whole number from 1"):
        effort.at_least_one(value)
    assert effort.at_least_one("3") == 3


def test_an_unsampled_test_is_in_every_sample() -> None:
    marked = [item(number, "unsampled") for number in range(30)]
    assert effort.sample(marked, config(1000, 1)) == (marked, [])


def test_without_the_option_all_tests_run() -> None:
    assert effort.sample(ITEMS, config(1, 1)) == (ITEMS, [])
