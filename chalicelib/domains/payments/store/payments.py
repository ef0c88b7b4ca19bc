"""Store payments and refunds, and find a payment by the provider's id.

Every change of a status is an update on the condition that the stored status is unchanged. The
transaction of the update also has the consequences of the change (ADR 84). Neither row has contacts
of a client.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal

from pynamodb.attributes import (
    BooleanAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.domains.payments.rules import payment_states
from chalicelib.domains.payments.rules.job_kinds import PAYMENT_JOBS, REFUND_JOBS
from chalicelib.domains.payments.rules.payment_states import RefundReason
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.reading import fetch_of
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork

Purpose = Literal["booking", "top_up"]
CREATED, PENDING, SUCCEEDED, EXPIRED, FAILED = (
    *("created", "pending", "succeeded", "expired", "failed"),
)
REFUSED = "refused"  # shown, not stored, of a failed payment that the provider never had
REQUESTED, SENT, DONE = "requested", "sent", "done"
OPEN = (CREATED, PENDING)  # The client can still make such a payment.


class PaymentRow(ContentRow):
    """A payment. Amounts are in minor units. Its id is also its idempotency key at the provider."""

    status = UnicodeAttribute()
    purpose = UnicodeAttribute()
    subject_id = UnicodeAttribute()  # the booking, or the account whose balance is topped up
    merchant_id = UnicodeAttribute()  # the account at the provider
    amount = NumberAttribute()
    currency = UnicodeAttribute()
    # Stored like the mode: a repeated request must equal the first one.
    description = UnicodeAttribute()
    mode = UnicodeAttribute()
    return_url = UnicodeAttribute()
    created_at = UTCDateTimeAttribute()
    expires_at = UTCDateTimeAttribute()
    has_receipt = BooleanAttribute()
    # What the provider must name in each report: the payment's id, or None if the payment is older
    # than this rule.
    reference = UnicodeAttribute(null=True)
    is_test = BooleanAttribute(null=True)  # No money moved.
    provider_id = UnicodeAttribute(null=True)  # set with the URL once the provider has the payment
    payment_ref = UnicodeAttribute(null=True)
    url = UnicodeAttribute(null=True)
    reason = UnicodeAttribute(null=True)
    problem = UnicodeAttribute(null=True)  # why a response of the provider was refused
    paid_at = UTCDateTimeAttribute(null=True)
    refund_total = NumberAttribute(default=0)  # requested by this service
    refunded_at_provider = NumberAttribute(default=0)  # reported by the provider
    disputed = NumberAttribute(default=0)  # taken back by the client's bank
    # What a balance has lost of a top-up because of both, or what the client of a booking was told
    # of that was refunded at the provider without this service.
    returned = NumberAttribute(default=0)
    # When the provider was first asked for the closing receipt.
    receipt_sent_at = UTCDateTimeAttribute(null=True)
    receipt_description = UnicodeAttribute(null=True)  # what the closing receipt names
    # When the provider took the closing receipt.
    receipt_closed_at = UTCDateTimeAttribute(null=True)
    # The payment came with a workspace from another stage, and is for reading only, because this
    # stage does not know the secret of its account.
    is_imported = BooleanAttribute(null=True)

    @property
    def id(self) -> str:
        return self.sk

    @property
    def shown_status(self) -> str:
        is_refused = self.status == FAILED and self.provider_id is None and self.reason is not None
        return REFUSED if is_refused else self.status

    @property
    def is_open(self) -> bool:
        return self.status in OPEN and not self.is_imported

    @property
    def kept(self) -> int:
        """Amount that was paid and not refunded."""
        if self.status != SUCCEEDED:
            return 0
        left = self.amount - max(self.refund_total, self.refunded_at_provider) - self.disputed
        return max(int(left), 0)

    @property
    def refundable(self) -> int:
        """Amount that can still be refunded by the service."""
        return 0 if self.is_imported else self.kept


class RefundRow(ContentRow):
    """A refund of a payment."""

    status = UnicodeAttribute()
    amount = NumberAttribute()
    by = UnicodeAttribute()  # the actor in the audit log
    created_at = UTCDateTimeAttribute()
    attempt = NumberAttribute(default=1)  # part of the idempotency key
    # When the provider was first asked with this key.
    first_sent_at = UTCDateTimeAttribute(null=True)
    provider_id = UnicodeAttribute(null=True)
    failure = UnicodeAttribute(null=True)  # the provider's reason
    reason = UnicodeAttribute(null=True)  # why the money is returned
    description = UnicodeAttribute(null=True)  # what the receipt names
    ended_at = UTCDateTimeAttribute(null=True)

    @property
    def payment_id(self) -> str:
        return self.sk.partition("#")[0]

    @property
    def id(self) -> str:
        return self.sk.partition("#")[2]

    @property
    def idempotency_key(self) -> str:
        return f"{self.id}-{int(self.attempt)}"


class ProviderIdTakenError(Exception):
    """The provider's id stands for another payment. Internal: the payment is not applied."""

    precedence = 0


