"""Sets of capabilities."""

import pytest

from chalicelib.domains.bots.rules.capabilities import (
    Capability,
    normalize_capabilities,
)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ([], []),
        (["handover", "catalog", "catalog"], ["catalog", "handover"]),
        (["booking"], ["slots", "booking"]),
        (["order", "slots"], ["slots", "order"]),
    ],
)
def test_capabilities_have_one_order_and_bookings_need_free_times(
    capabilities: list[Capability], expected: list[Capability]
) -> None:
    assert normalize_capabilities(capabilities) == expected
