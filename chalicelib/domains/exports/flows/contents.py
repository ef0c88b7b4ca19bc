"""The rows of a workspace that an export contains, and the reasons for leaving out others.

Every class of rows is listed here. Records of nouns are found by their listings, so a new noun is
included automatically. Any other class must be in one of the tables below; a test finds missing
ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.jobs import (
    KNOWLEDGE_STALE,
    PEOPLE_EVENTS,
    VISITOR_EVENTS,
    WEBHOOK_EVENTS,
    WEBHOOK_REPLIES,
)
from chalicelib.domains.billing.store import budgets, ledger, sms_holds, sms_prices
from chalicelib.domains.blog.rules.job_kinds import COVER_UNUSED
from chalicelib.domains.blog.store import posts
from chalicelib.domains.booking_page.rules.job_kinds import MAIL_BOOKING_LINK
from chalicelib.domains.booking_page.store import (
    page_settings,
    requested_bookings,
    visitor_bookings,
)
from chalicelib.domains.bookings.flows import booking_payments, holds
from chalicelib.domains.bookings.rules.job_kinds import (
    CLOSE_RECEIPT,
    DAYS_CHANGED,
    MAIL_CLIENT,
)
from chalicelib.domains.bookings.store import bookings, calendar_days, short_links
from chalicelib.domains.bots.store import bot_keys, visits
from chalicelib.domains.catalog.store import products
from chalicelib.domains.chat.flows import dialog_removal
from chalicelib.domains.chat.rules.job_kinds import MAIL_REPLY
from chalicelib.domains.chat.store import chat_sessions, messages, open_streams, proposals
from chalicelib.domains.chat.store.dialogs import TotalsRow
from chalicelib.domains.clients.store import (
    advertising_consents,
    client_chats,
    clients,
    erased_records,
)
from chalicelib.domains.exports.rules.job_kinds import EXPORT, EXPORT_EXPIRED
from chalicelib.domains.exports.store import exports
from chalicelib.domains.files.flows import rehosting
from chalicelib.domains.files.rules.job_kinds import REPLACED, UPLOAD_LAPSED
from chalicelib.domains.files.store import files
from chalicelib.domains.identity.rules.job_kinds import (
    CANCEL_BOOKINGS,
    DELETE_WORKSPACE,
    DIRECTORY,
    END_CALENDAR_LINK,
    MAIL_CONFIRMED,
    MAIL_INVITATION,
    MAIL_PASSWORD_RESET,
    MAIL_PASSWORD_SET,
    MAIL_PROOF,
    MAIL_SIGN_UP,
    MAIL_STANDING,
    MAIL_TEST_IDLE,
    MEMBERSHIP_ENDED,
    PAUSE_WEBHOOKS,
    TEST_IDLE,
)
from chalicelib.domains.identity.store import (
    accounts,
    api_keys,
    connections,
    consents,
    console_sessions,
    directory,
    invitations,
    key_errors,
    password_resets,
    sign_ups,
    workspaces,
)
from chalicelib.domains.imports.rules.job_kinds import IMPORT, IMPORT_EXPIRED
from chalicelib.domains.imports.store import imports
from chalicelib.domains.knowledge.flows import indexing, source_texts
from chalicelib.domains.knowledge.store import indexes
from chalicelib.domains.leads.store import leads
from chalicelib.domains.mails.store import kept_messages, mail_log, mail_rates, suppressions
from chalicelib.domains.notifications.rules.job_kinds import (
    BOOK_AGAIN,
    CHECK_SMS,
    NOTIFY_DIGEST,
    NOTIFY_MEMBER,
    REMIND_CLIENT,
)
from chalicelib.domains.notifications.store import (
    choices,
    client_deliveries,
    telegram_links,
    windows,
)
from chalicelib.domains.oauth.store import assertions
from chalicelib.domains.overview.flows import emptying
from chalicelib.domains.payments.rules.job_kinds import (
    END_MERCHANT_SECRET,
    PAYMENT_JOBS,
    READ_RETURNS,
    REFUND_JOBS,
)
from chalicelib.domains.payments.store import merchant_rows, merchants, payments
from chalicelib.domains.reports.rules.job_kinds import COUNT_REPORTS
from chalicelib.domains.reports.store import sums
from chalicelib.domains.schedule.rules.job_kinds import CLEAR_BUSY_TIMES, READ_BUSY_TIMES
from chalicelib.domains.schedule.store import busy_calendars, calendar_links
from chalicelib.domains.services.store import dated_starts, opening_hours, time_off
from chalicelib.domains.sites.flows import domain_binding
from chalicelib.domains.sites.flows import page_objects as html
from chalicelib.domains.sites.store import page_drafts, page_versions, pages, site_visits
from chalicelib.domains.waiting.rules.job_kinds import ATTEND_LINE, TELL_WAITING
from chalicelib.domains.waiting.store import waiting_lines
from chalicelib.domains.webhooks.flows.sending_times import DELIVER_WEBHOOK
from chalicelib.domains.webhooks.store import deliveries, turns, webhooks
from chalicelib.engine import (
    audit,
    cache,
    claims,
    file_uses,
    idempotency,
    jobs,
    limits,
    locks,
    metrics,
    visitors,
    workspace_currency,
)
from chalicelib.engine.events import subscriptions
from chalicelib.engine.listing import counters, index_entries, lookups
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import NOUNS
from chalicelib.engine.reading import Item
from chalicelib.engine.tables import Row

TRASH = "#TRASH"


def _close_answer(message: Item) -> Item:
    """Return a message; an answer that is still in progress ends with its text so far.

    The money held for the answer is not exported, and neither is the job that would settle it.
    """
    if "is_open" not in message:
        return message
    ended = "partial" if message["content"]["S"] else "error"
    dropped = {"is_open", "input_tokens", "output_tokens", "session_hash"}
    fields = {name: value for name, value in message.items() if name not in dropped}
    return fields | {"status": {"S": ended}}


def _release_session(session: Item) -> Item:
    """Return a chat session without the request that holds it."""
    return {k: v for k, v in session.items() if k not in {"holder", "held_until"}}


def _release_holds(budget: Item) -> Item:
    """Return a budget with settled usage only, because held money is not exported."""
    counters = dict(budget)
    for window in ("daily", "weekly", "monthly"):
        held_name, used = f"{window}_held", f"{window}_used"
        if held_name in counters:
            remaining = int(counters[used]["N"]) - int(counters[held_name]["N"])
            counters |= {used: {"N": str(remaining)}, held_name: {"N": "0"}}
    return counters


_NOT_COPIED = {"is_listed", "is_on", "link_secret"}


def _switch_assistants_off(settings: Item) -> Item:
    """Return settings without the secret of links, which a copy must not share.

    The owner of the copy switches the assistants on, which makes a new secret.
    """
    return {name: settings[name] for name in settings if name not in _NOT_COPIED}


def _read_only_payment(payment: Item) -> Item | None:
    """Return a payment of a booking for reading only. A top-up belongs to an account."""
    if payment["purpose"]["S"] != booking_payments.BOOKING:
        return None
    kept = {name: payment[name] for name in payment if name != "url"}
    return kept | {"is_imported": {"BOOL": True}}


def _read_only_merchant(merchant: Item) -> Item:
    """Return an account at a provider as a former one, without its secret."""
    return merchant | {
        "sk": merchant["merchant_id"],
        "sealed_secret": {"S": ""},
        "is_imported": {"BOOL": True},
    }


def _without_offer(line: Item) -> Item:
    """Return a waiting list without its open offer and its job, which belong to this stage.

    Each check of the line is a version.
    """
    dropped = {"offered_to", "offered_until", "check_at"}
    kept = {name: value for name, value in line.items() if name not in dropped}
    return kept | {"version": {"N": "1"}}


def _without_shares(waiting: Item) -> Item:
    """Return one who waits without the hashes of the visitor, whose salt is the stage's."""
    return {name: value for name, value in waiting.items() if name != "visitor_shares"}


