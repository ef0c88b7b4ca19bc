"""Warn a caller of a phone that is no number.

The chat reads contacts too, but has no context of a call. It does not load one for this warning.
"""

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.domains.clients.flows.contacts import Contact


def warn_of_phone(ctx: Context, contact: Contact) -> None:
    """Add a warning to the response if the entered phone is no valid number."""
    if contact.phone_entered and contact.phone is None:
        ctx.warn(
            "The phone is no valid number, so phone is null. phoneEntered has it as it was "
            "entered.",
            code=WarningCode.INVALID_PHONE,
            field="phone",
        )
