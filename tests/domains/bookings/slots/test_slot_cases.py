"""Tests of slot calculation against a table of typical cases and of cases near limits."""

import pytest

from chalicelib.domains.bookings.rules.slots import is_free
from tests.domains.bookings.slots.cases import (
    CASES,
    EVER,
    Case,
    calendar,
    days,
    expand,
    starts,
    utc,
)


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_slots_and_booking_checks_match_the_table(case: Case) -> None:
    service = EVER._replace(**case.service)
    resource = calendar(case.zone, *case.rules, **case.more)
    query = days(case.zone, *case.days, now=case.now)
    assert starts(service, resource, query) == expand(case.expected)
    for start in range(query.first, query.last, 15 * 60_000):
        is_listed = utc(start) in expand(case.expected)
        assert is_free(service, resource, start, now=query.now) == is_listed
