"""Caching, cookies, HTML, streams and forms follow the same HTTP rules on Lambda and locally."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import Operation, Registry, operation
from chalicelib.core.principals import Audience, VisitorPrincipal
from chalicelib.core.wire.schema import Wire
from chalicelib.transports import chalice_app, cors, public, rest
from chalicelib.transports.form_data import MAX_FIELDS, MULTIPART, URLENCODED
from chalicelib.transports.http import (
    HTML_TYPE,
    HttpRequest,
    HttpResponse,
    etag,
    handle,
    redirect,
    set_cookie,
)
from infra.local.devserver import LocalRoute
from tests.conftest import Owner
from tests.support.warned import warned
from tests.transports.conftest import WireReply, serving


def get(response: HttpResponse, method: str = "GET", **headers: str) -> HttpResponse:
    """Handle a request with these headers, and return this response."""
    sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return handle(HttpRequest(method, "/page", sent_headers), lambda _: response)


@pytest.mark.parametrize("kind", ["application/json", "text/html; charset=utf-8", "text/calendar"])
def test_no_browser_guesses_the_type_of_a_response(kind: str) -> None:
    response = HttpResponse(200, b"<script>", {"Content-Type": kind})
    assert get(response).headers["X-Content-Type-Options"] == "nosniff"


class TestCaching:
    def test_an_answer_without_caching_headers_is_not_cached(self) -> None:
        assert get(HttpResponse(200, b"a")).headers["Cache-Control"] == "no-store"

    @pytest.mark.parametrize("header", ["Cache-Control", "ETag"])
    def test_an_answer_with_caching_headers_keeps_them(self, header: str) -> None:
        headers = get(HttpResponse(200, b"a", {header: '"kept"'})).headers
        assert headers[header] == '"kept"'
        assert headers.keys() == {header, "X-Request-Id", "Vary"}

    @pytest.mark.parametrize("tag", ['"a"', 'W/"a"'])
    @pytest.mark.parametrize("known", ['"a"', 'W/"a"', '"b", W/"a"', '"b","a"', "*", ' W/"a" '])
    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_a_cached_answer_is_304(self, tag: str, known: str, method: str) -> None:
        cache_headers = {"ETag": tag, "Cache-Control": "max-age=60", "Vary": "Accept"}
        page = HttpResponse(200, b"page", {**cache_headers, "Content-Type": HTML_TYPE})
        reply = get(page, method, if_none_match=known)
        assert (reply.status, reply.body) == (304, b"")
        headers = {**cache_headers, "Vary": "Accept, Accept-Encoding"}
        assert dict(reply.headers) == {**headers, "X-Request-Id": reply.headers["X-Request-Id"]}

    @pytest.mark.parametrize("known", ["", "a", '"b"', '"b", W/"ab"', '"a', "W/a"])
    def test_a_changed_answer_is_sent_again(self, known: str) -> None:
        assert get(HttpResponse(200, b"page", {"ETag": '"a"'}), if_none_match=known).status == 200

    @pytest.mark.parametrize(("method", "status"), [("POST", 200), ("GET", 404), ("GET", 303)])
    def test_only_successful_answers_to_get_can_be_304(self, method: str, status: int) -> None:
        page = HttpResponse(status, b"page", {"ETag": '"a"'})
        assert get(page, method, if_none_match="*").status == status

    def test_an_answer_without_a_tag_is_never_304(self) -> None:
        assert get(HttpResponse(200, b"page"), if_none_match="*").status == 200

    def test_the_same_bytes_have_the_same_tag(self) -> None:
        assert etag(b"a") == etag(b"a") != etag(b"b")
        assert (
            get(HttpResponse(200, b"a", {"ETag": etag(b"a")}), if_none_match=etag(b"a")).status
            == 304
        )


class TestCookies:
    @pytest.mark.parametrize(
        ("header", "cookies"),
        [
            ("", {}),
            ("a=1; b=2", {"a": "1", "b": "2"}),
            ("a=1;b=x=y ;c", {"a": "1", "b": "x=y"}),
            ("a=first; a=second", {"a": "first"}),
            ('a="quoted"; __Host-b=', {"a": '"quoted"', "__Host-b": ""}),
            ("a=1; {odd}[name]=2; b=3", {"a": "1", "{odd}[name]": "2", "b": "3"}),
        ],
    )
    def test_cookies_are_parsed_one_by_one(self, header: str, cookies: dict[str, str]) -> None:
        assert HttpRequest("GET", "/", {"cookie": header}).cookies == cookies
        assert HttpRequest("GET", "/", {}).cookies == {}

    def test_cookies_are_hidden_from_scripts_and_other_sites(self) -> None:
        assert set_cookie("__Host-session", value="aZ09-_.~", max_age=60) == (
            "__Host-session=aZ09-_.~; Max-Age=60; Path=/; Secure; HttpOnly; SameSite=Lax"
        )

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("a", "b; Domain=evil"),
            ("a", "b\r\nX: y"),
            ("a", "é"),
            ("a", 'q"'),
            ("a b", "c"),
            ("", "a"),
        ],
    )
    def test_a_cookie_that_would_add_attributes_is_refused(self, name: str, value: str) -> None:
        with pytest.raises(ValueError, match="encode the rest"):
            set_cookie(name, value=value, max_age=1)


class TestRedirects:
    def test_redirects_are_followed_with_a_get(self) -> None:
        reply = get(redirect("/console?a=%20b#c"), "POST")
        assert (reply.status, reply.body) == (303, b"")
        assert reply.headers["Location"] == "/console?a=%20b#c"
        assert reply.headers["Cache-Control"] == "no-store"

    def test_a_redirect_cannot_inject_a_header(self) -> None:
        location = redirect("https://x/é\r\nSet-Cookie: a=b").headers["Location"]
        assert location == "https://x/%C3%A9%0D%0ASet-Cookie:%20a=b"


def page(request: HttpRequest) -> HttpResponse:
    """Return the caller's name in HTML, with two cookies."""
    body = f"<p>Здравствуйте, {request.cookies.get('name', 'гость')}</p>".encode()
    cookies = [set_cookie("a", value="1", max_age=60), set_cookie("b", value="2", max_age=0)]
    return HttpResponse(200, body, {"Content-Type": HTML_TYPE, "ETag": etag(body)}, cookies=cookies)


