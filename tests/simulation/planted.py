"""Bugs that the simulation must find, so that a simulation without findings means something."""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import WEBHOOK_EVENTS
from chalicelib.domains.bookings.flows import booking_payments
from chalicelib.domains.bookings.rules import payment_effects, slots
from chalicelib.domains.bookings.rules.payment_effects import Effect, PaidBooking
from chalicelib.domains.payments.flows import accounts
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.payments import PaymentRow, RefundRow
from chalicelib.domains.schedule.flows import start_planning
from chalicelib.domains.schedule.operations import dated_starts
from chalicelib.domains.services.rules.booking_rules import ServiceRules
from chalicelib.domains.services.store import time_off
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.domains.services.store.time_off import CheckedTimeOff
from chalicelib.domains.waiting.rules import line_steps
from chalicelib.domains.waiting.rules.line_steps import FreeTimes, Line, Step
from chalicelib.engine import connection
from chalicelib.engine.reading import Key
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.spans import Span
from tests.simulation.database import RATES, TRANSACTION, Reply, Sent, SimulatedDatabase
from tests.simulation.schedule import Schedule

Action = dict[str, Any]


class _Unconditional(SimulatedDatabase):
    """Carries out the writes of some rows without their condition."""

    mark: str
    """Part of the key of these rows."""

    def _send(self, request: Sent) -> Reply:
        body = request.body
        if request.name == TRANSACTION:
            body["TransactItems"] = [
                {kind: self._drop_condition(action) for kind, action in item.items()}
                for item in body["TransactItems"]
            ]
        elif request.name == "UpdateItem":
            body = self._drop_condition(body)
        return super()._send(request.having(body))

    def _drop_condition(self, action: Action) -> Action:
        if self.mark not in _key(action) or "ConditionExpression" not in action:
            return action
        unconditional = {
            name: value for name, value in action.items() if name != "ConditionExpression"
        }
        for names in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
            used = unconditional.get("UpdateExpression", "")
            unconditional[names] = {
                n: v for n, v in unconditional.get(names, {}).items() if n in used
            }
            if not unconditional[names]:
                del unconditional[names]
        return unconditional


class LostCondition(_Unconditional):
    """A day of the calendar is written without the condition that nobody else changed it."""

    mark = "#CALENDAR#"


class LineWithoutCondition(_Unconditional):
    """A waiting list is written without the condition that nobody else changed it."""

    mark = "#WAITING_LINE"


class RetryWithoutMarker(_Unconditional):
    """A transaction is sent again although its first attempt may have been carried out."""

    mark = "#AUDIT"

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule)
        self.rate = max(RATES)  # Calm schedules lose no response, and so cannot show this bug.


class JobDoneTwice(_Unconditional):
    """A runner takes the lease of a job that another runner has taken in the meantime."""

    mark = "JOBS#"


class _Outside(SimulatedDatabase):
    """Writes some rows of a transaction after the transaction, each in a write of its own."""

    mark: str
    """Part of the key of these rows, or of the row."""

    def _send(self, request: Sent) -> Reply:
        items = request.body["TransactItems"] if request.name == TRANSACTION else []
        apart = [item for item in items if self.mark in _key(next(iter(item.values())))]
        if not apart:
            return super()._send(request)
        remaining_items = [item for item in items if item not in apart]
        reply = super()._send(request.having(request.body | {"TransactItems": remaining_items}))
        if reply[0].status_code == 200:
            for kind, action in (pair for item in apart for pair in item.items()):
                write = getattr(connection.connection().client, f"{kind.lower()}_item")
                with suppress(ClientError, BotoCoreError):
                    write(**action)
        return reply


class CounterOutside(_Outside):
    """The counters of a record are written after the transaction of the record."""

    mark = "#COUNT"


class EventOutside(_Outside):
    """The job for the events of a change is written after the transaction of the change."""

    mark = f'"{WEBHOOK_EVENTS}"'


class PaymentOutside(_Outside):
    """The status of a payment is written after the transaction of what follows from the payment."""

    mark = '#PAYMENT"'


def _own_cause(patch: pytest.MonkeyPatch) -> None:
    def raise_failure(_: Exception) -> NoReturn:
        error = UnavailableError()
        raise error from error

    patch.setattr(connection, "raise_failure", raise_failure)


def _new_key_for_each_request(patch: pytest.MonkeyPatch) -> None:
    key = property(lambda refund: f"{refund.id}-{new_id()}")
    patch.setattr(RefundRow, "idempotency_key", key)


def _forget_erasures(patch: pytest.MonkeyPatch) -> None:
    def effect_of(booking: PaidBooking | None, **times: datetime) -> Effect:
        known = booking and booking._replace(is_erased=False)
        return payment_effects.effect_of(known, **times)

    patch.setattr(booking_payments, "effect_of", effect_of)


