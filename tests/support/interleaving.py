"""Runs something between two requests of a call to the database, in the same order each time."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Self

import pytest

from chalicelib.core import deadline, retry
from chalicelib.engine.connection import connection

MOST_PAUSES = 10
"""Pauses between attempts after which a call counts as endless."""


class _Call(Future[Any]):
    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__()
        self._call: Callable[[], Any] | None = call

    def result(self, timeout: float | None = None) -> Any:
        self.settle()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.settle()
        return super().exception(timeout)

    def settle(self) -> None:
        call, self._call = self._call, None
        if call is None:
            return
        try:
            self.set_result(call())
        except BaseException as error:
            self.set_exception(error)


class _Pool:
    """Stands for a pool of threads, and runs its calls in the thread of the caller."""

    is_late = False
    """Whether a call runs when its result is needed, and not when it is submitted."""

    def __init__(self, *_: object) -> None:
        self._calls: list[_Call] = []

    def submit(self, call: Callable[..., Any], *args: Any) -> _Call:
        submitted = _Call(lambda: call(*args))
        self._calls.append(submitted)
        if not self.is_late:
            submitted.settle()
        return submitted

    def map(self, call: Callable[..., Any], *items: Any) -> list[Any]:
        return list(map(call, *items))

    def shutdown(self) -> None:
        for call in self._calls:
            call.settle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


@contextmanager
def before_request(
    number: int, act: Callable[[], object], *, since: Sequence[bytes], late: bool
) -> Iterator[list[str]]:
    """Run ``act`` before the request with this number. Yields the requests that were counted.

    They are counted from 1, since the first whose body has one of the texts of ``since``. Calls
    that run side by side run one after another: each as soon as it is started, or, if ``late``,
    when its result is needed. Nothing pauses between attempts.
    """
    requests: list[str] = []
    pauses: list[float] = []
    acting = False

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        assert len(pauses) < MOST_PAUSES

    def note(model: Any, params: dict[str, Any], **_: Any) -> None:
        nonlocal acting
        if acting or not (requests or any(text in params["body"] for text in since)):
            return
        requests.append(model.name)
        if len(requests) == number:
            acting = True
            act()
            acting = False

    events = connection().client.meta.events
    events.register_first("before-call.dynamodb", note)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deadline, "ThreadPoolExecutor", type("Pool", (_Pool,), {"is_late": late}))
            patch.setattr(retry, "sleep", pause)
            yield requests
    finally:
        events.unregister("before-call.dynamodb", note)
    # The service may have turned an assertion into a response.
    assert len(pauses) < MOST_PAUSES, "the call does not end"
