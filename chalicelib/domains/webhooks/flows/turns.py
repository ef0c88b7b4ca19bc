"""Create the deliveries of events to webhooks, and send them as signed requests.

One worker at a time sends the due deliveries of a webhook (Standard Webhooks).
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pydantic_core import to_json

from chalicelib.core import clock, deadline
from chalicelib.core.clock import iso
from chalicelib.core.deadline import Deadline
from chalicelib.core.events import EVENT_TYPES
from chalicelib.core.jobs import DELIVER_WEBHOOK, WEBHOOK_EVENTS, Job, job_handler
from chalicelib.core.operations import REGISTRY
from chalicelib.core.settings import settings
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.webhooks import rules
from chalicelib.domains.webhooks.rules import webhook_secret
from chalicelib.domains.webhooks.store import deliveries, turns, webhooks
from chalicelib.domains.webhooks.store.deliveries import DeliveryRow
from chalicelib.domains.webhooks.store.turns import TurnRow
from chalicelib.domains.webhooks.store.webhooks import (
    FAILING,
    GONE,
    LOCK,
    OFF,
    WEBHOOKS,
    WebhookRow,
)
from chalicelib.engine import jobs, locks
from chalicelib.engine.events import subscriptions, wake
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import post
from chalicelib.gateways.master_key import master_key
from chalicelib.gateways.public_http import FetchError


def stage_wanted_types(
    unit: UnitOfWork,
    *,
    changed_webhook: WebhookRow | None = None,
    deleted: WebhookRow | None = None,
) -> None:
    """Stage the types that the webhooks want, after a change or a deletion that is staged.

    The unit saves the lock row of the workspace's webhooks.
    """
    there = {webhook.id: webhook for webhook in webhooks.read_all(unit.workspace_id)}
    if changed_webhook is not None:
        there[changed_webhook.id] = changed_webhook
    if deleted is not None:
        del there[deleted.id]
    types = set[str]().union(*(webhook.wanted_types for webhook in there.values()))
    # A unit of work stores no job for an event that no webhook wants.
    unit.update(*subscriptions.change_of_webhooks(unit.workspace_id, types))
    unit.after_commit(subscriptions.forget)


TURN_SECONDS = 20.0
"""Time to send to one webhook. Others wait no longer for the worker."""
TURN = timedelta(seconds=TURN_SECONDS + 30)
"""For how long a turn is taken: the last attempts of a turn may end later than it."""
BATCH = 20
"""Deliveries that are read in one request."""
PARALLEL_REQUESTS = 4
"""Requests to a webhook at the same time."""
REST_AFTER_FAILURE = timedelta(seconds=10)
LONGEST_REST = timedelta(minutes=5)
"""Rest of a webhook after failures: ten seconds for each in a row, up to five minutes."""
GONE_STATUS = 410
UNPREPARED = "the service could not prepare the event, and will try again"
"""The error of an attempt that sent no request."""

log = logging.getLogger(__name__)


class Attempt(NamedTuple):
    """Outcome of an attempt.

    Without a response, ``error`` has the reason.
    """

    status: int | None
    milliseconds: int
    reply: str = ""
    error: str | None = None
    retry_after: timedelta | None = None

    @property
    def is_ok(self) -> bool:
        """Whether the receiver has accepted the event."""
        return self.status is not None and 200 <= self.status <= 299  # noqa: PLR2004  the statuses of success


Send = Callable[[WebhookRow, DeliveryRow], Attempt]
"""Sends a delivery to its webhook."""


def take(workspace_id: str, webhook_id: str, send: Send) -> None:
    """Send what is due to a webhook, for at most ``TURN_SECONDS``, and schedule the next turn.

    If another worker has the turn, it finds what is due now when its turn ends.

    Raises:
        UnavailableError: the database is unavailable.
    """
    webhook = WEBHOOKS.find(workspace_id, webhook_id)
    if webhook is None or webhook.status == OFF:
        return
    state = turns.take(workspace_id, webhook_id, TURN)
    if state is None:
        # The other worker may have read the deliveries before this event was due.
        if until := turns.find(workspace_id, webhook_id).until:
            schedule_turn(workspace_id, webhook_id, until)
        return
    if state.rest_until is not None and state.rest_until > clock.now():
        pause = state.rest_until - clock.now()
    else:
        pause = _send_due(workspace_id, webhook, state, send)
    turns.release(state, pause)
    if due := deliveries.next_due(workspace_id, webhook_id):
        schedule_turn(workspace_id, webhook_id, max(due, state.rest_until or due))


def _send_due(workspace_id: str, webhook: WebhookRow, state: TurnRow, send: Send) -> timedelta:
    """Send what is due. Returns the rest before the next turn.

    A turn tries each delivery once. What is still due, because the outcome could not be stored,
    waits for the next turn after a rest.
    """
    end, tried = Deadline(TURN_SECONDS), set[str]()
    while not end.passed and (candidates := deliveries.due(workspace_id, webhook.id, BATCH)):
        # A delivery whose outcome could not be stored is still due, and must not be sent twice.
        due = [delivery for delivery in candidates if delivery.event_id not in tried]
        if not due:
            return REST_AFTER_FAILURE
        current = WEBHOOKS.find(workspace_id, webhook.id)
        if current is None or current.status == OFF:
            break
        webhook = current  # A user may have changed its URL or its secret.
        for start in range(0, len(due), PARALLEL_REQUESTS):
            if end.passed:  # A slow receiver takes longer for a batch than a turn lasts.
                break
            next_ones = due[start : start + PARALLEL_REQUESTS]
            tried.update(delivery.event_id for delivery in next_ones)
            group = _drop_unwanted(webhook, next_ones)
            attempts = _send_group(webhook, group, send)
            pause = _rest_after(workspace_id, webhook.id, state, attempts)
            if pause is not None:
                return pause
    return timedelta(0)


def _rest_after(
    workspace_id: str, webhook_id: str, state: TurnRow, attempts: Sequence[Attempt]
) -> timedelta | None:
    """Record what attempts came to. Returns the rest after which to go on, or None to go on now.

    The webhook is switched off if the receiver is gone or has failed for days.
    """
    failed = [attempt for attempt in attempts if not attempt.is_ok]
    # The status 410 means that the receiver is gone permanently (RFC 9110, 15.5.11).
    if any(attempt.status == GONE_STATUS for attempt in failed):
        switch_off(workspace_id, webhook_id, GONE)
        return timedelta(0)
    if len(failed) < len(attempts):
        if failed or state.failures:
            turns.note_success(state)
        return None
    if not failed:
        return None
    turns.note_failures(state, len(failed))
    failures, since = int(state.failures), state.failing_since
    if rules.is_to_be_switched_off(failures, since, clock.now()):
        switch_off(workspace_id, webhook_id, FAILING)
        return timedelta(0)
    wished = [attempt.retry_after for attempt in failed if attempt.retry_after]
    # The receiver's own wait applies, even if it is longer than the rest.
    return max(min(REST_AFTER_FAILURE * failures, LONGEST_REST), *wished, timedelta(0))


def _drop_unwanted(webhook: WebhookRow, group: Sequence[DeliveryRow]) -> list[DeliveryRow]:
    """Give up deliveries that must not be sent any more, and return the others."""
    sendable: list[DeliveryRow] = []
    for delivery in group:
        if webhook.skips(delivery.wanted_since):
            deliveries.stop(delivery)
        else:
            sendable.append(delivery)
    return sendable


def _send_group(webhook: WebhookRow, group: Sequence[DeliveryRow], send: Send) -> list[Attempt]:
    """Send deliveries side by side. Returns the attempts that reached for the receiver.

    A delivery that this service cannot prepare is tried again later, so that it does not hold back
    the others. It is not a failure of the receiver.
    """

    def attempt(delivery: DeliveryRow) -> Attempt | None:
        try:
            outcome = send(webhook, delivery)
        except Exception:
            log.exception("an event could not be prepared", extra={"event": delivery.event_id})
            _store(delivery, Attempt(None, 0, error=UNPREPARED))
            return None
        _store(delivery, outcome)
        return outcome

    attempts = deadline.map_in_threads(attempt, group, PARALLEL_REQUESTS)
    return [outcome for outcome in attempts if outcome is not None]


def _store(delivery: DeliveryRow, attempt: Attempt) -> None:
    """Store what came of an attempt, and when the next one is due."""
    number, now = int(delivery.attempts) + 1, clock.now()
    next_attempt_at = (
        None if attempt.is_ok else rules.next_attempt(number, now, attempt.retry_after)
    )
    deliveries.note_attempt(
        delivery,
        number,
        next_attempt_at,
        is_ok=attempt.is_ok,
        status=attempt.status,
        milliseconds=attempt.milliseconds,
        # A success needs no explanation, and many receivers repeat the data that they got.
        reply=None if attempt.is_ok else attempt.reply or None,
        error=attempt.error,
    )


def switch_off(workspace_id: str, webhook_id: str, reason: str) -> None:
    """Switch a webhook off, because the receiver is gone or has failed for days.

    Raises:
        UnavailableError: the database is unavailable.
    """

    def stage(unit: UnitOfWork) -> None:
        lock = locks.lock_row(workspace_id, LOCK)
        # A member may have switched it off, or changed it, during the turn.
        webhook = WEBHOOKS.find(workspace_id, webhook_id)
        if webhook is None or webhook.status == OFF:
            return
        webhook.switch_off(reason)
        unit.save(lock)
        unit.save(webhook)
        stage_wanted_types(unit, changed_webhook=webhook)
        unit.outbox.emit(Event("webhook.switched_off", webhook.id))

    run_unit(workspace_id, AuditEvent.by_job("switch_off_webhook"), stage)
    log.info("a webhook was switched off", extra={"webhookId": webhook_id, "reason": reason})


PARALLEL_WRITES = 8


@job_handler(WEBHOOK_EVENTS)
def make_deliveries(job: Job) -> None:
    """Make the deliveries of the events in a job, and wake their webhooks.

    It may run more than once: an event has the same id each time, and a delivery is made once.

    Raises:
        UnavailableError: the database is unavailable.
    """
    occurred_at = datetime.fromisoformat(job.payload["at"])
    receivers = webhooks.read_all(job.workspace_id)
    delivery_rows: list[DeliveryRow] = []
    woken: dict[str, None] = {}
    for number, values in enumerate(job.payload["events"]):
        event = Event(*values)
        for webhook in receivers:
            if webhook.receives(event.type, occurred_at):
                woken[webhook.id] = None
                place = (job.workspace_id, webhook.id, f"evt_{job.job_id}_{number}")
                delivery_rows.append(
                    new_delivery(*place, event, actor=job.payload["actor"], at=occurred_at)
                )
    # A delivery that exists is not written again, so a repeated job makes none twice.
    deadline.map_in_threads(deliveries.add, delivery_rows, PARALLEL_WRITES)
    for webhook_id in woken:
        schedule_turn(job.workspace_id, webhook_id, clock.now())


def new_delivery(  # noqa: PLR0913  the parts of a delivery
    workspace_id: str,
    webhook_id: str,
    event_id: str,
    event: Event,
    *,
    actor: str,
    at: datetime,
) -> DeliveryRow:
    """Return the delivery of an event to a webhook."""
    return deliveries.row(
        workspace_id,
        webhook_id,
        event_id,
        type=event.type,
        record_id=event.id,
        record_revision=event.revision,
        previous_status=event.previous_status,
        actor=actor or None,
        occurred_at=at,
    )


def schedule_turn(workspace_id: str, webhook_id: str, due_at: datetime) -> None:
    """Schedule a turn of a webhook. Turns at the same time are one.

    Raises:
        UnavailableError: the database is unavailable.
    """
    jobs.schedule(turn(workspace_id, webhook_id, due_at))


def send_soon(unit: UnitOfWork, webhook_id: str, *, forget_failures: bool = False) -> None:
    """Stage a turn of a webhook that is due now, even if the webhook rests after a failure."""
    state = turns.end_rest(unit.workspace_id, webhook_id, forget_failures=forget_failures)
    unit.update(*state)
    unit.save(turn(unit.workspace_id, webhook_id, clock.now()))
    unit.after_commit(wake.wake)


def turn(workspace_id: str, webhook_id: str, due_at: datetime) -> JobRow:
    """Return the job for a turn of a webhook.

    Turns that are due by now are one for each second, so that many events make few turns.
    """
    payload = {"webhookId": webhook_id}
    if due_at <= clock.now():
        # Turns of the same second have the same key, so that many events make one job.
        due_at = due_at.replace(microsecond=0)
    return jobs.row(DELIVER_WEBHOOK, workspace_id, payload, due_at, job_id=webhook_id)


MAX_BODY_BYTES = 20_000
"""Maximum size, in bytes, of an event with its record.

