from collections.abc import Iterator

import pytest

from tests.support.sweep import sweep

SEEN: list[int] = []


@pytest.fixture
def doubled() -> Iterator[dict[int, int]]:
    yield {each: 2 * each for each in range(3)}
    assert SEEN == [0, 1, 2]


@sweep("number", range(3))
def test_a_sweep_gets_each_value_and_the_fixtures(number: int, doubled: dict[int, int]) -> None:
    assert doubled[number] == 2 * number
    SEEN.append(number)


def test_a_sweep_reports_each_value_that_fails() -> None:
    @sweep("number", range(5))
    def check(number: int) -> None:
        if number == 1:
            pytest.fail("one")
        assert number < 3

    with pytest.raises(BaseExceptionGroup, match="3 of 5 fail") as caught:
        check()
    assert [each.__notes__ for each in caught.value.exceptions] == [
        ["number = 1"],
        ["number = 3"],
        ["number = 4"],
    ]


def test_a_sweep_without_values_fails() -> None:
    @sweep("number", [])
    def check(number: int) -> None:
        raise AssertionError

    with pytest.raises(AssertionError, match="no values"):
        check()
