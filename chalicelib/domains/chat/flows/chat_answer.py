"""Answering a message: the events of its stream, from the first to the last.

Two threads help the one that sends. The pump reads the model into a bounded queue, so that pings go
out while it is silent, and a cancelled model ends at once. The keeper writes checkpoints and keeps
the session's lock, so that neither waits for a visitor who reads slowly, nor a visitor for them.

What a model used is counted as it comes, its reasoning too. The provider's own figures, which come
last, take the place of that: so the pump reads on for some seconds after the visitor has left.
"""

import logging
import queue
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from threading import Event, Thread
from time import monotonic, perf_counter
from typing import NamedTuple

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.billing.flows.charging import TokenUsage
from chalicelib.domains.chat.flows.chat_exchange import Ending, Exchange
from chalicelib.domains.chat.store.messages import MAX_ANSWER_BYTES, MessageStatus
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ModelError, Reasoning
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.messages import TokenCounter, count_tokens

MODEL_SECONDS = 270.0
"""The longest that a model may speak; the function has 360 (chat.md, The stream)."""
GRACE_SECONDS = 5.0
"""How much longer it is waited for a model whose adapter should have given up by itself."""
PING_SECONDS = 15.0
READ_ON_SECONDS = 10.0
"""How long the model is read for its usage after the visitor has left."""
CHECKPOINT_SECONDS = 2.0
CHECKPOINT_TOKENS = 200
"""A crash loses what came in so many seconds, or so many tokens, whichever is less."""
FIRST_PAUSE = 0.25
"""Seconds between the first checkpoint and the second; each pause is twice the one before."""
RENEWAL_SECONDS = 5.0
"""How often the session's lock is renewed, which lapses after 20."""
QUEUED_PIECES = 64
JOIN_SECONDS = 10.0
"""How long a cancelled model may take to end; its socket is shut, so it takes no time."""

FAILED = "The bot could not answer. Try again in a moment."
CUT_OFF = "The answer was cut off. Ask again for the rest."
TOO_SLOW = "The bot took too long to answer. Try again in a moment."
"""What a visitor is told; never a provider's words."""

log = logging.getLogger(__name__)


class Start(NamedTuple):
    """The answer begins: the session to continue with."""

    session_id: str


class Chunk(NamedTuple):
    """A piece of the answer."""

    content: str


class Ping(NamedTuple):
    """Nothing yet, but the connection is alive."""


class Done(NamedTuple):
    """The answer is complete: what it took."""

    usage: TokenUsage


class Failed(NamedTuple):
    """There is no answer, or no more of it: what the visitor is told."""

    error: str


ChatEvent = Start | Chunk | Ping | Done | Failed


