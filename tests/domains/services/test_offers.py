"""The price and the length of several services together, which may begin from a lower value."""

from chalicelib.domains.services.rules.offers import OfferSummary, sum_of_summaries

FIXED = OfferSummary(1_000, 60, None, None)
CHEAPER_WITH_SOME = OfferSummary(2_000, 30, 2_000, None)
SHORTER_WITH_SOME = OfferSummary(500, 45, None, 20)


def test_fixed_values_are_added() -> None:
    assert sum_of_summaries([FIXED, FIXED]) == OfferSummary(2_000, 120, None, None)


def test_a_price_that_begins_from_a_value_makes_the_sum_begin_from_one() -> None:
    assert sum_of_summaries([FIXED, CHEAPER_WITH_SOME]) == OfferSummary(3_000, 90, 3_000, None)


def test_a_length_that_begins_from_a_value_is_added_to_those_that_do_not() -> None:
    assert sum_of_summaries([FIXED, SHORTER_WITH_SOME]) == OfferSummary(1_500, 105, None, 80)
