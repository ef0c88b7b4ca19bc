"""Format, size and time limits of fetched responses, against a fake internet."""

import gzip
import http.client
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import deadline
from chalicelib.gateways import dns, fetch, public_http
from chalicelib.gateways.fetch import Validators
from chalicelib.gateways.public_http import FetchError, TooLargeError, UpstreamError
from tests.factories.urls import HTTP, HTTPS, MB
from tests.fakes.internet import (
    PUBLIC,
    Answer,
    Internet,
    drip,
    flood,
    http_response,
    raw,
    reset,
    silence,
    to,
)
from tests.support.effort import examples, slow_but_for
from tests.support.keyed import failed
from tests.support.patience import FOR_EVER, PATIENCE


class TestAnswer:
    @pytest.mark.parametrize("declared", ["image/png", "text/html; charset=windows-1251", ""])
    def test_response_has_the_final_url_type_and_body(self, declared: str, net: Internet) -> None:
        net.serve(HTTP, to("/b?c"), http_response(b"\x89PNG", content_type=declared))
        fetched = fetch.fetch(HTTP, allow_http=True)
        assert fetched == fetch.Fetched(
            HTTP + "/b?c", declared, b"\x89PNG", Validators(HTTP + "/b?c")
        )

    def test_response_without_a_type_has_none(self, net: Internet) -> None:
        net.serve(HTTP, raw(b"HTTP/1.0 200 OK\n\nold"))
        assert fetch.fetch(HTTP, allow_http=True) == fetch.Fetched(
            HTTP + "/", "", b"old", Validators(HTTP + "/")
        )

    def test_response_may_be_chunked(self, net: Internet) -> None:
        chunks = b"5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: x\r\n\r\n"
        net.serve(HTTP, raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks))
        assert fetch.fetch(HTTP, allow_http=True).body == b"hello!"

    @pytest.mark.parametrize(
        "packed",
        [
            gzip.compress(b"hello " * 50_000),
            gzip.compress(b"hello " * 20_000) + gzip.compress(b"hello " * 30_000),
            gzip.compress(b"hello " * 50_000) + bytes(100),
        ],
    )
    def test_compressed_response_is_unpacked(self, packed: bytes, net: Internet) -> None:
        net.serve(HTTP, http_response(packed, content_encoding="GZIP"))
        assert fetch.fetch(HTTP, allow_http=True).body == b"hello " * 50_000

    @pytest.mark.parametrize("status", ["204 No Content", "200 OK"])
    def test_response_may_be_empty(self, status: str, net: Internet) -> None:
        net.serve(HTTP, http_response(b"", status, content_encoding="gzip"))
        assert fetch.fetch(HTTP, allow_http=True).body == b""

    @pytest.mark.parametrize(
        "status", ["404 Not Found", "403 No", "500 Oops", "304 Not Modified", "300 Choose", "999 ?"]
    )
    def test_an_error_status_is_a_failure_that_names_it(self, status: str, net: Internet) -> None:
        net.serve(HTTP, http_response(b"<html>", status))
        with pytest.raises(UpstreamError, check=failed("status", status[:3])):
            fetch.fetch(HTTP, allow_http=True)

    @pytest.mark.parametrize(
        "answer",
        [
            raw(b""),
            raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
            raw(b"\xff\x00" * 500),
            raw(b"HTTP/1.1 abc\r\n\r\n"),
            raw(b"HTTP/9.9 200 OK\r\n\r\n"),
            raw(b"HTTP/1.1 200 " + b"x" * 70_000),
            raw(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 70_000),
            raw(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n"),
            http_response(b"short", content_length="500"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n"),
            http_response(b"not gzip", content_encoding="gzip"),
            http_response(gzip.compress(b"hello" * 99)[:-9], content_encoding="gzip"),
            http_response(gzip.compress(b"hello")[:-8] + bytes(8), content_encoding="gzip"),
            http_response(gzip.compress(b"hello")[:10] + b"\xff" * 9, content_encoding="gzip"),
        ],
    )
    def test_malformed_response_is_a_failure_without_a_librarys_message(
        self, answer: Answer, net: Internet
    ) -> None:
        net.serve(HTTP, answer)
        with pytest.raises(UpstreamError, check=failed("malformed_response")) as failure:
            fetch.fetch(HTTP, allow_http=True)
        assert failure.value.reason.startswith("files.example.com sent ")

    @pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "identity, gzip"])
    def test_an_unrequested_encoding_is_a_failure(self, encoding: str, net: Internet) -> None:
        net.serve(HTTP, http_response(zlib.compress(bytes(1000)), content_encoding=encoding))
        with pytest.raises(UpstreamError, check=failed("compression")):
            fetch.fetch(HTTP, allow_http=True)

    @pytest.mark.parametrize(
        "answer",
        [
            http_response(),
            http_response(gzip.compress(b"hello"), content_encoding="gzip"),
            to("/again"),
            http_response(b"", "404 Not Found"),
            http_response(bytes(2 * MB)),
            http_response(bytes(2 * MB), content_length="0x"),
            http_response(b"", content_length="5"),
            raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
            raw(b"SSH-2.0-x\r\n"),
            reset,
        ],
    )
    def test_a_response_is_always_closed_without_the_garbage_collector(
        self, answer: Answer, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = []

        class Kept(http.client.HTTPResponse):
            def begin(self) -> None:
                answers.append(self)
                super().begin()

        monkeypatch.setattr(http.client, "HTTPResponse", Kept)
        net.serve(HTTP, answer)
        with suppress(FetchError):
            fetch.fetch(HTTP, allow_http=True, max_bytes=MB)
        assert answers
        assert all(answer.closed for answer in answers)

    def test_truncated_response_is_a_failure(self, net: Internet) -> None:
        net.serve(HTTP, reset)
        with pytest.raises(UpstreamError, check=failed("connection_closed")):
            fetch.fetch(HTTP, allow_http=True)

    @given(
        st.one_of(
            st.binary(max_size=500),
            st.builds(
                lambda lines, body: b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", body]),
                st.lists(
                    st.one_of(
                        st.binary(max_size=50),
                        st.sampled_from(
                            [
                                b"Transfer-Encoding: chunked",
                                b"Content-Encoding: gzip",
                                b"Content-Length: 9",
                                b"Content-Length: -9",
                                b"Content-Length: " + b"9" * 5000,
                                b"HTTP/1.1 100 Continue",
                                b" folded: \xe9\x00",
                            ]
                        ),
                    ),
                    max_size=4,
                ),
                st.one_of(
                    st.binary(max_size=200),
                    st.binary(max_size=200).map(gzip.compress),
                    st.text("0123456789abcdef-_+x;\r\n ", max_size=60).map(str.encode),
                ),
            ),
        )
    )
    @examples(300)
    def test_any_bytes_give_a_body_or_a_failure(self, data: bytes) -> None:
        def connect(_place: tuple[str, int], _timeout: float) -> socket.socket:
            ours, theirs = socket.socketpair()
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            peers.append(theirs)
            return ours

        peers: list[socket.socket] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(public_http, "connect", connect)
            try:
                fetch.fetch(f"http://{PUBLIC}/", allow_http=True, timeout_seconds=FOR_EVER)
            except FetchError as failure:
                assert failure.reason.startswith(PUBLIC)  # noqa: PT017  success is as good
        for peer in peers:
            peer.close()


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = OK + b"Content-Encoding: gzip\r\n\r\n"


def bomb(megabytes: int) -> bytes:
    """Return zeros compressed with gzip to a thousandth of their size."""
    pack = zlib.compressobj(9, wbits=31)
    return b"".join([*(pack.compress(bytes(MB)) for _ in range(megabytes)), pack.flush()])


ENDLESS: dict[str, Callable[[], Answer]] = {
    "bomb": lambda: http_response(bomb(300), content_encoding="gzip"),
    "endless body": lambda: flood(OK + b"\r\n", bytes(MB)),
    "endless chunks": lambda: flood(CHUNKED, b"100000\r\n" + bytes(MB) + b"\r\n"),
    "tiny chunks": lambda: flood(CHUNKED, b"1\r\n.\r\n" * 10_000),
    "negative chunk": lambda: flood(CHUNKED + b"-1\r\n", bytes(MB)),
    "endless trailers": lambda: flood(CHUNKED + b"0\r\n", b"Trailer: x\r\n" * 10_000),
    "endless empty members": lambda: flood(GZIP, gzip.compress(b"") * 10_000),
    "endless padding": lambda: flood(GZIP + gzip.compress(b""), bytes(MB)),
    "endless file name": lambda: flood(GZIP + b"\x1f\x8b\x08\x08" + bytes(6), b"x" * MB),
    "endless interim answers": lambda: flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000),
}


