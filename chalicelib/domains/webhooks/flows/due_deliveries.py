"""Send the due deliveries of a webhook, by one worker at a time (Standard Webhooks)."""

import logging
from collections.abc import Sequence
from datetime import timedelta

from chalicelib.core import clock, deadline
from chalicelib.core.deadline import Deadline
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.webhooks.flows.sending import Attempt, Send
from chalicelib.domains.webhooks.flows.sending_times import schedule_turn
from chalicelib.domains.webhooks.flows.wanted_types import stage_wanted_types
from chalicelib.domains.webhooks.rules import retries
from chalicelib.domains.webhooks.store import deliveries, turns
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
from chalicelib.engine import locks
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.unit import UnitOfWork, run_unit

TURN_SECONDS = 20.0  # Others wait no longer for the worker.
# For how long a turn is taken: the last attempts of a turn may end later than it.
TURN = timedelta(seconds=TURN_SECONDS + 30)
BATCH = 20  # deliveries that are read in one request
PARALLEL_REQUESTS = 4  # to a webhook
REST_AFTER_FAILURE = timedelta(seconds=10)
# Rest of a webhook after failures: ten seconds for each in a row, up to five minutes.
LONGEST_REST = timedelta(minutes=5)
GONE_STATUS = 410
# The error of an attempt that sent no request.
UNPREPARED = "the service could not prepare the event, and will try again"
log = logging.getLogger(__name__)


def take(workspace_id: str, *, webhook_id: str, send: Send) -> None:
    """Send what is due to a webhook, for at most ``TURN_SECONDS``, and schedule the next turn."""
    webhook = WEBHOOKS.find(workspace_id, record_id=webhook_id)
    if webhook is None or webhook.status == OFF:
        return
    state = turns.take(workspace_id, webhook_id=webhook_id, length=TURN)
    if state is None:
        # The other worker may have read the deliveries before this event was due.
        if until := turns.find(workspace_id, webhook_id=webhook_id).until:
            schedule_turn(workspace_id, webhook_id=webhook_id, due_at=until)
        return
    if state.rest_until is not None and state.rest_until > clock.now():
        pause = state.rest_until - clock.now()
    else:
        pause = _send_due(workspace_id, webhook, state, send)
    turns.release(state, pause)
    if due := deliveries.next_due(workspace_id, webhook_id=webhook_id):
        schedule_turn(workspace_id, webhook_id=webhook_id, due_at=max(due, state.rest_until or due))


def _send_due(workspace_id: str, webhook: WebhookRow, state: TurnRow, send: Send) -> timedelta:
    # A turn tries each delivery once. What is still due, because the outcome could not be stored,
    # waits for the next turn after a rest.
    end, tried = Deadline(TURN_SECONDS), set[str]()
    while not end.passed and (
        candidates := deliveries.due(workspace_id, webhook_id=webhook.id, limit=BATCH)
    ):
        # A delivery whose outcome could not be stored is still due, and must not be sent twice.
        due = [delivery for delivery in candidates if delivery.event_id not in tried]
        if not due:
            return REST_AFTER_FAILURE
        current = WEBHOOKS.find(workspace_id, record_id=webhook.id)
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
            pause = _rest_after(workspace_id, webhook_id=webhook.id, state=state, attempts=attempts)
            if pause is not None:
                return pause
    return timedelta(0)


def _rest_after(
    workspace_id: str, *, webhook_id: str, state: TurnRow, attempts: Sequence[Attempt]
) -> timedelta | None:
    # The webhook is switched off if the receiver is gone or has failed for days.
    failed = [attempt for attempt in attempts if not attempt.is_ok]
    # The status 410 means that the receiver is gone permanently (RFC 9110, 15.5.11).
    if any(attempt.status == GONE_STATUS for attempt in failed):
        switch_off(workspace_id, webhook_id=webhook_id, reason=GONE)
        return timedelta(0)
    if len(failed) < len(attempts):
        if failed or state.failures:
            turns.note_success(state)
        return None
    if not failed:
        return None
    turns.note_failures(state, len(failed))
    failures, since = int(state.failures), state.failing_since
    if retries.is_to_be_switched_off(failures, since, clock.now()):
        switch_off(workspace_id, webhook_id=webhook_id, reason=FAILING)
        return timedelta(0)
    wished = [attempt.retry_after for attempt in failed if attempt.retry_after]
    # The receiver's own wait applies, even if it is longer than the rest.
    return max(min(REST_AFTER_FAILURE * failures, LONGEST_REST), *wished, timedelta(0))


def _drop_unwanted(webhook: WebhookRow, group: Sequence[DeliveryRow]) -> list[DeliveryRow]:
    sendable: list[DeliveryRow] = []
    for delivery in group:
        # The types may have changed since. A member may have asked for an event of another type.
        is_wanted = delivery.asked_at is not None or webhook.wants(delivery.type)
        if webhook.skips(delivery.wanted_since) or not is_wanted:
            deliveries.stop(delivery)
        else:
            sendable.append(delivery)
    return sendable


def _send_group(webhook: WebhookRow, group: Sequence[DeliveryRow], send: Send) -> list[Attempt]:
    # A delivery that this service cannot prepare is tried again later, so that it does not hold
    # back the others. It is not a failure of the receiver.
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
    number, now = int(delivery.attempts) + 1, clock.now()
    next_attempt_at = (
        None if attempt.is_ok else retries.next_attempt(number, now, attempt.retry_after)
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


def switch_off(workspace_id: str, *, webhook_id: str, reason: str) -> None:
    """Switch a webhook off, for one of the reasons of ``store.webhooks``."""

    def stage(unit: UnitOfWork) -> None:
        lock = locks.lock_row(workspace_id, what=LOCK)
        # A member may have switched it off, or changed it, during the turn.
        webhook = WEBHOOKS.find(workspace_id, record_id=webhook_id)
        if webhook is None or webhook.status == OFF:
            return
        webhook.switch_off(reason)
        unit.save(lock)
        unit.save(webhook)
        stage_wanted_types(unit, changed_webhook=webhook)
        unit.outbox.emit(Event("webhook.switched_off", webhook.id))

    run_unit(workspace_id, AuditEvent.by_job("switch_off_webhook"), stage)
    log.info("a webhook was switched off", extra={"webhookId": webhook_id, "reason": reason})
