"""Bookings that are confirmed by the link in an e-mail."""

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.booking_page.flows import visitor_shares
from chalicelib.domains.booking_page.store import requested_bookings
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.gateways import mail


def requested(workspace_id: str, on_page: dict[str, Any]) -> str:
    """Request a booking on a booking page that needs a proof, and return the link's token."""
    no_share = replace(visitor_shares.UNPROVED, max_requests=0)
    operation, caller = REGISTRY["book_on_page"], VisitorPrincipal(visitor="v")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(visitor_shares, "UNPROVED", no_share)
        patch.setattr(mail, "is_on", lambda: True)
        patch.setattr(mail, "takes", lambda _: True)
        invoke(operation, caller, lambda: on_page, request_id=new_id())
    (row,) = requested_bookings.naming_awaited(workspace_id, [on_page["client"]["email"]])
    return booking_links.book_token(workspace_id, row.request_id)
