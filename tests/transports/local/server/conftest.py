"""The log of the server of ``chalice local``, and a server with a short read timeout."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.support.patience import stretched
from tests.transports.conftest import LocalServer, Records, WireReply


@pytest.fixture(autouse=True)
def _quiet(log_records: Records, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Check that nothing is written outside the log, and that the log has no key."""
    yield
    assert "hush" not in "".join(log_records.lines)
    output = capfd.readouterr()
    assert output.err == ""
    assert "Traceback" not in output.out


@pytest.fixture
def send_partial_request(
    local_server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[[bytes], WireReply]:
    """Send part of a request to a server with a short read timeout, and return the response.

    The server has closed the connection after the response.
    """

    def send(request: bytes) -> WireReply:
        def attempt(seconds: float) -> WireReply | None:
            monkeypatch.setattr(local_server.server, "timeout", seconds)
            # Without a response, this thread was too slow to send the request.
            with local_server.connect() as connection, suppress(ConnectionError):
                connection.send(request)
                reply = connection.reply() if connection.stream.peek(1) else None
                assert connection.has_ended()
                return reply
            return None

        reply = stretched(attempt, 0.1, lambda reply: reply is not None)
        assert reply is not None
        return reply

    return send