def _overwrite_the_former_account(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        accounts, "find_same", lambda workspace_id, *_, **__: merchants.find_current(workspace_id)
    )


def _take_a_return_twice(patch: pytest.MonkeyPatch) -> None:
    change = payments.stage_change

    def stage_change(unit: UnitOfWork, payment: PaymentRow, **values: Any) -> None:
        # What was taken is forgotten, so the next reading takes it again.
        values.pop("returned", None)
        if values:
            change(unit, payment, **values)

    patch.setattr(payments, "stage_change", stage_change)


def _read_the_lock_after_the_time_off(patch: pytest.MonkeyPatch) -> None:
    def read_checked(unit: UnitOfWork, span: Span, keys: Iterable[Key] = ()) -> CheckedTimeOff:
        workspace_id = unit.workspace_id
        rows = time_off.overlapping(workspace_id, span.start, last_ms=span.end)
        unit.rows.read(keys)
        return CheckedTimeOff(time_off.read_lock(workspace_id), rows)

    patch.setattr(time_off, "read_checked", read_checked)


def _search_with_the_length_of_the_service(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ServiceRules, "with_resource", lambda rules, _: rules._replace(lengths={}))


def _book_at_the_price_of_another(patch: pytest.MonkeyPatch) -> None:
    offer = ServiceRow.offer
    patch.setattr(ServiceRow, "offer", lambda service, _: offer(service, service.resource_ids[0]))


def _offer_beside_an_offer(patch: pytest.MonkeyPatch) -> None:
    attend = line_steps.attend

    def forgetful(line: Line, free: FreeTimes, **about: Any) -> Step:
        rest = tuple(each for each in line.waiting if not line.offer or each.id != line.offer[0])
        return attend(Line(rest), free, **about)

    patch.setattr(line_steps, "attend", forgetful)


def _book_over_dates_of_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slots, "_is_taken_by_own", lambda *_: True)


def _add_dates_over_bookings(patch: pytest.MonkeyPatch) -> None:
    reason_against = start_planning._reason_against
    patch.setattr(start_planning, "_reason_against", lambda *found: reason_against(*found[:3], ()))


def _remove_dates_with_bookings(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dated_starts, "_require_no_bookings", lambda *_: None)


def _nothing(_: pytest.MonkeyPatch) -> None:
    pass


@dataclass(frozen=True)
class Bug:
    """A bug, and the scenario that must find it."""

    scenario: str
    seed: int
    """A seed that finds it. If the service changes, a later seed may be the first to find it."""
    database: type[SimulatedDatabase] = SimulatedDatabase
    plant: Callable[[pytest.MonkeyPatch], None] = _nothing


BUGS = {
    "a lost condition": Bug("booking", 0, LostCondition),
    "a search with the length of the service": Bug(
        "staff", 0, plant=_search_with_the_length_of_the_service
    ),
    "the price of another resource": Bug("staff", 0, plant=_book_at_the_price_of_another),
    "a lock that is read too late": Bug("closing", 4, plant=_read_the_lock_after_the_time_off),
    "a line without a condition": Bug("waiting", 0, LineWithoutCondition),
    "an offer beside an offer": Bug("waiting", 0, plant=_offer_beside_an_offer),
    "a date without a condition": Bug("dates", 0, LostCondition),
    "a booking over a date of another service": Bug("dates", 0, plant=_book_over_dates_of_others),
    "a date over a booking": Bug("dates", 0, plant=_add_dates_over_bookings),
    "a date that goes in spite of its bookings": Bug("dates", 0, plant=_remove_dates_with_bookings),
    "a retry without a marker": Bug("creating", 29, RetryWithoutMarker),
    "a counter outside the transaction": Bug("creating", 5, CounterOutside),
    "an event outside the transaction": Bug("events", 9, EventOutside),
    "a cause that is its own": Bug("jobs", 24, plant=_own_cause),
    "a job done twice": Bug("jobs", 1, JobDoneTwice),
    "a payment outside the transaction": Bug("paying", 39, PaymentOutside),
    "a payment that forgets an erasure": Bug("paying", 67, plant=_forget_erasures),
    "a key that overwrites another account's": Bug(
        "replacing", 14, plant=_overwrite_the_former_account
    ),
    "a return that is taken twice": Bug("returning", 0, plant=_take_a_return_twice),
    "a new key for each request of a refund": Bug("paying", 249, plant=_new_key_for_each_request),
}


def _key(action: Action) -> str:
    return json.dumps(action.get("Key") or action.get("Item"))
