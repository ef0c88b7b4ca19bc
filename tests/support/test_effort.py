"""The random samples of ``--one-in``."""

from types import SimpleNamespace
from typing import Any

from tests.support import effort

ITEMS: Any = [SimpleNamespace(nodeid=f"tests/test_x.py::test_{n}") for n in range(300)]


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


def test_without_the_option_all_tests_run() -> None:
    assert effort.sample(ITEMS, config(1, 1)) == (ITEMS, [])