def _unchanged(item: Item) -> Item:
    return item


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of rows that is exported as stored.

    ``at`` is its partition key without ``W#<workspace>#``. An ``at`` that ends with ``#`` is a
    prefix of several partitions. ``clean`` removes attributes that must not be exported, and
    returns None for a row that is left out.
    """

    row: type[Row]
    at: str
    clean: Callable[[Item], Item | None] = _unchanged


PLAIN = (
    Kind(leads.EventRow, "LEAD#HISTORY"),
    Kind(bookings.EventRow, "BOOKING#HISTORY"),
    Kind(advertising_consents.AdvertisingConsentRow, "CLIENT#HISTORY"),
    Kind(opening_hours.ScheduleRow, "SCHEDULE"),
    Kind(time_off.TimeOffRow, "TIME_OFF"),
    Kind(dated_starts.DatedStartRow, "DATED_START"),
    Kind(page_settings.BookingPageRow, "BOOKING_PAGE"),
    Kind(page_settings.AssistantsRow, "ASSISTANTS", _switch_assistants_off),
    Kind(waiting_lines.WaitingRow, "WAITING", _without_shares),
    Kind(waiting_lines.WaitingLineRow, "WAITING_LINE", _without_offer),
    Kind(budgets.BudgetRow, "BUDGET", _release_holds),
    Kind(erased_records.ErasedRow, erased_records.ERASED),
    Kind(payments.PaymentRow, "PAYMENT", _read_only_payment),
    Kind(payments.RefundRow, "PAYMENT#REFUND"),
    Kind(merchants.MerchantRow, "MERCHANT", _read_only_merchant),
)
"""Classes with a single partition each."""
LEAD_DATA = Kind(leads.DataRow, "LEAD#DATA")
DESIGN = Kind(pages.DesignRow, "PAGE#DESIGN")
"""These two are exported together with their records, and must have the same revision."""
MESSAGES = Kind(messages.MessageRow, "DIALOG#", _close_answer)
SESSIONS = Kind(chat_sessions.SessionRow, "SESSION#", _release_session)
METRICS = Kind(metrics.MetricsRow, "METRICS#")
"""These three have a partition for each dialog, chat session or subject."""
EXPORTED = (*PLAIN, LEAD_DATA, DESIGN, MESSAGES, SESSIONS, METRICS)

DERIVED: Mapping[type[Row], str] = {
    index_entries.EntryRow: "from its record",
    index_entries.TextRow: "from its record",
    lookups.LookupRow: "from its record",
    claims.ClaimRow: "from its record; checked before the import writes anything",
    file_uses.FileUseRow: "from the files that records show",
    counters.CounterRow: "from the records that it counts",
    calendar_days.CalendarDayRow: "from the bookings that block, and the dates of services",
    sums.StateRow: "from the bookings, when a report is read",
    sums.WeekRow: "as above",
    sums.CountedRow: "as above",
    indexes.IndexRow: "from the sources and the pages, by a job",
    files.UsageRow: "from the sizes of files and pages",
    jobs.JobRow: "from pending bookings and dialogs; jobs of deletions in progress are exported",
    workspaces.WorkspaceRow: "from its row, with the owner's account here",
    workspaces.MemberRow: "with its membership",
    workspaces.MembershipRow: "for members who have an account here",
    choices.ChoicesRow: "as their memberships",
}
"""Rows that the import derives from others, with their sources.

