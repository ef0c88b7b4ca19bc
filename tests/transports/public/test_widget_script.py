"""``/widget.js``, ``/book.js`` and the playground over HTTP."""

import gzip
import re

import pytest

from chalicelib.core.wire.limits import limits_of
from chalicelib.domains.chat.flows.chat_request import ChatRequest
from chalicelib.transports import widget
from chalicelib.transports.web import assets
from tests.conftest import Api
from tests.transports.conftest import LocalServer

MAX_BYTES = 50_000
MAX_GZIPPED_BYTES = 17_500
MAX_BOOK_BYTES = 2_000

every_script = pytest.mark.parametrize("name", ["widget", "book"])


def source(name: str) -> str:
    return (widget._FOLDER / f"{name}.js").read_text(encoding="utf-8")


def linked(name: str) -> str:
    """Return the source with the address of the script that it loads."""
    return source(name).replace("assets/webmcp.js", assets.script_url("webmcp")[1:])


@every_script
def test_any_page_may_load_the_script_and_caches_may_store_it(name: str) -> None:
    answer = Api(None).call("GET", f"/{name}.js")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer.headers["Cache-Control"].startswith("public, max-age=600")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@every_script
def test_a_cached_script_is_304(name: str) -> None:
    tag = Api(None).call("GET", f"/{name}.js").headers["ETag"]
    revalidated = Api(None).call("GET", f"/{name}.js", headers={"If-None-Match": f"W/{tag}"})
    assert (revalidated.status, revalidated.body) == (304, b"")
    assert revalidated.headers["Access-Control-Allow-Origin"] == "*"
    assert revalidated.headers["Cross-Origin-Resource-Policy"] == "cross-origin"


@every_script
def test_the_script_can_only_be_read(name: str) -> None:
    assert Api(None).call_refused("POST", f"/{name}.js").headers["Allow"] == "GET, HEAD"
    assert Api(None).call("OPTIONS", f"/{name}.js").status == 204


def test_the_script_stays_small() -> None:
    body = Api(None).call("GET", "/widget.js").body
    assert len(body) <= MAX_BYTES
    assert len(gzip.compress(body, 9)) <= MAX_GZIPPED_BYTES
    assert len(Api(None).call("GET", "/book.js").body) <= MAX_BOOK_BYTES


@every_script
def test_minification_removes_only_comments_and_indentation(name: str) -> None:
    served = Api(None).call("GET", f"/{name}.js").body.decode()
    lines = [line.strip(" ") for line in linked(name).split("\n")]
    read = [line for line in lines if line and not re.match(r"//|/\*\*.*\*/$", line)]
    assert served.split("\n") == [*read, ""]


@every_script
@pytest.mark.parametrize("word", ["innerHTML", "outerHTML", "insertAdjacent", "document.write"])
def test_the_script_builds_no_html(word: str, name: str) -> None:
    assert word not in source(name)


class TestPlayground:
    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("/playground?agent=%3Cscript%3E", "text/html; charset=utf-8"),
            ("/playground/", "text/html; charset=utf-8"),
            ("/playground/page.css", "text/css; charset=utf-8"),
            ("/playground/page.js", "text/javascript; charset=utf-8"),
        ],
    )
    def test_the_playground_does_not_depend_on_the_query(
        self, local_server: LocalServer, path: str, kind: str
    ) -> None:
        reply = local_server.request(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        assert (reply.status, reply.header("Content-Type")) == (200, kind)
        assert b"%3C" not in reply.body
        assert "default-src 'none'" in (reply.header("Content-Security-Policy") or "")

    @pytest.mark.parametrize(
        ("line", "status"),
        [
            ("GET /playground/__init__.py", 404),
            ("GET /playground/../page.css", 404),
            ("GET /playgrounds", 404),
            ("POST /playground", 405),
        ],
    )
    def test_other_paths_of_the_playground_are_not_found(
        self, local_server: LocalServer, line: str, status: int
    ) -> None:
        reply = local_server.request(
            f"{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        assert reply.status == status


@pytest.mark.parametrize(
    ("control", "path"),
    [
        (r"MAX_MESSAGE = (\d+)", "message"),
        (r'name: "name", .*maxlength: (\d+)', "contact.name"),
        (r'name: "contact", maxlength: (\d+)', "contact.email"),
    ],
)
def test_a_control_of_the_widget_takes_what_the_chat_takes(control: str, path: str) -> None:
    (length,) = re.findall(control, source("widget"))
    assert int(length) == limits_of(ChatRequest, path).max_chars
