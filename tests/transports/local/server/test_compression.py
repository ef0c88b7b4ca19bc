"""``chalice local`` compresses responses as API Gateway does (``minimum_compression_size``)."""

import gzip

from tests.transports.conftest import LocalServer


class TestCompression:
    def test_a_large_answer_is_compressed_for_clients_that_accept_gzip(
        self, local_server: LocalServer
    ) -> None:
        request = b"GET /api/docs/errors HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %b\r\n\r\n"
        plain = local_server.request(request % b"identity")
        for accepted in (b"gzip", b"br, gzip;q=0.5", b"deflate, gzip"):
            small = local_server.request(request % accepted)
            assert small.header("Content-Encoding") == "gzip"
            assert gzip.decompress(small.body) == plain.body
            assert len(small.body) * 2 < len(plain.body)
            assert small.header("ETag") == plain.header("ETag")
        for accepted in (b"gzip;q=0", b"gzip; q=0.0, br", b"br"):
            assert local_server.request(request % accepted).header("Content-Encoding") is None

    def test_a_small_answer_is_not_compressed(self, local_server: LocalServer) -> None:
        request = b"GET /api/health HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n"
        assert local_server.request(request).header("Content-Encoding") is None