def peak_of(work: Callable[[], object]) -> int:
    """Return the peak memory in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class TestSize:
    def test_response_of_exactly_the_limit_is_buffered_once(self, net: Internet) -> None:
        body = bytes(10 * MB)
        net.serve(HTTP, http_response(body))
        bodies: list[bytes] = []
        peak = peak_of(lambda: bodies.append(fetch.fetch(HTTP, allow_http=True).body))
        assert bodies == [body]
        assert peak < 14 * MB

    @pytest.mark.parametrize("packed", [False, True])
    def test_the_limit_is_exact_to_the_byte(self, packed: bool, net: Internet) -> None:
        def serve(body: bytes) -> Answer:
            if packed:
                return http_response(gzip.compress(body), content_encoding="gzip")
            return raw(OK + b"\r\n" + body)

        net.serve(HTTP, serve(b"x" * 1000), serve(b"x" * 1001))
        assert len(fetch.fetch(HTTP, allow_http=True, max_bytes=1000).body) == 1000
        with pytest.raises(TooLargeError):
            fetch.fetch(HTTP, allow_http=True, max_bytes=1000)

    def test_a_declared_size_over_the_limit_is_refused_before_reading(self, net: Internet) -> None:
        net.serve(HTTP, http_response(b"", content_length=str(10 * MB + 1)))
        with pytest.raises(TooLargeError, check=failed("too_large", "10 MB")):
            fetch.fetch(HTTP, allow_http=True)

    @pytest.mark.parametrize(
        "name", slow_but_for(["bomb", "endless body", "tiny chunks", "endless padding"], ENDLESS)
    )
    def test_endless_response_is_refused_in_bounded_memory_and_time(
        self, name: str, net: Internet
    ) -> None:
        net.serve(HTTP, ENDLESS[name]())

        def expect_refusal() -> None:
            with pytest.raises(FetchError) as refusal:
                fetch.fetch(HTTP, allow_http=True, max_bytes=MB, timeout_seconds=1.5)
            assert isinstance(refusal.value, TooLargeError) or failed("too_slow")(refusal.value)

        assert peak_of(expect_refusal) < 8 * MB


class TestTime:
    @pytest.mark.parametrize(
        ("url", "answer"),
        [
            (HTTP, drip(b"", b"HTTP/1.1 200 OK" + b" " * 60_000)),
            pytest.param(HTTP, drip(OK, b"A: b\r\n"), marks=pytest.mark.slow),
            (HTTP, drip(OK + b"\r\n", b".")),
            pytest.param(HTTP, drip(CHUNKED, b"1\r\n.\r\n"), marks=pytest.mark.slow),
            pytest.param(HTTP, drip(CHUNKED + b"5", b";x"), marks=pytest.mark.slow),
            pytest.param(HTTP, drip(CHUNKED + b"0\r\n", b"A: b\r\n"), marks=pytest.mark.slow),
            pytest.param(HTTP, drip(GZIP, gzip.compress(b"")), marks=pytest.mark.slow),
            pytest.param(HTTP, drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), marks=pytest.mark.slow),
            pytest.param(
                HTTPS, drip(b"", b"HTTP/1.1 200 OK" + b" " * 60_000), marks=pytest.mark.slow
            ),
            (HTTPS, drip(OK + b"\r\n", b".")),
            pytest.param(HTTP, silence, marks=pytest.mark.slow),
            (HTTPS, silence),
        ],
    )
    def test_the_time_limit_ends_a_slow_or_silent_server(
        self, url: str, answer: Answer, net: Internet
    ) -> None:
        net.serve(url, answer)
        with pytest.raises(UpstreamError, check=failed("too_slow", "0.3")):
            fetch.fetch(url, allow_http=True, timeout_seconds=0.3)

    def test_the_time_limit_ends_a_slow_handshake(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A TLS record of 16 KB that arrives byte by byte.
        ours, theirs = socket.socketpair()
        script = drip(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03", b"x")

        def serve() -> None:
            try:
                script(theirs)
            except OSError:
                theirs.close()

        dripping = threading.Thread(target=serve)
        dripping.start()
        net.names["files.example.com"] = [PUBLIC]
        monkeypatch.setattr(public_http, "connect", lambda _place, _timeout: ours)
        with pytest.raises(UpstreamError, check=failed("too_slow")):
            fetch.fetch(HTTPS, timeout_seconds=0.5)
        dripping.join(PATIENCE)
        assert not dripping.is_alive(), "the connection was left open"

    def test_the_time_limit_of_a_step_comes_before_the_total(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fetch, "STEP_SECONDS", 0.3)
        net.serve(HTTP, silence)
        with pytest.raises(UpstreamError, check=failed("too_slow", "0.3 seconds")):
            fetch.fetch(HTTP, allow_http=True, timeout_seconds=FOR_EVER)

    def test_the_total_time_includes_redirects(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [0.0]

        def slowly(sock: socket.socket) -> None:
            now[0] += 0.4 * FOR_EVER
            to("/")(sock)

        monkeypatch.setattr(deadline, "monotonic", lambda: now[0])
        server = net.serve(HTTP, slowly)
        with pytest.raises(UpstreamError, check=failed("too_slow")):
            fetch.fetch(HTTP, allow_http=True, timeout_seconds=FOR_EVER)
        assert len(server.requests) == 3

    def test_the_total_time_includes_name_lookups(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        net.serve(HTTP, http_response())
        now = [100.0]

        def slowly(host: str, seconds: float) -> list[str]:
            assert seconds == dns.TIMEOUT_SECONDS
            now[0] += 15.1
            return [PUBLIC]

        monkeypatch.setattr(deadline, "monotonic", lambda: now[0])
        monkeypatch.setattr(dns, "lookup_addresses", slowly)
        with pytest.raises(UpstreamError, check=failed("too_slow")):
            fetch.fetch(HTTP, allow_http=True)
        assert net.connections == []

    def test_the_time_limit_ends_a_connection_that_is_not_accepted(
        self, net: Internet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def never(_place: tuple[str, int], _timeout: float) -> socket.socket:
            raise TimeoutError

        net.names["files.example.com"] = [PUBLIC]
        monkeypatch.setattr(public_http, "connect", never)
        with pytest.raises(UpstreamError, check=failed("too_slow")):
            fetch.fetch(HTTPS)
