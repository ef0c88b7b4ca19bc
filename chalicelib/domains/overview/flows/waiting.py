"""Find what waits for a member of the workspace: requests for a person, and failed refunds."""

from datetime import timedelta
from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.core.ids import first_id_at
from chalicelib.domains.bookings.flows import booking_payments
from chalicelib.domains.chat.store.dialogs import DIALOGS, WAITS, YES, DialogRow
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.domains.payments.store.payments import PaymentRow, RefundRow

REQUESTS_FOR = timedelta(days=30)
"""Time after the start of a dialog in which its request for a person is shown."""
REFUNDS_FOR = timedelta(days=180)
"""Time after a payment in which a failed refund is shown. Booking ahead takes months."""
MAX_READ = 25
"""Maximum number of dialogs whose leads are read. Further ones are counted as waiting."""


class Requests(NamedTuple):
    """Dialogs in which a visitor waits for a person, newest first, and the number of all."""

    dialogs: list[DialogRow]
    total: int


def person_requests(workspace_id: str) -> Requests:
    """Return the dialogs in which a visitor has asked for a person, and nobody has responded.

    A member responds by a reply, or by changing the status of the dialog's lead.
    """
    first_id = first_id_at(clock.now() - REQUESTS_FOR)
    found = DIALOGS.find_by(workspace_id, lookup=WAITS, value=YES)
    ids = [dialog_id for dialog_id in reversed(found) if dialog_id >= first_id]
    dialogs = DIALOGS.fetch(workspace_id, ids[:MAX_READ], consistent=False) if ids else []
    lead_ids = [dialog.lead_id for dialog in dialogs if dialog.lead_id]
    leads = LEADS.fetch(workspace_id, lead_ids, consistent=False) if lead_ids else []
    handled = {lead.id for lead in leads if lead.status != "new"}
    waiting = [
        dialog for dialog in dialogs if dialog.waits_for_person and dialog.lead_id not in handled
    ]
    return Requests(waiting, len(waiting) + len(ids[MAX_READ:]))


def failed_refunds(workspace_id: str) -> list[tuple[PaymentRow, RefundRow]]:
    """Return the refunds of bookings that the provider did not carry out, newest payment first."""
    return booking_payments.failed_refunds(workspace_id, clock.now() - REFUNDS_FOR)
