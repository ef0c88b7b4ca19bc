"""Write the tables of docs/limits.md: plans, scopes and the limits of visitors."""

import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

from chalicelib.core import plans
from chalicelib.core.areas import SCOPED
from chalicelib.core.limits import Limit
from chalicelib.core.test_workspaces import MAX_RECORDS
from chalicelib.domains.billing.rules.spending_windows import SHARES
from chalicelib.domains.booking_page.flows.visitor_shares import MAX_HOLDS, MAX_UPCOMING
from chalicelib.domains.booking_page.operations.cancel_and_move import MAX_MOVES
from chalicelib.domains.chat.flows.checked_message import MAX_MESSAGES
from chalicelib.domains.leads.flows.lead_quota import LEAST_SHARE
from chalicelib.domains.services.operations.services import ServiceCreate
from chalicelib.transports.web import texts
from infra.local import document_tables

DOCUMENT = document_tables.DOCS / "limits.md"
_LINK = "a link by e-mail, else 429"
OF_VISITORS: Mapping[str, tuple[str, str]] = {
    "assistant-calls": ("a visitor", "an error of the tool"),
    "public-reads": ("a visitor", "429"),
    "blog": ("a visitor", "429"),
    "hits": ("a visitor and site", "429; the view is not counted"),
    "form": ("a visitor and form", "429"),
    "form-visitor-day": ("a visitor and workspace, from forms and chats together", "429"),
    "form-day": ("a form", "429"),
    "widget-settings": ("a visitor and bot", "429; the widget does not appear"),
    "widget": ("a visitor and bot", "429; the event is not counted"),
    "chat": ("a visitor and bot", "429"),
    "chat-day": ("a visitor and bot", "429"),
    "chat-bot": ("a bot, behind the edge", "429"),
    "actions": ("a visitor", "429"),
    "link-bookings": ("a visitor", "429"),
    "left-contacts": ("a visitor", "429"),
    "left-contacts-day": ("a visitor and bot", "429"),
    "replies": ("a visitor", "429"),
    "booking-page": ("a visitor", "429"),
    "booking-page-times": ("a visitor", "429"),
    "public-slots": ("a visitor", "429"),
    "public-bookings": ("a visitor", "429"),
    "public-bookings-day": ("a visitor", "429"),
    "unproved": ("a visitor", _LINK),
    "unproved-contact": ("a visitor and contact", _LINK),
    "booking-links": ("a visitor", "429"),
    "waiting-list": ("a visitor", "429"),
    "waiting-day": ("a visitor", "429"),
    "manage-booking": ("a visitor", "429"),
    "booking-payments": ("a visitor", "429"),
    "public-calendar": ("a visitor", "429"),
    "client-chat-codes": ("a visitor", "429"),
    "public-feed": ("a visitor", "429"),
    "test-payments": ("a visitor", "429"),
}
"""For each limit of visitors, for whom it counts, and what happens beyond it."""

NOT_OF_VISITORS: Mapping[str, str] = {
    "heavy": "programs: in the reference, Limits",
    "barcode-reads": "the open databases: in the reference, Limits",
    "barcode-share": "programs: in the reference, Limits",
    "photo-searches": "the open databases: in the reference, Limits",
    "photo-searches-daily": "the open databases: in the reference, Limits",
    "photo-share": "programs: in the reference, Limits",
    "key-calls": "programs: the owner sets it",
    "knowledge-fetches": "a workspace: in docs/bots.md",
    "oauth-tokens": "connected apps",
    "payment-hooks": "payment providers",
    "webhook-challenges": "members and programs",
    "test-workspaces": "members",
    "invitations": "members: in docs/team.md",
    "invitation-acceptances": "people who join",
    "sign-in": "people who sign in",
    "sign-in-place": "people who sign in",
    "sign-in-failures": "people who sign in",
    "sign-up-requests": "people who sign up: in docs/deploying.md",
    "sign-up-mails": "people who sign up",
    "sign-up-accounts": "people who sign up",
    "sign-ups": "people who sign up",
    "new-workspaces": "members",
    "password-change": "members",
    "password-reset-requests": "people who sign in",
    "password-resets": "people who sign in",
    "password-reset-mails": "people who sign in",
    "second-factor": "members",
    "telegram-codes": "members",
    "sms-number": "the recipient of SMS: in notifications.md",
    "sms-unproved": "the recipient of SMS: in notifications.md",
    "telegram-wrong-codes": "members",
    "lead-exports": "members: in docs/forms.md",
    "client-exports": "members",
    "client-files": "members",
    "payment-links": "members",
    "secret-checks": "members",
    "top-ups": "members",
    "link-mails": "e-mail: in docs/notifications.md",
    "link-mails-share": "e-mail: in docs/notifications.md",
    "client-mails": "e-mail: in docs/notifications.md",
    "business-mails": "e-mail: in docs/notifications.md",
    "reminder-mails": "e-mail: in docs/notifications.md",
    "account-mails": "e-mail: in docs/notifications.md",
    "confirmed-mails": "e-mail: in docs/notifications.md",
    "advertising-mails": "e-mail: in docs/notifications.md",
    "workspace-advertising-share": "e-mail: in docs/notifications.md",
}
"""Why the table of visitors does not have the other limits."""