class ProviderIdRow(ContentRow):
    """The payment that a provider's id stands for."""

    workspace_id = UnicodeAttribute()
    payment_id = UnicodeAttribute()


def new(
    workspace_id: str,
    purpose: Purpose,
    currency: str,
    **attributes: Any,  # noqa: ANN401  the row's
) -> PaymentRow:
    """Return a new payment, for the caller to stage with ``stage_new``."""
    payment_id = new_id()
    return PaymentRow(
        _payments(workspace_id),
        payment_id,
        reference=payment_id,
        status=CREATED,
        purpose=purpose,
        currency=currency,
        created_at=clock.now(),
        **attributes,
    )


def stage_new(unit: UnitOfWork, payment: PaymentRow) -> None:
    """Stage a new payment with the job that asks the provider for its state."""
    unit.create(payment)
    due = payment_states.next_check(payment.created_at, now=payment.created_at)
    unit.create(payment_job(unit.workspace_id, payment, due))


def payment_job(workspace_id: str, payment: PaymentRow, due: datetime | None = None) -> JobRow:
    """Return the job that asks the provider for the state of a payment."""
    kind, payload = PAYMENT_JOBS[payment.purpose], {"paymentId": payment.id}
    return jobs.row(kind, workspace_id, payload, due, job_id=payment.id)


def find(workspace_id: str, *, payment_id: str) -> PaymentRow | None:
    """Return a payment, or None."""
    return PaymentRow.find(_payments(workspace_id), payment_id)


def fetch(workspace_id: str, payment_ids: list[str]) -> list[PaymentRow]:
    """Return the payments with these ids, newest first."""
    keys = ((_payments(workspace_id), payment_id) for payment_id in dict.fromkeys(payment_ids))
    return sorted(fetch_of(PaymentRow, keys), key=lambda row: row.id, reverse=True)


def require(workspace_id: str, *, payment_id: str) -> PaymentRow:
    """Return a payment, or raise NotFoundError."""
    payment = find(workspace_id, payment_id=payment_id)
    if payment is None:
        raise NotFoundError(
            "No payment has this id in the workspace. List the payments.", key="payment"
        )
    return payment


def stage_change(unit: UnitOfWork, payment: PaymentRow, **values: Any) -> None:  # noqa: ANN401  the row's attributes
    """Stage new values of a payment, whose status must be unchanged at commit."""
    # No refund may have been requested since, so that the sum of refunds never exceeds the payment.
    # What a balance has lost must be unchanged, too, so that it is taken once.
    returned = int(payment.returned)
    same_return = PaymentRow.returned == returned
    if not returned:  # Older rows do not have the attribute.
        same_return |= PaymentRow.returned.does_not_exist()
    unchanged = (
        (PaymentRow.status == payment.status)
        & (PaymentRow.refund_total == int(payment.refund_total))
        & same_return
    )
    unit.update(payment, _actions(PaymentRow, values), unchanged)
    if payment.purpose == "booking":
        # Reports count again what the audit log names.
        unit.mention(f"booking:{payment.subject_id}")


def stage_created(unit: UnitOfWork, payment: PaymentRow, provider_id: str, *, url: str) -> None:
    """Stage that the provider has a payment, which is found by the provider's id."""
    stage_change(unit, payment, status=PENDING, provider_id=provider_id, url=url)
    stage_provider_id(unit, payment, provider_id)


def stage_refund(  # noqa: PLR0913  the parts of a refund
    unit: UnitOfWork,
    payment: PaymentRow,
    amount: int,
    *,
    by: str,
    reason: RefundReason,
    description: str | None = None,
) -> RefundRow:
    """Stage a refund with its job.

    The caller adds it to ``refund_total`` with ``stage_change``. Without a ``description``, its
    receipt names the payment's.
    """
    refund = RefundRow(
        _refunds(unit.workspace_id),
        f"{payment.id}#{new_id()}",
        status=REQUESTED,
        amount=amount,
        by=by,
        reason=reason,
        description=description,
        created_at=clock.now(),
    )
    unit.create(refund)
    unit.create(refund_job(unit.workspace_id, payment, refund))
    return refund


def refund_job(
    workspace_id: str, payment: PaymentRow, refund: RefundRow, due: datetime | None = None
) -> JobRow:
    """Return the job that sends a refund."""
    payload = {"paymentId": payment.id, "refundId": refund.id}
    kind, job_id = REFUND_JOBS[payment.purpose], refund.idempotency_key
    return jobs.row(kind, workspace_id, payload, due, job_id=job_id)


def find_refund(workspace_id: str, *, payment_id: str, refund_id: str) -> RefundRow | None:
    """Return a refund, or None."""
    return RefundRow.find(_refunds(workspace_id), f"{payment_id}#{refund_id}")


