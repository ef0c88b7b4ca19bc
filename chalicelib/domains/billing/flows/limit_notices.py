"""Emit an event when a bot has reached its spending limit, once a window."""

import logging

from chalicelib.core.errors import AppError
from chalicelib.domains.billing.store.limit_notices import LimitNoticeRow
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.unit import UnitOfWork, run_unit

log = logging.getLogger(__name__)


def emit_once(workspace_id: str, agent_id: str, window: str) -> None:
    """Emit ``bot.limit_reached``, unless it was emitted for this window of the bot.

    A failure is logged. The next request that the limit refuses then emits the event.
    """

    def stage(unit: UnitOfWork) -> None:
        mark = LimitNoticeRow.new(workspace_id, agent_id, window)
        if LimitNoticeRow.find(mark.pk, mark.sk) is None:
            unit.create(mark)
            unit.outbox.emit(Event("bot.limit_reached", agent_id))

    try:
        run_unit(workspace_id, None, stage)
    except AppError:
        log.warning("an event of a reached limit was not emitted", exc_info=True)
