"""The test merchant of a test workspace, and the page on which its payments are settled."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from chalicelib.core.errors import ConcurrentUpdateError, NotFoundError
from chalicelib.core.ids import is_id
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.payments.store import merchant_rows
from chalicelib.gateways.payments import UnknownOutcomeError
from chalicelib.lib.tokens import ID_LENGTH

PAGE = "/pay/test/{id}"


class Rows(NamedTuple):
    """The payments of a test workspace's merchant (``local_merchant.PaymentStore``)."""

    workspace_id: str

    def read(self, payment_id: str) -> dict[str, Any] | None:
        return merchant_rows.find(self.workspace_id, payment_id=payment_id)

    def read_all(self) -> Mapping[str, dict[str, Any]]:
        return merchant_rows.read_all(self.workspace_id)

    @contextmanager
    def change(self, payment_id: str) -> Iterator[dict[str, Any]]:
        try:
            with merchant_rows.change(self.workspace_id, payment_id=payment_id) as payment:
                yield payment
        except ConcurrentUpdateError:
            raise UnknownOutcomeError("The test merchant was asked twice at once.") from None

    def url(self, payment_id: str) -> str:
        return settings().public_url + PAGE.format(id=f"{self.workspace_id}{payment_id}")


class Place(NamedTuple):
    """The workspace and the id of a payment at its test merchant."""

    workspace_id: str
    payment_id: str


def place_of(page_id: str) -> Place:
    """Return what the last part of a page's URL names, or raise NotFoundError."""
    place = Place(page_id[:ID_LENGTH], page_id[ID_LENGTH:])
    if not (is_id(place.workspace_id) and is_test(place.workspace_id)):
        raise not_found()
    return place


def not_found() -> NotFoundError:
    """Return the error for a page without a payment."""
    msg = "The test merchant does not have this payment. Check the link."
    return NotFoundError(msg, key="payment")