def refunds_of(workspace_id: str, payment_ids: list[str]) -> list[RefundRow]:
    """Return the refunds of payments, oldest first."""
    if not payment_ids:
        return []
    # Other payments between the first and the last one are read, too.
    first, last = min(payment_ids), f"{max(payment_ids)}#~"
    rows = RefundRow.partition(
        _refunds(workspace_id), range_key_condition=RefundRow.sk.between(first, last)
    )
    wanted_ids = set(payment_ids)
    return [row for row in rows if row.payment_id in wanted_ids]


def refunds_since(workspace_id: str, first_id: str) -> list[RefundRow]:
    """Return the refunds of the payments from ``first_id`` on, by payment, oldest first."""
    return RefundRow.partition(_refunds(workspace_id), range_key_condition=RefundRow.sk >= first_id)


def refunded_elsewhere(refunds: Iterable[RefundRow], reported: int) -> int:
    """Return the amount that was refunded at the provider without this service.

    ``refunds`` are those of one payment, and ``reported`` is what the provider reports. A refund
    that has failed here is often made there.
    """
    ours = sum(int(refund.amount) for refund in refunds if refund.status != FAILED)
    return max(0, reported - ours)


def stage_refund_change(unit: UnitOfWork, refund: RefundRow, **values: Any) -> None:  # noqa: ANN401  as above
    """Stage new values of a refund, whose status and attempt must be unchanged at commit."""
    unchanged = (RefundRow.status == refund.status) & (RefundRow.attempt == int(refund.attempt))
    unit.update(refund, _actions(RefundRow, values), unchanged)


def stage_refund_retry(unit: UnitOfWork, payment: PaymentRow, refund: RefundRow) -> None:
    """Stage another attempt of a failed refund, with its job."""
    attempt = int(refund.attempt) + 1
    stage_refund_change(
        unit, refund, status=REQUESTED, attempt=attempt, provider_id=None, failure=None
    )
    refund.attempt = attempt
    unit.create(refund_job(unit.workspace_id, payment, refund))


def stage_provider_id(unit: UnitOfWork, payment: PaymentRow, provider_id: str) -> None:
    """Stage that a payment is found by an id of the provider.

    If the id stands for another payment, the commit raises ``ProviderIdTakenError``. So one payment
    at the provider is never applied to two.
    """
    row = ProviderIdRow(_provider_ids(payment.merchant_id), provider_id)
    actions: list[Action] = [
        ProviderIdRow.workspace_id.set(unit.workspace_id),
        ProviderIdRow.payment_id.set(payment.id),
    ]
    is_free = ProviderIdRow.pk.does_not_exist() | (ProviderIdRow.payment_id == payment.id)
    unit.update(row, actions, is_free, on_conflict=ProviderIdTakenError())


def find_by_provider_id(merchant_id: str, *, provider_id: str) -> ProviderIdRow | None:
    """Return what a provider's id stands for within an account, or None."""
    return ProviderIdRow.find(_provider_ids(merchant_id), provider_id)


def known_payment(merchant_id: str) -> PaymentRow | None:
    """Return a payment that an account at a provider has, or None if it has none."""
    rows = ProviderIdRow.partition(_provider_ids(merchant_id), limit=1)
    return find(rows[0].workspace_id, payment_id=rows[0].payment_id) if rows else None


def latest(
    workspace_id: str,
    limit: int | None,
    *,
    first_id: str | None = None,
    last_id: str | None = None,
) -> list[PaymentRow]:
    """Return payments from ``first_id`` to below ``last_id``, newest first, all without a limit."""
    first, last = first_id or "0", last_id or "~"
    if last < first:  # DynamoDB refuses such bounds.
        return []
    bounds = PaymentRow.sk.between(first, last)
    rows = PaymentRow.partition(
        _payments(workspace_id),
        range_key_condition=bounds,
        limit=limit and limit + 1,
        scan_index_forward=False,
    )
    return [row for row in rows if row.id != last_id][:limit]


def is_repeatable(first_sent_at: Any, hours: int) -> bool:  # noqa: ANN401  a moment, or None
    """Whether the provider still knows the idempotency key of a request."""
    return first_sent_at is not None and clock.now() - first_sent_at < timedelta(hours=hours)


def _actions(row: type[ContentRow], values: dict[str, Any]) -> list[Action]:
    paths = {name: getattr(row, name) for name in values}
    return [
        path.remove() if values[name] is None else path.set(values[name])
        for name, path in paths.items()
    ]


def _payments(workspace_id: str) -> str:
    return f"W#{workspace_id}#PAYMENT"


def _refunds(workspace_id: str) -> str:
    return f"W#{workspace_id}#PAYMENT#REFUND"


def _provider_ids(merchant_id: str) -> str:
    return f"W#platform#PAYMENT#PROVIDER#{merchant_id}"
