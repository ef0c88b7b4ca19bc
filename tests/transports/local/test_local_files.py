"""Stored files and signed uploads under ``chalice local``."""

import json
from collections.abc import Iterator

import pytest

from chalicelib.core.settings import settings
from chalicelib.domains.files.rules import stored_files
from chalicelib.gateways.object_store import object_store
from tests.conftest import Api, Owner, Time
from tests.factories.files import announce, key, photo, upload
from tests.transports.conftest import LocalServer, Records, WireReply


@pytest.fixture(autouse=True)
def _quiet(log_records: Records) -> Iterator[None]:
    """Check that no error is logged."""
    yield
    assert log_records.errors == []


def send_request(
    server: LocalServer, path: str, method: str = "GET", body: bytes = b"", **headers: str
) -> WireReply:
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    return server.request(head.encode("latin-1") + body)


def refusal(reply: WireReply) -> tuple[int, str]:
    assert json.loads(reply.body)["data"]["requestId"] == reply.header("X-Request-Id")
    return reply.status, reply.data["code"]


class TestReading:
    @pytest.mark.parametrize("body", [b"plain \xd1\x91", b"<svg/>", b"<html><script>", b"\x00\xff"])
    def test_a_file_is_served_with_the_headers_of_its_type(
        self, body: bytes, local_server: LocalServer, api: Api
    ) -> None:
        file = upload(api, "a.txt", body)
        reply = send_request(local_server, f"/{key(file['url'])}")
        assert (reply.status, reply.body) == (200, body)
        for name, value in stored_files.headers(file["mimeType"]).items():
            assert reply.header(name) == value

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1251", "utf-16"])
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("Прайс.CSV", "text/csv"),
            ("a.json", "application/json"),
            ("a.md", "text/markdown"),
            ("a.txt", "text/plain"),
            ("a.js", "text/plain"),
        ],
    )
    def test_a_text_is_served_with_its_type_and_encoding(
        self, name: str, kind: str, encoding: str, local_server: LocalServer, api: Api
    ) -> None:
        text = "название;цена\nхлеб ржаной;100\nбулка сдобная;50\n"
        file = upload(api, name, text.encode(encoding))
        assert file["mimeType"] == kind
        reply = send_request(local_server, f"/{key(file['url'])}")
        served, _, charset = reply.header("Content-Type").partition("; charset=")
        assert served == kind
        assert reply.body.decode(charset).lstrip("\ufeff") == text
        assert reply.header("X-Content-Type-Options") == "nosniff"

    def test_images_and_thumbnails_are_served_inline(
        self, local_server: LocalServer, api: Api
    ) -> None:
        file = upload(api, "a.jpg", photo())
        for url in (file["url"], file["thumbnailUrl"]):
            reply = send_request(local_server, f"/{key(url)}?w=1")
            assert (reply.status, reply.header("Content-Type")) == (200, "image/jpeg")
            assert reply.header("Content-Disposition") == "inline"

    def test_head_returns_only_the_headers(self, local_server: LocalServer, api: Api) -> None:
        reply = send_request(local_server, f"/{key(upload(api)['url'])}", "HEAD")
        assert (reply.status, reply.header("Content-Length"), reply.body) == (200, "5", b"")

    def test_only_files_can_be_reached(
        self, local_server: LocalServer, api: Api, owner: Owner
    ) -> None:
        site = api.post("/api/projects/create", {"title": "T"})["project"]["id"]
        body = {"projectId": site, "html": "<p>"}
        page = api.post("/api/pages/import-html", body)["page"]["id"]
        folder = f"{owner.workspace.id}/sites/{site}/pages/{page}"
        announce(api, 1)
        file = key(upload(api)["url"])
        place, name = file.rsplit("/", 1)
        object_store().put("files/secret.txt", b"x", "text/plain")
        for path in (
            f"/files/../{folder}",
            f"/files/%2e%2e/{folder}",
            f"/files/..%2f{folder}",
            f"/files/x/..%2f..%2f{folder}/",
            "/files/../.upload-secret",
            "/files/%2e%2e/.upload-secret",
            "/files/..%5c.upload-secret",
            "/files/%2fetc/passwd",
            "/files//etc/passwd",
            "/files/",
            "/files",
            f"/{place}",
            f"/{place}/",
            f"/{place}//{name}",
            f"/{place}/./{name}",
            f"/{file}/",
            f"/{file}%00",
            f"/{file}%0a",
            f"/{file.upper()}",
            "/files/secret.txt",
            f"/files/{'x' * 300}/a.txt",
            "/files/x/" + "y" * 4000,
            "/files/%ff/a.txt",
        ):
            assert refusal(send_request(local_server, path)) == (404, "not_found"), path

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
    def test_files_cannot_be_changed(
        self, method: str, local_server: LocalServer, api: Api
    ) -> None:
        reply = send_request(local_server, f"/{key(upload(api)['url'])}", method, b"x")
        assert refusal(reply) == (405, "method_not_allowed")
        assert reply.header("Allow") == "GET, HEAD"