def stream(_: HttpRequest) -> HttpResponse:
    """Send the numbers from one to three."""
    return HttpResponse(200, (b"%d " % n for n in (1, 2, 3)), {"Content-Type": "text/plain"})


class TestLambdaAndLocal:
    """A page has the same response from the app, as on API Gateway, and from a local route."""

    @pytest.fixture(params=["app", "local route"])
    def send_request(self, request: pytest.FixtureRequest) -> Iterator[Callable[..., WireReply]]:
        app = chalice_app.App(app_name="pages", configure_logs=False)
        handlers = {"/page": page, "/stream": stream}
        routes = [LocalRoute(path, handler) for path, handler in handlers.items()]
        if request.param == "app":
            for path, handler in handlers.items():
                chalice_app.add_route(
                    app, handler.__name__, method="GET", path=path, handler=handler
                )
        with serving(app, *(routes if request.param == "local route" else ())) as server:
            yield lambda path, more=b"": server.request(
                b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n" + more + b"\r\n"
            )

    def test_html_is_sent_with_every_cookie(self, send_request: Callable[..., WireReply]) -> None:
        reply = send_request(b"/page", b"Cookie: name=you\r\nCookie: name=me\r\n")
        assert reply.body.decode() == "<p>Здравствуйте, you</p>"
        assert reply.header("Content-Type") == HTML_TYPE
        assert reply.header("Cache-Control") is None
        cookies = [value for name, value in reply.fields if name == "Set-Cookie"]
        assert [cookie.partition(";")[0] for cookie in cookies] == ["a=1", "b=2"]

    def test_html_is_sent_once(self, send_request: Callable[..., WireReply]) -> None:
        tag = send_request(b"/page").header("ETag") or ""
        revalidated = send_request(b"/page", b"If-None-Match: W/" + tag.encode() + b"\r\n")
        assert (revalidated.status, revalidated.body, revalidated.header("ETag")) == (304, b"", tag)

    def test_a_stream_arrives_whole(self, send_request: Callable[..., WireReply]) -> None:
        assert send_request(b"/stream").body == b"1 2 3 "


class TestStreams:
    def test_a_stream_that_is_not_sent_is_closed(self) -> None:
        closed = []

        def pieces() -> Iterator[bytes]:
            try:
                yield b"a"
            finally:
                closed.append(True)

        body = pieces()
        next(body)
        assert get(HttpResponse(200, body, {"ETag": '"a"'}), if_none_match="*").status == 304
        assert closed == [True]


class Order(Wire):
    """An order's fields."""

    id: str = Field(description="Which.")
    amount: int = Field(description="How many.")
    tags: list[str] = Field(default=[], description="Labels.")
    gift: bool = Field(default=False, description="Whether it is a gift.")


