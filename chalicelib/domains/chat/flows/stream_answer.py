"""Stream the answer to a message as events.

Two threads assist the thread that sends events:

- The reader (``chat-model``) reads the model's output into a bounded queue. So the sending thread
  can send pings while no output arrives, and can cancel the model at any time.
- The keeper (``chat-keeper``) writes checkpoints and renews the session's lock. A slow visitor does
  not delay checkpoints, and a slow checkpoint does not delay the visitor.

Output tokens are counted as they arrive, including reasoning. The provider's usage arrives last and
replaces the count, so the reader continues for some seconds after the visitor has disconnected.
"""

import logging
import queue
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from threading import Event, Lock, Thread
from time import monotonic, perf_counter
from typing import NamedTuple

from chalicelib.core.errors import UnavailableError
from chalicelib.core.text import is_visible
from chalicelib.domains.billing.rules.pricing import TokenUsage
from chalicelib.domains.chat.flows.exchange import Ending, Exchange
from chalicelib.domains.chat.flows.model_calls import MODEL_SECONDS, ModelCalls, Proposed
from chalicelib.domains.chat.rules.endings import EndReason, ErrorCode
from chalicelib.domains.chat.store.messages import MAX_ANSWER_BYTES, MessageStatus
from chalicelib.domains.chat.store.proposals import ProposalRow
from chalicelib.gateways.llm import ModelError, Reasoning
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.messages import TokenCounter, count_tokens

log = logging.getLogger(__name__)
GRACE_SECONDS = 5.0  # for a model whose adapter did not enforce its timeout
PING_SECONDS = 15.0
USAGE_SECONDS = 10.0  # to read the model's usage after the visitor has disconnected
CHECKPOINT_SECONDS = 2.0  # the longest time between two checkpoints
# Output tokens between two checkpoints. A crash loses at most this much output.
CHECKPOINT_TOKENS = 200
# Seconds after the first checkpoint. Each later pause is twice the previous one, up to
# ``CHECKPOINT_SECONDS``.
FIRST_PAUSE = 0.25
RENEWAL_SECONDS = 5.0  # between renewals of the session's lock, which expires after 20
QUEUED_PIECES = 64
JOIN_SECONDS = 10.0  # The reader ends soon, because cancelling the model closes its socket.


class Start(NamedTuple):
    """First event, with the session id, and the id of a member's latest reply."""

    session_id: str
    last_reply: str | None = None


class Chunk(NamedTuple):
    content: str


class Shown(NamedTuple):
    """A proposal, for the visitor to confirm."""

    proposal: ProposalRow


class Ping(NamedTuple):
    """A keep-alive event, sent while no output arrives."""


class Done(NamedTuple):
    """End of an answer, with its usage and sources."""

    usage: TokenUsage
    sources: Sequence[Mapping[str, str]] = ()
    is_truncated: bool = False  # The answer reached its maximum length.


class Failed(NamedTuple):
    """End of a failed answer. ``usage`` is the usage of an empty answer that was charged."""

    code: ErrorCode
    usage: TokenUsage | None = None


ChatEvent = Start | Chunk | Shown | Ping | Done | Failed