class TestRanges:
    """Parts of files, as S3 serves them to media players and resumed downloads."""

    @pytest.fixture
    def path(self, api: Api) -> str:
        return f"/{key(upload(api, 'a.txt', b'0123456789')['url'])}"

    @pytest.mark.parametrize(
        ("byte_range", "part", "content_range"),
        [
            ("bytes=0-3", b"0123", "0-3"),
            ("bytes=4-", b"456789", "4-9"),
            ("bytes=-2", b"89", "8-9"),
            ("bytes=-99", b"0123456789", "0-9"),
            ("Bytes=8-99", b"89", "8-9"),
            ("bytes=9-9", b"9", "9-9"),
        ],
    )
    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_a_single_range_is_206_with_its_bytes(
        self,
        method: str,
        byte_range: str,
        part: bytes,
        content_range: str,
        path: str,
        local_server: LocalServer,
    ) -> None:
        reply = send_request(local_server, path, method, Range=byte_range)
        assert reply.status == 206
        assert reply.header("Content-Range") == f"bytes {content_range}/10"
        assert reply.header("Content-Length") == str(len(part))
        assert reply.header("Content-Type") == "text/plain; charset=utf-8"
        assert reply.body == (part if method == "GET" else b"")

    @pytest.mark.parametrize(
        "byte_range",
        ["bytes=0-1,4-5", "bytes=5-2", "bytes=-", "bytes=a-b", "lines=0-1", "bytes", ""],
    )
    def test_other_range_headers_are_answered_with_the_whole_file(
        self, byte_range: str, path: str, local_server: LocalServer
    ) -> None:
        reply = send_request(local_server, path, Range=byte_range)
        assert (reply.status, reply.body) == (200, b"0123456789")
        assert reply.header("Accept-Ranges") == "bytes"
        assert reply.header("Content-Range") is None

    @pytest.mark.parametrize("byte_range", ["bytes=10-", "bytes=99-100", "bytes=-0"])
    def test_a_range_beyond_the_end_is_416_with_the_size(
        self, byte_range: str, path: str, local_server: LocalServer
    ) -> None:
        reply = send_request(local_server, path, Range=byte_range)
        assert refusal(reply) == (416, "range_not_satisfiable")
        assert reply.header("Content-Range") == "bytes */10"

    def test_a_range_of_another_version_is_answered_with_the_whole_file(
        self, path: str, local_server: LocalServer
    ) -> None:
        tag = send_request(local_server, path).header("ETag") or ""
        assert tag.startswith('"')
        same = send_request(local_server, path, Range="bytes=0-0", If_Range=tag)
        assert (same.status, same.body) == (206, b"0")
        for other in ('"other"', f"W/{tag}", "Sun, 22 Nov 2026 00:00:00 GMT"):
            whole_file = send_request(local_server, path, Range="bytes=0-0", If_Range=other)
            assert (whole_file.status, whole_file.body) == (200, b"0123456789")

    def test_a_cached_file_is_304(self, path: str, local_server: LocalServer) -> None:
        tag = send_request(local_server, path).header("ETag") or ""
        for more in ({}, {"Range": "bytes=0-0"}):
            known = send_request(local_server, path, If_None_Match=tag, **more)
            assert (known.status, known.body) == (304, b"")
            assert known.header("ETag") == tag
        assert send_request(local_server, path, If_None_Match='"other"').status == 200


class TestUploads:
    @staticmethod
    def path(announced: dict[str, str]) -> str:
        return announced["url"].removeprefix(settings().public_url)

    def test_an_upload_needs_no_key_and_its_completion_does(
        self, local_server: LocalServer, api: Api
    ) -> None:
        body = b"\x00\xff" * 3_000_000
        announced = announce(api, len(body))
        assert send_request(local_server, self.path(announced), "PUT", body).status == 200
        file = api.post("/api/files/uploads/complete", {"id": announced["id"]})["file"]
        assert send_request(local_server, f"/{key(file['url'])}").body == body

    def test_invalid_and_expired_uploads_are_refused(
        self, local_server: LocalServer, api: Api, time: Time
    ) -> None:
        path = self.path(announce(api, 3))
        for wrong, body in (
            (path, b"four"),
            (path, b""),
            (path[:-4], b"abc"),
            (path + "A", b"abc"),
        ):
            assert refusal(send_request(local_server, wrong, "PUT", body)) == (403, "forbidden")
        time.pass_by(minutes=31)
        assert refusal(send_request(local_server, path, "PUT", b"abc")) == (403, "forbidden")

    def test_an_upload_over_twenty_megabytes_is_refused_unread(
        self, local_server: LocalServer, api: Api
    ) -> None:
        path = self.path(announce(api, 3))
        head = f"PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 20000001\r\n\r\n"
        assert refusal(local_server.request(head.encode())) == (413, "payload_too_large")

    def test_uploads_accept_only_put(self, local_server: LocalServer, api: Api) -> None:
        for method in ("GET", "POST"):
            reply = send_request(local_server, self.path(announce(api, 3)), method)
            assert refusal(reply) == (405, "method_not_allowed")
