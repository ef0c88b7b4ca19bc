"""Wakes the runner of event jobs, so that events do not wait for its run each minute (ADR 60)."""

import logging
from datetime import datetime, timedelta
from functools import cache
from threading import Event, Lock
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core import clock
from chalicelib.core.settings import settings
from chalicelib.engine.connection import connection

# The queue delivers a message with a delay of one second. It therefore also wakes the runner for
# the jobs that this process writes within that second.
SHARED = timedelta(milliseconds=500)
# The response to the caller waits for the message. If the queue is slow, the schedule is enough.
_CONFIG = Config(connect_timeout=1, read_timeout=1, retries={"total_max_attempts": 1})

log = logging.getLogger(__name__)
_awake = Event()


def wake() -> None:
    """Wake the runner. A failure is only logged, because the runner also runs on schedule."""
    # In the local stack, the runner waits in this process.
    _awake.set()
    if url := settings().events_queue_url:
        _queue(url).send()


def wait(seconds: float) -> None:
    """Wait until the runner is woken in this process, at most for some seconds."""
    _awake.wait(seconds)
    _awake.clear()


class WakeQueue:
    def __init__(self, url: str) -> None:
        self._url = url
        self._client: Any = None
        self._sent_at: datetime | None = None
        self._lock = Lock()

    def send(self) -> None:
        """Send a message, unless this process has sent one within ``SHARED``."""
        with self._lock:
            # Lambda stops a process between requests, and its monotonic clock may stop as well.
            now = clock.now()
            if self._sent_at and timedelta(0) <= now - self._sent_at < SHARED:
                return
            self._sent_at = now
        try:
            self.send_message()
        except (BotoCoreError, ClientError) as error:
            log.warning("the runner of events was not woken", extra={"cause": str(error)})

    def send_message(self) -> None:
        with self._lock:
            if self._client is None:
                # A session of its own would take a tenth of a second.
                self._client = connection().session.create_client("sqs", config=_CONFIG)
        # Messages have no content: the jobs are rows. A lost message only delays them.
        self._client.send_message(QueueUrl=self._url, MessageBody="wake")


@cache
def _queue(url: str) -> WakeQueue:
    return WakeQueue(url)
