"""Tests that a booking's token permits one action on one booking, and has one spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.ids import new_id
from chalicelib.domains.bookings.rules.booking_tokens import (
    LENGTH,
    Purpose,
    new_secret,
    read,
    token,
)

WORKSPACE, BOOKING = new_id(), new_id()
SECRET = new_secret()


def test_a_token_names_its_booking_and_permits_one_purpose() -> None:
    text = token(WORKSPACE, booking_id=BOOKING, purpose=Purpose.CANCEL, secret=SECRET)
    claims = read(text)
    assert len(text) == LENGTH
    assert claims is not None
    assert (claims.workspace_id, claims.booking_id) == (WORKSPACE, BOOKING)
    assert [purpose for purpose in Purpose if claims.is_for(purpose, SECRET)] == [Purpose.CANCEL]


def test_a_token_is_void_with_another_secret_and_without_one() -> None:
    claims = read(token(WORKSPACE, booking_id=BOOKING, purpose=Purpose.MANAGE, secret=SECRET))
    assert claims is not None
    assert not claims.is_for(Purpose.MANAGE, new_secret())
    assert not claims.is_for(Purpose.MANAGE, None)
    assert not claims.is_for(Purpose.MANAGE, "")


def test_a_signature_does_not_fit_another_booking_or_workspace() -> None:
    claims = read(token(WORKSPACE, booking_id=BOOKING, purpose=Purpose.CANCEL, secret=SECRET))
    assert claims is not None
    assert not claims._replace(booking_id=new_id()).is_for(Purpose.CANCEL, SECRET)
    assert not claims._replace(workspace_id=new_id()).is_for(Purpose.CANCEL, SECRET)


@pytest.mark.parametrize(
    "text", ["", "A" * 63, "A" * 65, "A" * 68, "А" * 64, "?" * 64, "A" * 63 + "="]
)
def test_a_string_of_another_format_is_not_a_token(text: str) -> None:
    assert read(text) is None


def test_secrets_are_random_and_32_digits_long() -> None:
    secrets = {new_secret() for _ in range(9)}
    assert len(secrets) == 9
    assert {len(bytes.fromhex(secret)) for secret in secrets} == {16}


@given(st.binary(min_size=48, max_size=48))
def test_a_token_has_one_spelling(signed: bytes) -> None:
    from base64 import b64encode, urlsafe_b64encode

    assert read(urlsafe_b64encode(signed).decode()) is not None
    if (other := b64encode(signed)) != urlsafe_b64encode(signed):
        assert read(other.decode()) is None