A larger event has only the ids of its record, and the URL to read it.
"""


def send_delivery(
    workspace_id: str, webhook: WebhookRow, delivery: DeliveryRow, record: dict[str, Any] | None
) -> Attempt:
    """Send an event with its record as it is now.

    ``record`` is None if it is deleted or erased.
    """
    body = body_of(delivery, record)
    # The time is signed, so it must be the time of this attempt (Standard Webhooks).
    now, key = clock.now(), master_key()
    versions = webhook.valid_versions
    secrets = [webhook_secret(key, workspace_id, webhook.id, version) for version in versions]
    headers = rules.signed_headers(secrets, delivery.event_id, now, body)
    try:
        reply = post.post(webhook.url, body, {"Content-Type": "application/json", **headers})
    except FetchError as error:
        elapsed = round((clock.now() - now).total_seconds() * 1000)
        return Attempt(None, elapsed, error=error.reason)
    return Attempt(
        reply.status,
        reply.milliseconds,
        reply.body.decode(errors="replace"),
        retry_after=timedelta(seconds=reply.retry_after) if reply.retry_after else None,
    )


def body_of(delivery: DeliveryRow, record: dict[str, Any] | None) -> bytes:
    """Return the body of an event.

    If it would be too large, it has ids and a URL instead.
    """
    optional = {
        "revision": delivery.record_revision,
        "actor": delivery.actor,
        "previousStatus": delivery.previous_status,
    }
    known_values = {name: value for name, value in optional.items() if value is not None}
    data: dict[str, Any] = {"id": delivery.record_id, **known_values}
    event = {"type": delivery.type, "timestamp": iso(delivery.occurred_at)}
    body = to_json({**event, "data": {**data, "object": record}})
    if len(body) <= MAX_BODY_BYTES:
        return body
    return to_json({**event, "data": {**data, "url": _url(delivery)}})


def _url(delivery: DeliveryRow) -> str:
    """Return the URL of the API to read the record of an event."""
    path = REGISTRY[EVENT_TYPES[delivery.type].read_by].path
    if "{id}" not in path:
        path += "?id={id}"
    return settings().public_url + path.replace("{id}", delivery.record_id)