class Answer:
    """The events of an answer.

    The caller must always close it, even if no event was read. Closing settles or releases the
    hold.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._events = self._run()
        self._begun = False

    def __iter__(self) -> Iterator[ChatEvent]:
        return self

    def __next__(self) -> ChatEvent:
        self._begun = True
        return next(self._events)

    def close(self) -> None:
        """End the answer, as if the visitor had disconnected."""
        if not self._begun:
            self._begun = True
            _close(self._exchange, Ending("", "partial", None))
        self._events.close()

    def _run(self) -> Generator[ChatEvent, None, None]:
        exchange = self._exchange
        stream = _ModelStream(exchange)
        try:
            yield Start(exchange.session_token, exchange.last_reply)
            stream.begin()
            yield from stream.events()
        except BaseException as problem:
            if isinstance(problem, GeneratorExit):
                stream.read_usage()
            else:
                log.exception(
                    "an answer was aborted", extra={"requestId": exchange.hold.request_id}
                )
            _close(exchange, stream.end())
            raise
        ending = stream.end()
        _close(exchange, ending)
        if ending.error is not None or ending.usage is None:
            yield failed(ending.error or "provider_failed", ending.usage)
        else:
            yield Done(ending.usage, exchange.sources, ending.reason == "truncated")


def failed(code: ErrorCode, usage: TokenUsage | None) -> Failed:
    """Return the end of a failed answer. Only an empty answer shows its usage."""
    return Failed(code, usage if code == "empty_answer" else None)


def _close(exchange: Exchange, ending: Ending) -> None:
    about = {"requestId": exchange.hold.request_id, "agentId": exchange.hold.agent_id}
    try:
        settled = exchange.close(ending)
    except Exception:
        log.exception("an answer was not settled; its job will settle it", extra=about)
        return
    tokens = ending.usage._asdict() if ending.usage else {}
    log.info(
        "answered",
        extra={
            **about,
            "status": ending.status,
            "reason": ending.reason,
            "cost": settled.cost,
            **tokens,
        },
    )


class _ModelStream:
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._cancellation = Cancellation()
        self._calls = ModelCalls(
            exchange,
            self._cancellation,
            acknowledge=self._checkpoint,
            is_wanted=self._is_wanted,
        )
        self._checkpointing = Lock()
        self._pieces: list[str] = []
        self._size = 0
        self._text_counter, self._reasoning_counter = TokenCounter(), TokenCounter()
        self._sent_pieces = 0
        self._sent_counter = TokenCounter()  # Tokens of the sent pieces.
        self._checkpointed = 0  # Tokens at the last checkpoint.
        self._checkpoint_due = Event()
        self._queue: queue.Queue[str | Shown | None] = queue.Queue(QUEUED_PIECES)
        self._problem: BaseException | None = None
        self._timed_out = False
        self._is_too_large = False
        self._first_token_ms: int | None = None
        self._visitor_left = Event()
        self._stopped = Event()
        self._deadline = 0.0
        self._threads: list[Thread] = []

    def begin(self) -> None:
        self._deadline = monotonic() + MODEL_SECONDS + GRACE_SECONDS
        self._threads = [
            _thread("chat-model", self._read_model),
            _thread("chat-keeper", self._write_checkpoints),
        ]

    def events(self) -> Iterator[ChatEvent]:
        while True:
            try:
                piece = self._queue.get(timeout=PING_SECONDS)
            except queue.Empty:
                self._timed_out = monotonic() > self._deadline
                if self._timed_out:
                    return
                yield Ping()
                continue
            if piece is None:
                return
            if isinstance(piece, Shown):
                yield piece
                continue
            try:
                yield Chunk(piece)
            finally:
                self._sent_pieces += 1
                self._sent_counter.add(piece)
                self._request_checkpoint()

    def read_usage(self) -> None:
        self._visitor_left.set()
        for reader in self._threads[:1]:
            reader.join(max(0.0, min(USAGE_SECONDS, self._deadline - monotonic())))

    def end(self) -> Ending:
        was_requested = bool(self._threads)
        self._stopped.set()
        self._checkpoint_due.set()
        if not self._calls.is_complete:
            # Shutting the socket wakes the reader, which may wait for the provider for minutes.
            self._cancellation.cancel()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
            if thread.is_alive():
                log.error("a thread of an answer does not end", extra={"who": thread.name})
        text, problem = "".join(self._pieces), self._problem
        output_tokens = self._text_counter.tokens + self._reasoning_counter.tokens
        if not was_requested:
            return Ending("", "partial", None)
        if self._timed_out:
            problem = ModelError("timeout", "The model did not end in time.")
        elif isinstance(problem, ModelError) and problem.kind == "cancelled":
            problem = None
        calls, is_whole = self._calls, self._calls.is_complete and problem is None
        reason = _failure(problem, text) if problem else self._end_reason(text)
        usage: TokenUsage | None = calls.usage(output_tokens)
        status: MessageStatus = "ok" if is_whole and reason is None else "partial"
        if reason and not (is_visible(text) or calls.has_acted):
            status = "error"
            if not calls.has_ended_one:
                usage = calls.provider_usage
        return Ending(text, status, usage, reason, self._first_token_ms, calls.tool_calls)

    def _end_reason(self, text: str) -> EndReason | None:
        if self._is_too_large:
            return "truncated"
        if not self._calls.is_complete:  # The visitor has left.
            return None
        if not (is_visible(text) or self._calls.has_acted):
            return "empty_answer"
        match self._calls.stop_reason:
            case "length":
                return "truncated"
            case "filtered":
                return "filtered"
            case _:
                return None

    def _read_model(self) -> None:
        try:
            for event in self._calls.events():
                if isinstance(event, Reasoning):
                    self._reasoning_counter.add(event.text)
                    self._request_checkpoint()
                elif isinstance(event, Proposed):
                    self._put(Shown(event.proposal))
                elif not self._add(event.text):
                    break
        except BaseException as problem:
            self._problem = problem
            if not isinstance(problem, ModelError):
                log.exception("a model's adapter raised an unexpected error")
            elif problem.kind != "cancelled":
                log.warning("a model failed", extra={"kind": problem.kind, "why": problem.reason})
        finally:
            self._put(None)

    def _add(self, piece: str) -> bool:
        room = MAX_ANSWER_BYTES - self._size
        size = len(piece.encode())
        if self._first_token_ms is None:
            self._first_token_ms = round((perf_counter() - self._exchange.began) * 1000)
        if size > room:
            self._is_too_large = True
            return False
        self._size += size
        self._pieces.append(piece)
        self._text_counter.add(piece)
        return self._put(piece)

    def _put(self, piece: str | Shown | None) -> bool:
        while not self._stopped.is_set():
            if self._visitor_left.is_set():
                return True
            try:
                self._queue.put(piece, timeout=0.5)
            except queue.Full:
                continue
            return True
        return False

    def _request_checkpoint(self) -> None:
        new = self._sent_counter.tokens + self._reasoning_counter.tokens - self._checkpointed
        if new >= (CHECKPOINT_TOKENS if self._checkpointed else 1):
            self._checkpoint_due.set()

    def _write_checkpoints(self) -> None:
        stored_progress, pause, renewed = (0, 0), CHECKPOINT_SECONDS, perf_counter()
        while True:
            self._checkpoint_due.wait(pause)
            self._checkpoint_due.clear()
            if self._stopped.is_set():
                return
            try:
                progress = self._sent_pieces, self._reasoning_counter.tokens
                if progress != stored_progress:
                    pause = (
                        min(2 * pause, CHECKPOINT_SECONDS) if any(stored_progress) else FIRST_PAUSE
                    )
                    self._checkpoint()
                    stored_progress = progress
                if perf_counter() - renewed >= RENEWAL_SECONDS:
                    self._exchange.renew_session_lock()
                    renewed = perf_counter()
            except UnavailableError:
                log.warning("a checkpoint was not written", exc_info=True)
            except Exception:
                log.exception("a checkpoint failed")

    def _is_wanted(self) -> bool:
        return not (self._stopped.is_set() or self._visitor_left.is_set())

    def _checkpoint(self) -> None:
        with self._checkpointing:
            # The sent text and the usage never decrease.
            text = "".join(self._pieces[: self._sent_pieces])
            output_tokens = count_tokens(text) + self._reasoning_counter.tokens
            self._checkpointed = output_tokens
            usage, calls = self._calls.usage(output_tokens), self._calls.tool_calls
            self._exchange.checkpoint(Ending(text, "partial", usage, tool_calls=calls))


def _failure(problem: BaseException, text: str) -> ErrorCode:
    match problem:
        case ModelError(kind="filtered"):
            return "filtered"
        case _ if is_visible(text):
            return "cut_off"
        case ModelError(kind="timeout"):
            return "timed_out"
        case _:
            return "provider_failed"


def _thread(name: str, work: Callable[[], None]) -> Thread:
    # A thread starts with an empty context, and so without the deadline.
    thread = Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