class TestForms:
    """An operation may accept its input as a form."""

    @pytest.fixture
    def order(self) -> Operation:
        registry = Registry()

        @operation(
            rest="POST /api/orders/{id}",
            scope=None,
            title="Order",
            idempotent=True,
            form=True,
            registry=registry,
        )
        def order(ctx: Context, args: Order) -> Order:
            return args

        return registry["order"]

    @staticmethod
    def send(order: Operation, owner: Owner, kind: str, body: bytes) -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {owner.token()}", "content-type": kind}
        request = HttpRequest("POST", order.path, headers, path={"id": "7"}, body=body)
        reply = handle(request, lambda r: rest.serve(order, r))
        return reply.status, json.loads(reply.whole_body())["data"]

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("application/json", b'{"amount": 2, "tags": ["a b", "\xd1\x91&"], "gift": true}'),
            (URLENCODED, b"amount=2&tags=a+b&tags=%D1%91%26&gift=true&unknown=&id=9"),
            (
                f"{MULTIPART}; boundary=X",
                b"".join(
                    b'--X\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % field
                    for field in (
                        (b"amount", b"2"),
                        (b"tags", b"a b"),
                        (b"tags", "ё&".encode()),
                        (b"gift", b"true"),
                    )
                )
                + b"--X--\r\n",
            ),
        ],
    )
    def test_every_content_type_is_read_in_the_same_way(
        self, kind: str, body: bytes, order: Operation, owner: Owner
    ) -> None:
        status, data = self.send(order, owner, kind, body)
        assert status == 200, data
        expected = {"id": "7", "amount": 2, "tags": ["a b", "ё&"], "gift": True}
        facts = {"field": "unknown", "suggestion": None}
        unknown = [{"code": "unknown_field", **facts}] if b"unknown" in body else []
        assert warned(data) == unknown
        without_warnings = {
            name: value for name, value in data.items() if not name.startswith("warning")
        }
        assert without_warnings == {"status": True, **expected}

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            (URLENCODED, b""),
            (URLENCODED, b"amount=two"),
            (URLENCODED, b"amount=1&tags=" + b"%D1%91" * 10_001),
            (URLENCODED, b"amount=1" + b"&tags=a" * MAX_FIELDS),
            (URLENCODED, b"&" * 4_000_000),
            (URLENCODED, bytes(range(256))),
            (MULTIPART, b"amount=1"),
            (
                f"{MULTIPART}; boundary=X",
                b'--X\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n\r\n--X--',
            ),
        ],
    )
    def test_an_invalid_form_is_400(
        self, kind: str, body: bytes, order: Operation, owner: Owner
    ) -> None:
        status, data = self.send(order, owner, kind, body)
        assert (status, data["code"]) == (400, "validation_error")

    def test_other_content_types_stay_refused(self, order: Operation, owner: Owner) -> None:
        assert self.send(order, owner, "text/plain", b"amount=1")[0] == 415


class TestPublicOperations:
    """An operation for visitors needs no key, and limits its body."""

    @pytest.fixture
    def order(self, owner: Owner) -> Operation:
        registry = Registry()

        @operation(
            rest="POST /api/public/orders/{id}",
            title="Order",
            audience=(Audience.PUBLIC,),
            resolve=lambda _: owner.workspace.id,
            idempotent=True,
            registry=registry,
        )
        def order(ctx: Context, args: Order) -> Order:
            assert isinstance(ctx.principal, VisitorPrincipal)
            assert (ctx.workspace_id, ctx.principal.client_ip) == (owner.workspace.id, "")
            return args

        return registry["order"]

    @staticmethod
    def send(order: Operation, body: bytes, kind: str) -> HttpResponse:
        headers = {"content-type": kind, "authorization": "Bearer of nothing"}
        request = HttpRequest(
            "POST", order.path, headers, path={"id": "7"}, body=body, client_ip="203.0.113.5"
        )
        return cors.PUBLIC.handle(request, partial(public.serve, order))

    @pytest.mark.parametrize("kind", ["application/json", "text/plain;charset=UTF-8"])
    def test_the_answer_is_readable_from_any_origin(self, order: Operation, kind: str) -> None:
        reply = self.send(order, b'{"amount": 2}', kind)
        assert reply.status == 200
        assert json.loads(reply.whole_body())["data"]["id"] == "7"
        assert reply.headers["Access-Control-Allow-Origin"] == "*"

    @pytest.mark.parametrize(
        ("body", "kind", "status"),
        [
            (b'{"amount": 2}' + b" " * 32_756, "text/plain", 413),
            (b"amount=2", URLENCODED, 415),
            (b'{"amount": "2"}', "text/plain", 400),
        ],
    )
    def test_the_refusal_of_invalid_input_is_readable_from_any_origin(
        self, order: Operation, body: bytes, kind: str, status: int
    ) -> None:
        reply = self.send(order, body, kind)
        assert reply.status == status
        assert reply.headers["Access-Control-Allow-Origin"] == "*"