def write() -> Path:
    """Write the tables into the document, and return the document's path."""
    DOCUMENT.write_text(markdown(DOCUMENT.read_text()))
    return DOCUMENT


def markdown(text: str) -> str:
    """Return the document with its tables as the declarations are now."""
    for name, lines in (
        ("plans", _plans()),
        ("limits of visitors", _visitors()),
        ("scopes", _scopes()),
    ):
        text = document_tables.replaced(text, name, lines)
    return text


def declared() -> dict[str, Limit]:
    """Return the limits that the loaded modules declare, by name."""
    found: dict[str, Limit] = {}
    for module in [*sys.modules.values()]:
        if getattr(module, "__name__", "").startswith("chalicelib."):
            for value in vars(module).values():
                parts = (
                    value.values()
                    if isinstance(value, Mapping)
                    else value
                    if isinstance(value, tuple)
                    else (value,)
                )
                found |= {part.name: part for part in parts if isinstance(part, Limit)}
    return found


def _plans() -> Iterator[str]:
    names = (*plans.PLANS, plans.TEST)
    gigabyte = 1_000 * plans.MEGABYTE

    def size(count: int) -> str:
        unit, name = (gigabyte, "GB") if count >= gigabyte else (plans.MEGABYTE, "MB")
        return f"{count // unit} {name}"

    yield from document_tables.rows(
        ("included", *(f"`{name}`" for name in names)),
        (
            "REST API and tool server",
            *("yes" if name in plans.PLANS_WITH_API else "no" for name in names),
        ),
        (
            "files, and HTML of pages; more is 409 `storage_limit`",
            *(size(plans.STORAGE_BYTES[name]) for name in names),
        ),
        (
            "leads in thirty days; further ones are marked (`overQuota`)",
            *(f"{plans.LEADS_A_MONTH[name]:,}" for name in names),
        ),
        (
            "e-mails to clients a day; further ones wait or are withheld",
            *(f"{plans.CLIENT_MAILS_A_DAY[name]:,}" for name in names),
        ),
        (
            "SMS to clients a day, which the balance pays for; further ones go by mail",
            *(f"{plans.SMS_A_DAY[name]:,}" for name in names),
        ),
        (
            "records of one kind",
            *(f"{MAX_RECORDS:,}" if name == plans.TEST else "no limit" for name in names),
        ),
    )


def _visitors() -> Iterator[str]:
    limits = declared()
    per_hour = ServiceCreate.model_fields["unverified_per_hour"].default
    further = (
        (f"{MAX_UPCOMING} upcoming bookings", "a visitor, workspace and contact", "429"),
        (f"{MAX_HOLDS} unpaid bookings", "a visitor and workspace", "429"),
        (
            f"{per_hour} bookings an hour without e-mail confirmation (`unverifiedPerHour`)",
            "a service",
            _LINK,
        ),
        (f"{MAX_MOVES} moves of a booking", "a booking", "409"),
        (f"{MAX_MESSAGES} messages", "a dialog", "429"),
        (
            f"1/{SHARES['visitor']} of the bot's lowest spending limit a day",
            "a visitor and bot",
            "429",
        ),
        (
            f"1/10 of the plan's leads in thirty days, at least {LEAST_SHARE}, a day",
            "a visitor and workspace",
            "the lead is marked (`overQuota`)",
        ),
    )
    yield from document_tables.rows(
        ("at most", "counted for", "beyond it"),
        *((_maximum(limits[name]), *about) for name, about in OF_VISITORS.items()),
        *further,
    )


_PERIODS = {
    timedelta(minutes=1): ("per minute", "a minute"),
    timedelta(hours=1): ("per hour", "an hour"),
    timedelta(days=1): ("per day", "a day"),
}


def _maximum(limit: Limit) -> str:
    what = limit.what
    per, words = _PERIODS[limit.window]
    if per not in what and words not in what:
        what += f" {words}"
    return f"{limit.max_requests:,} {what.replace(per, words)}"


def _scopes() -> Iterator[str]:
    lines: list[tuple[str, ...]] = [
        ("scopes", "read lets a program read", "write lets a program", "granted")
    ]
    for area in SCOPED.values():
        by = "by name only" if area.by_name else "by name, and by `*:read`, `*:write`"
        lines.append(
            (
                f"`{area.name}:read`, `{area.name}:write`",
                *(
                    texts.translate("en", area.meaning(right)).rstrip(".")
                    for right in ("read", "write")
                ),
                by + (", to ADMIN accounts" if area.admin_only else ""),
            )
        )
    yield from document_tables.rows(*lines)