Derived rows are consistent even if the workspace changed during the export.
"""
EXCLUDED: Mapping[type[Row], str] = {
    accounts.AccountRow: "belongs to no workspace, and contains a password",
    api_keys.ApiKeyRow: "a secret that is valid for one stage; create a new key",
    api_keys.ApiKeyLookupRow: "as its key",
    connections.ConnectionRow: "tokens that are valid for one stage; connect the app again",
    connections.ConnectionLookupRow: "as its connection",
    bot_keys.BotKeyRow: "as an API key",
    bot_keys.BotKeyLookupRow: "as its key",
    console_sessions.ConsoleSessionRow: "belongs to an account, and grants access",
    console_sessions.ConsoleSessionLookupRow: "as its session",
    directory.ListedBusinessRow: "the owner of the copy decides whether it is listed",
    directory.BusinessEntryRow: "as above",
    invitations.InvitationRow: "a link that works at one stage; invite the person again",
    invitations.InvitationLookupRow: "as its invitation",
    password_resets.PasswordResetRow: "a link that works at one stage for an hour",
    sign_ups.SignUpRow: "a link that works at one stage for a day",
    consents.ConsentRow: "belongs to an account",
    audit.AuditRow: "append-only: it records only events of this stage",
    ledger.WalletRow: "money belongs to an account of one stage",
    ledger.LedgerEntryRow: "as the wallet",
    ledger.HoldRow: "as the wallet",
    ledger.CreditKeyRow: "as the wallet",
    sms_holds.SmsHoldRow: "as the wallet",
    sms_holds.LowBalanceNoticeRow: "what the owner has been told here",
    sms_prices.SmsPriceRow: "the operator of a stage sets them",
    short_links.ShortLinkRow: "in SMS of this stage",
    merchant_rows.MerchantPaymentRow: "payments at the test merchant move no money",
    payments.ProviderIdRow: "notifications of a provider go to the stage of the payment",
    budgets.VisitorSpendingRow: "a hash with the stage's salt of the day",
    budgets.LimitNoticeRow: "what the owner has been told here",
    page_drafts.DraftRow: "pages are exported as visitors see them",
    page_versions.VersionRow: "pages are exported as they are",
    posts.PostRow: "the blog is the platform's own",
    posts.ContentTextRow: "as its post",
    posts.FormerSlugRow: "as its post",
    files.UploadRow: "an announced upload lapses within the hour",
    leads.SubmissionRow: "keeps a visitor from submitting twice for ten minutes",
    site_visits.SeenRow: "a hash with the stage's salt of the day",
    visits.VisitRow: "a widget's current visit, deleted after 30 days; it is counted again",
    requested_bookings.AwaitedBookingRow: "a link that ends within the hour",
    visitor_bookings.VisitorBookingsRow: "a hash with the stage's salt of the day",
    busy_calendars.BusyCalendarRow: "the secret link of a person's own calendar",
    calendar_links.CalendarLinkRow: "a link that works at one stage; make a new one",
    locks.LockRow: "used only during a write",
    locks.UnreadLockRow: "used only during a write",
    idempotency.IdempotencyRow: "answers for 24 hours, for principals of the stage",
    limits.RateLimitRow: "a rate limit's window",
    key_errors.KeyErrorRow: "failed calls of a week, of keys of this stage",
    open_streams.OpenStreamsRow: "connections that are open now",
    proposals.ProposalRow: "ends after 15 minutes; what came of it is a booking or a lead",
    proposals.LatestRow: "free times that a bot has named within the hour",
    windows.WindowRow: "messages of ten minutes",
    suppressions.SuppressionRow: "belongs to the platform",
    mail_rates.MailDayRow: "mails that this stage has sent in a month",
    mail_rates.MailReportRow: "as above",
    mail_rates.MailPauseRow: "an operator of the stage ends it",
    kept_messages.KeptMessageRow: "messages of a week, which were not sent",
    mail_log.ClientMailRow: "a copy must not send the mails of the original",
    mail_log.WithheldRow: "numbers of 35 days, of this stage",
    client_chats.ClientChatRow: "belongs to a person, and to a bot of this stage",
    client_chats.ClientChatEntryRow: "as its link",
    client_chats.ClientChatCodeRow: "ends after 24 hours",
    client_deliveries.ClientDeliveryRow: "a copy must not send the messages of the original",
    telegram_links.TelegramLinkRow: "belongs to an account, and to a bot of this stage",
    telegram_links.TelegramChatRow: "as its link",
    telegram_links.TelegramCodeRow: "ends after 10 minutes",
    assertions.UsedAssertionRow: "is kept for the 10 minutes in which it could be used again",
    visitors.SaltRow: "a secret of the platform",
    deliveries.DeliveryRow: "a copy must not report what happened to the original",
    turns.TurnRow: "used only while requests are sent",
    cache.CacheRow: "belongs to the platform",
    exports.ExportRow: "names a file of this stage, which is deleted after some days",
    imports.ImportRow: "as above; what it has imported is exported",
}
"""Classes that are not exported, with the reason."""
LEFT_OF_NOUN: Mapping[type[Row], frozenset[str]] = {
    webhooks.WebhookRow: frozenset(
        {
            # Accounts and keys of the stage.
            *("changed_by", "changed_with", "key_ids"),
            # Times of a secret and of deliveries that an import does not have.
            *("rotated_at", "first_version", "skip_before", "off_at", "on_at"),
        }
    ),
}
"""Attributes that the export of a noun leaves out."""
MONEY: frozenset[type[Row]] = frozenset(
    {budgets.BudgetRow, merchants.MerchantRow, payments.PaymentRow, payments.RefundRow}
)
"""Rows that the export of a key leaves out, as no key may reach money."""
PAYMENT_ATTRIBUTES = frozenset({"paid_by", "paid", "payment_ids"})
"""Attributes of a booking that name its payments. Without the payments, it does not look paid."""
NOT_INCLUDED: Mapping[str, str] = {
    "accounts": "people need an account on the other stage",
    "apiKeys": "create new keys for programs and bots, and connect apps again",
    "auditLog": "it records events of one stage",
    "balances": "money belongs to an account of one stage, as do top-ups",
    "busyCalendars": "the link of a person's own calendar is a secret; enter it again",
    "calendarLinks": "a link works at one stage; make new ones, and give them to calendar programs",
    "clientChats": "a chat belongs to a bot of this stage; clients link it again",
    "pageDrafts": "pages are exported as visitors see them; publish a draft first",
    "pageVersions": "pages are exported as they are",
    "providerSecrets": "set up payments again; payments and refunds are exported for reading only",
    "webhookDeliveries": "webhooks are imported paused, with new secrets, so that a copy does not "
    "report to the systems of the original",
}
"""What a file does not contain, with the reason, for who reads the file or its summary."""
_NO_MONEY = "a key does not reach money; the owner's export in the console has them"
NOT_INCLUDED_BY_KEY: Mapping[str, str] = {
    **NOT_INCLUDED,
    "botLimits": _NO_MONEY,
    "members": "a key does not reach members; the owner's export in the console has them",
    "merchants": _NO_MONEY,
    "payments": f"{_NO_MONEY}. A booking in this file does not say that it was paid",
    "providerSecrets": "set up payments again",
    "refunds": _NO_MONEY,
    "spending": _NO_MONEY,
}
"""What the file of an API key does not contain."""
VIEWS: tuple[type[Row], ...] = (
    clients.ActivityRow,
    file_uses.FileVersionRow,
    pages.PageCountRow,
    products.StockRow,
    TotalsRow,
    subscriptions.SubscriptionsRow,
    workspace_currency.CurrencyRow,
)
"""Other models of exported rows."""

EXCLUDED_JOBS: Mapping[str, str] = {
    EXPORT: "exports are not exported",
    EXPORT_EXPIRED: "as above",
    IMPORT: "what it has imported so far is exported",
    IMPORT_EXPIRED: "imports are not exported",
    holds.LAPSE: "made again from the booking",
    dialog_removal.DIALOG_EXPIRED: "made again from the dialog",
    ledger.SETTLE_HOLD: "held money is not exported",
    sms_holds.SETTLE_SMS: "as above",
    CHECK_SMS: "the SMS was sent here",
    **dict.fromkeys(
        (*PAYMENT_JOBS.values(), *REFUND_JOBS.values()), "payments are exported for reading only"
    ),
    READ_RETURNS: "accounts at payment providers are exported for reading only",
    END_MERCHANT_SECRET: "secrets of payment accounts are not exported",
    CLOSE_RECEIPT: "as above",
    idempotency.ANSWER_EXPIRED: "stored answers are not exported",
    UPLOAD_LAPSED: "announced uploads are not exported",
    REPLACED: "a file is exported as its URL shows it",
    rehosting.ORPHAN: "objects that no record names are not exported",
    html.UNUSED: "as above",
    source_texts.UNUSED_TEXT: "as above",
    indexing.UNUSED_INDEX: "indexes are not exported",
    READ_BUSY_TIMES: "links of own calendars are not exported",
    CLEAR_BUSY_TIMES: "busy times are not exported",
    COUNT_REPORTS: "the first report of a copy counts its bookings",
    KNOWLEDGE_STALE: "made again for the bots",
    emptying.WIPE: "a copy is not emptied",
    TEST_IDLE: "a copy is kept until its owner empties it",
    MEMBERSHIP_ENDED: "what it removes is not exported",
    END_CALENDAR_LINK: "calendar links are not exported",
    COVER_UNUSED: "the blog is the platform's own",
    domain_binding.CHECK: "a call checks a domain again",
    domain_binding.RELEASE: "hosts belong to the stage",
    WEBHOOK_EVENTS: "webhooks are imported paused",
    DELIVER_WEBHOOK: "as above",
    WEBHOOK_REPLIES: "as above",
    PAUSE_WEBHOOKS: "as above",
    PEOPLE_EVENTS: "members are told by the service that the events happened in",
    NOTIFY_MEMBER: "as above",
    NOTIFY_DIGEST: "as above",
    VISITOR_EVENTS: "a copy must not send the mails of the original",
    MAIL_CLIENT: "as above",
    REMIND_CLIENT: "as above",
    BOOK_AGAIN: "as above",
    DAYS_CHANGED: "as above; a line goes on when somebody joins it",
    ATTEND_LINE: "as above",
    TELL_WAITING: "as above",
    MAIL_INVITATION: "invitations are not exported",
    MAIL_PASSWORD_RESET: "accounts are not exported",
    MAIL_PASSWORD_SET: "as above",
    MAIL_SIGN_UP: "as above",
    MAIL_CONFIRMED: "as above",
    MAIL_REPLY: "a copy must not send the mails of the original",
    MAIL_BOOKING_LINK: "its link ends within the hour",
    MAIL_PROOF: "accounts are not exported",
    DIRECTORY: "a copy is not listed",
    MAIL_STANDING: "a copy must not send the mails of the original",
    CANCEL_BOOKINGS: "a copy is open",
    DELETE_WORKSPACE: "as above",
    MAIL_TEST_IDLE: "a copy must not send the mails of the original",
}
"""Scheduled jobs that are not exported. All others are: they finish deletions in progress."""


def nouns() -> list[Listing[Any]]:
    """Return the listings of the exported nouns, always in the same order."""
    return [NOUNS[name] for name in sorted(NOUNS) if NOUNS[name].row not in EXCLUDED]


def noun_at(at: str) -> Listing[Any] | None:
    """Return the listing of a partition's records, live or trashed, or None without records."""
    name = at.removesuffix(TRASH)
    return NOUNS[name] if name in NOUNS and NOUNS[name].row not in EXCLUDED else None


def kind_at(at: str) -> Kind | None:
    """Return the kind of a partition's rows, or None if the rows are records or not exported."""
    for kind in EXPORTED:
        if at == kind.at or (kind.at.endswith("#") and at.startswith(kind.at)):
            return kind
    return None


def partition(workspace_id: str, *, at: str) -> str:
    """Return the full partition key of ``at`` in a workspace."""
    return f"W#{workspace_id}#{at}"