class Answer:
    """The events of an answer.

    Whoever iterates closes it, whether it came to its end or not, and begun or not: then what was
    held is settled or released.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._events = self._run()
        self._begun = False

    def __iter__(self) -> Iterator[ChatEvent]:
        """Return the answer itself."""
        return self

    def __next__(self) -> ChatEvent:
        """Return the next event."""
        self._begun = True
        return next(self._events)

    def close(self) -> None:
        """End the answer, as a visitor who leaves does."""
        if not self._begun:
            self._begun = True
            _close(self._exchange, Ending("", "partial", None))
        self._events.close()

    def _run(self) -> Generator[ChatEvent, None, None]:
        exchange = self._exchange
        speech = _Speech(exchange)
        try:
            yield Start(exchange.session_token)
            speech.begin()
            yield from speech.events()
        except BaseException as problem:
            if isinstance(problem, GeneratorExit):
                speech.read_on()
            else:
                log.exception("an answer broke off", extra={"requestId": exchange.hold.request_id})
            _close(exchange, speech.end())
            raise
        ending = speech.end()
        _close(exchange, ending)
        if ending.error is not None or ending.usage is None:
            yield Failed(ending.error or FAILED)
        else:
            yield Done(ending.usage)


def _close(exchange: Exchange, ending: Ending) -> None:
    """Bring an exchange to its end, in time or by its job."""
    about = {"requestId": exchange.hold.request_id, "agentId": exchange.hold.agent_id}
    try:
        exchange.checkpoint(ending)
    except Exception:
        log.exception("the end of an answer was not written down", extra=about)
    try:
        settled = exchange.close(ending)
    except Exception:
        log.exception("an answer was not settled; its job will", extra=about)
        return
    tokens = ending.usage._asdict() if ending.usage else {}
    log.info(
        "answered",
        extra={**about, "status": ending.status, "cost": settled.cost, **tokens},
    )


class _Speech:
    """What a model says, read by a thread of its own."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._cancellation = Cancellation()
        self._pieces: list[str] = []
        self._size = 0
        self._said, self._reasoned = TokenCounter(), TokenCounter()
        self._sent, self._shown = 0, TokenCounter()  # pieces that went out, and their tokens
        self._checkpointed = 0  # tokens by the last checkpoint
        self._checkpoint_due = Event()
        self._queue: queue.Queue[str | None] = queue.Queue(QUEUED_PIECES)
        self._told: TokenUsage | None = None
        self._problem: BaseException | None = None
        self._complete = False
        self._too_late = False
        self._first_token_ms: int | None = None
        self._left = Event()
        self._over = Event()
        self._ends = 0.0
        self._threads: list[Thread] = []

    def begin(self) -> None:
        """Ask the model."""
        self._ends = monotonic() + MODEL_SECONDS + GRACE_SECONDS
        self._threads = [_thread("chat-model", self._pump), _thread("chat-keeper", self._keep)]

    def events(self) -> Iterator[ChatEvent]:
        """Yield the pieces as they come, and pings while none does."""
        while True:
            try:
                piece = self._queue.get(timeout=PING_SECONDS)
            except queue.Empty:
                self._too_late = monotonic() > self._ends
                if self._too_late:
                    return
                yield Ping()
                continue
            if piece is None:
                return
            try:
                yield Chunk(piece)
            finally:
                self._sent += 1
                self._shown.add(piece)
                self._note_progress()

    def read_on(self) -> None:
        """Wait for the model's usage, now that the visitor has left, but not for long."""
        self._left.set()
        for pump in self._threads[:1]:
            pump.join(max(0.0, min(READ_ON_SECONDS, self._ends - monotonic())))

    def end(self) -> Ending:
        """Stop whatever still runs; return what became of the answer."""
        was_asked = bool(self._threads)
        self._over.set()
        self._checkpoint_due.set()
        if not self._complete:
            self._cancellation.cancel()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
            if thread.is_alive():
                log.error("a thread of an answer does not end", extra={"who": thread.name})
        text, problem = "".join(self._pieces), self._problem
        counted = self._said.tokens + self._reasoned.tokens
        if not was_asked:
            return Ending("", "partial", None)
        if self._too_late:
            problem = ModelError("timeout", "The model did not end in time.")
        elif isinstance(problem, ModelError) and problem.kind == "cancelled":
            problem = None
        error = _told_of(problem, text)
        if problem is not None and not text and not counted:
            return Ending("", "error", None, error)
        usage = self._exchange.usage_of(counted, self._told)
        status: MessageStatus = "ok" if self._complete and problem is None else "partial"
        return Ending(text, status, usage, error, self._first_token_ms)

    def _pump(self) -> None:
        """Read the model; runs in a thread."""
        exchange = self._exchange
        try:
            asked = llm.chat_model_for(exchange.spec).stream(
                exchange.messages,
                model=exchange.spec.provider_id,
                max_output_tokens=exchange.hold.granted,
                seconds=MODEL_SECONDS,
                cancellation=self._cancellation,
            )
            with closing(asked) as pieces:
                for piece in pieces:
                    if isinstance(piece, Reasoning):
                        self._reasoned.add(piece.text)
                        self._note_progress()
                    elif not isinstance(piece, str):
                        self._told = TokenUsage(piece.input_tokens, piece.output_tokens)
                    elif piece and not self._take(piece):
                        break
            self._complete = self._told is not None
            if not self._complete and not self._over.is_set():
                self._problem = ModelError("garbage", "The stream ended without usage.")
        except BaseException as problem:
            self._problem = problem
            if not isinstance(problem, ModelError):
                log.exception("a model's adapter broke")
            elif problem.kind != "cancelled":
                log.warning("a model failed", extra={"kind": problem.kind, "why": problem.reason})
        finally:
            self._put(None)

    def _take(self, piece: str) -> bool:
        """Take a piece; False if no more of the answer is wanted."""
        room = MAX_ANSWER_BYTES - self._size
        size = len(piece.encode())
        if self._first_token_ms is None:
            self._first_token_ms = round((perf_counter() - self._exchange.began) * 1000)
        if size > room:
            return False
        self._size += size
        self._pieces.append(piece)
        self._said.add(piece)
        return self._put(piece)

    def _put(self, piece: str | None) -> bool:
        """Hand a piece on, or drop it once the visitor has left; False if reading is to end."""
        while not self._over.is_set():
            if self._left.is_set():
                return True
            try:
                self._queue.put(piece, timeout=0.5)
            except queue.Full:
                continue
            return True
        return False

    def _note_progress(self) -> None:
        """Have the keeper write a checkpoint at once: the first, or one after many tokens."""
        new = self._shown.tokens + self._reasoned.tokens - self._checkpointed
        if new >= (CHECKPOINT_TOKENS if self._checkpointed else 1):
            self._checkpoint_due.set()

    def _keep(self) -> None:
        """Write checkpoints while there is something new, and keep the session; in a thread."""
        written, pause, renewed = (0, 0), CHECKPOINT_SECONDS, perf_counter()
        while True:
            self._checkpoint_due.wait(pause)
            self._checkpoint_due.clear()
            if self._over.is_set():
                return
            try:
                found = self._sent, self._reasoned.tokens
                if found != written:
                    pause = min(2 * pause, CHECKPOINT_SECONDS) if any(written) else FIRST_PAUSE
                    self._checkpoint(*found)
                    written = found
                if perf_counter() - renewed >= RENEWAL_SECONDS:
                    self._exchange.keep_session()
                    renewed = perf_counter()
            except UnavailableError:
                log.warning("a checkpoint was not written", exc_info=True)
            except Exception:
                log.exception("a checkpoint broke")

    def _checkpoint(self, sent: int, reasoned: int) -> None:
        text = "".join(self._pieces[:sent])
        counted = count_tokens(text) + reasoned
        self._checkpointed = counted
        usage = self._exchange.usage_of(counted, None)
        self._exchange.checkpoint(Ending(text, "partial", usage))


def _told_of(problem: BaseException | None, text: str) -> str | None:
    """Return what the visitor is told of a failure."""
    if problem is None:
        return None
    if text:
        return CUT_OFF
    late = isinstance(problem, ModelError) and problem.kind == "timeout"
    return TOO_SLOW if late else FAILED


def _thread(name: str, work: Callable[[], None]) -> Thread:
    """Start a thread; it has no request's deadline."""
    thread = Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
