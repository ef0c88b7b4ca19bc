"""Calls that return money or change where it goes, by an owner with a second factor."""

import pytest

from chalicelib.core.errors import ValidationError
from tests.conftest import Owner, call_console
from tests.domains.identity.test_second_factor import switch_on
from tests.factories.console import person
from tests.factories.payments import MERCHANT, record_payments
from tests.factories.salon import Salon

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize("operation", ["refund_payment", "retry_refund", "set_merchant"])
@pytest.mark.parametrize("code", [{}, {"secondFactor": ""}, {"secondFactor": "000000"}])
def test_nothing_happens_without_the_code(
    operation: str, code: dict[str, str], owner: Owner
) -> None:
    home, owner_id = owner.workspace.id, owner.workspace.owner_id
    booking = Salon.opened(owner.api()).book("2027-03-03T12:00", ignoreSchedule=True)
    ids = record_payments(home, owner_id, booking["id"])
    switch_on(person(owner))
    arguments = {
        "refund_payment": {"id": ids.payment},
        "retry_refund": {"id": ids.payment, "refundId": ids.refund},
        "set_merchant": MERCHANT,
    }[operation]
    payments_before = call_console(home, "list_payments")
    with pytest.raises(ValidationError):
        call_console(home, operation, account_id=owner_id, **arguments | code)
    assert call_console(home, "list_payments") == payments_before
