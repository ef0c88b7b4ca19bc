"""What visitors read if a booking is refused."""

from itertools import product

import pytest

from chalicelib.domains.booking_page.rules import refusals
from chalicelib.domains.booking_page.rules.refusals import REASONS, Reason
from chalicelib.lib.localized import LANGUAGES, Language

PHONE = "+44 20 7946 0000"


@pytest.mark.parametrize(("language", "reason"), [*product(LANGUAGES, REASONS)])
def test_the_advice_follows_the_reason_as_sentences_of_their_own(
    language: Language, reason: Reason
) -> None:
    why = refusals.text(language, reason)
    advice = refusals.text(language, reason, "leave_contacts", "call", phone=PHONE)
    assert why
    assert advice.startswith(f"{why} ")
    assert PHONE in advice.removeprefix(why)
    assert "  " not in advice


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_phone_may_follow_as_a_link(language: Language) -> None:
    with_phone = refusals.text(language, "contact", "call", phone=PHONE)
    assert with_phone.startswith(refusals.text(language, "contact", "call"))
