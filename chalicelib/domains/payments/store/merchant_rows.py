"""The payments of the test merchant in a test workspace, as rows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from pynamodb.attributes import VersionAttribute
from pynamodb.exceptions import PutError

from chalicelib.core import clock
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.engine.connection import reaching
from chalicelib.engine.tables import ContentRow, JsonAttribute

KEPT_FOR = timedelta(days=90)  # after the last change


class MerchantPaymentRow(ContentRow):
    """A payment as the test merchant has it."""

    version = VersionAttribute()
    details: JsonAttribute = JsonAttribute()


def find(workspace_id: str, *, payment_id: str) -> dict[str, Any] | None:
    """Return a payment, or None."""
    row = MerchantPaymentRow.find(_partition(workspace_id), payment_id)
    return None if row is None else dict(row.details)


def read_all(workspace_id: str) -> Mapping[str, dict[str, Any]]:
    """Return all payments by id."""
    rows = MerchantPaymentRow.partition(_partition(workspace_id))
    return {row.sk: dict(row.details) for row in rows}


@contextmanager
def change(workspace_id: str, *, payment_id: str) -> Iterator[dict[str, Any]]:
    """Store what the block does to a payment, or raise ConcurrentUpdateError."""
    place = _partition(workspace_id), payment_id
    row = MerchantPaymentRow.find(*place) or MerchantPaymentRow(*place, details={})
    details = dict(row.details)
    yield details
    if details == row.details:
        return
    row.details, row.expires = details, clock.now() + KEPT_FOR
    try:
        with reaching():
            row.save()
    except PutError as error:
        raise ConcurrentUpdateError from error


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#MERCHANT-PAYMENT"
