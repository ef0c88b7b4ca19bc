"""The places of the service that call the database and the gateways, and faults injected there."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import Any

import chalicelib
from chalicelib.engine.connection import connection
from tests.proof.faults import Fault, Proceed, store_faults
from tests.proof.gateway_faults import GATEWAYS, Gateway
from tests.proof.simulated_time import SimulatedTime
from tests.proof.stored_state import StoredState

_PACKAGE = str(Path(chalicelib.__file__).parent)
_SHARED = ("engine/", "core/", "lib/", "application/")
"""Folders whose functions call for others. A call site includes the function that called them."""
_TRANSACTION = "TransactWriteItems"
_VARIANT = re.compile(" (?:after|with|in) ")
"""Separator of a request's name and its variant. All variants commit in the same way."""
ANSWER_SECONDS = 0.01
"""Simulated duration of a call that succeeds."""


@dataclass(frozen=True)
class CallSite:
    """A call site: the called function, and the lines of its callers.

    The last line is the first one outside shared code. Every operation commits by the same lines,
    so ``request`` names the request of a transaction.
    """

    callee: str
    lines: tuple[str, ...]
    request: str = ""

    def __str__(self) -> str:
        where = " < ".join(self.lines) or "a thread"
        return f"{self.callee} at {where}{' of ' + self.request if self.request else ''}"


@dataclass
class Injection:
    """A fault at a call site: once, or at each call there."""

    site: CallSite
    fault: Fault
    always: bool
    hits: int = 0

    def __str__(self) -> str:
        return f"{self.fault.name}, {'always' if self.always else 'once'}, {self.site}"


@dataclass
class Seams:
    """The calls that leave the process.

    ``seen`` has the faults of the call sites of a request, and ``calls`` how often it calls.
    """

    time: SimulatedTime
    state: StoredState
    request: str = ""
    injection: Injection | None = None
    seen: dict[CallSite, list[Fault]] = field(default_factory=dict)
    calls: int = 0
    _lock: Lock = field(default_factory=Lock)

    def begin(self, request: str, injection: Injection | None = None) -> None:
        """Begin a request, with a fault or without."""
        self.request = _VARIANT.split(request)[0]
        self.injection, self.seen = injection, {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Intercept all calls to the database and to the gateways."""
        client: Any = connection().client
        call = client._make_api_call

        def call_store(operation: str, request: dict[str, Any]) -> Any:
            def proceed() -> Any:
                self.state.note(operation, request)
                return call(operation, request)

            site = self._site(operation, by_request=operation == _TRANSACTION)
            return self._pass(site, lambda: store_faults(operation, request), proceed)

        client._make_api_call = call_store
        undo = [self._intercept(gateway) for gateway in GATEWAYS]
        try:
            yield
        finally:
            client._make_api_call = call
            for restore in undo:
                restore()

    def _intercept(self, gateway: Gateway) -> Callable[[], None]:
        """Put a wrapper in the place of a gateway's function, in all modules that import it."""
        function = getattr(gateway.owner, gateway.name)
        real = gateway.stub or function

        @wraps(function)
        def call_gateway(*args: Any, **options: Any) -> Any:
            # Also of a gateway's call of a gateway, or the object stays away for later requests.
            self.state.objects_written |= gateway.writes_objects
            site = self._site(str(gateway))
            if site is None:
                return function(*args, **options)
            faults = lambda: gateway.faults(args, options)  # noqa: E731
            return self._pass(site, faults, lambda: real(*args, **options))

        places = [gateway.owner, *_modules_with(function, gateway.name)]
        for place in places:
            setattr(place, gateway.name, call_gateway)
        return lambda: [setattr(place, gateway.name, function) for place in places] and None

    def _site(self, callee: str, *, by_request: bool = False) -> CallSite | None:
        """Return the call site of the running call, or None for a gateway's call of a gateway."""
        lines: list[str] = []
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith(_PACKAGE):
                path = name[len(_PACKAGE) + 1 :]
                if path.startswith("gateways/"):
                    return None
                lines.append(f"{path}:{frame.f_lineno} {frame.f_code.co_name}")
                if not path.startswith(_SHARED) and "/store" not in path:
                    break
            frame = frame.f_back
        return CallSite(callee, tuple(lines), self.request if by_request else "")

    def _pass(
        self, site: CallSite | None, faults: Callable[[], Iterator[Fault]], proceed: Proceed
    ) -> Any:
        """Let a call through, or let it fail."""
        if site is None:
            return proceed()
        with self._lock:
            self.calls += 1
            injection = self.injection
            if injection is None:
                if site not in self.seen:
                    self.seen[site] = list(faults())
            elif injection.site == site and (injection.always or not injection.hits):
                injection.hits += 1
            else:
                injection = None
        if injection is None:
            self.time.pass_by(ANSWER_SECONDS)
            return proceed()
        self.time.pass_by(injection.fault.seconds)
        return injection.fault.act(proceed)


def _modules_with(function: Callable[..., Any], name: str) -> list[Any]:
    """Return the modules of the service that have imported a function by its name."""
    return [
        module
        for path, module in list(sys.modules.items())
        if path.startswith("chalicelib.") and vars(module).get(name) is function
    ]
