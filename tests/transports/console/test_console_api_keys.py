"""API keys give no access to the console, checked for all of its pages."""

from urllib.parse import quote

import pytest

from chalicelib.lib import tokens
from chalicelib.transports.console import access
from tests.factories.console import Person, World
from tests.factories.console_forms import FORMS, read_rows, sweep_of_routes
from tests.transports.conftest import LocalServer

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class TestApiKeys:
    @sweep_of_routes
    def test_an_api_key_gives_no_access_wherever_it_is_sent(
        self, route: str, world: World, console_owner: Person
    ) -> None:
        path, key = world.here.path_of(route), world.here.token
        rows_before = read_rows()
        headers: list[dict[str, str]] = [
            {"Authorization": f"Bearer {key}"},
            {"Authorization": f"bearer   {key}"},
            {"Authorization": key},
            {"Authorization": "Basic Ym9zczpib3Nz"},
            {"X-Api-Key": key},
            {"X-Anything": f"token={world.here.bot_token}"},
            {"Cookie": f"{console_owner.headers['Cookie']}; key={key}"},
            {"Cookie": f"{access.COOKIE}={key}"},
        ]
        answers = [console_owner.request(m, path, **h) for h in headers for m in ("GET", "POST")]
        for query in (f"apiKey={key}", f"a=1&b={quote(key, safe='')}", f"{key}=1"):
            answers += [console_owner.request(method, f"{path}?{query}") for method in METHODS[:-1]]
        form = world.here.filled(FORMS.get(route, {}))
        answers.append(console_owner.post(path, {**form, "name": key}))
        for answer in answers:
            assert answer.status == 403, answer
        for answer in filter(lambda answer: answer.body, answers):
            assert (answer.data["status"], answer.data["code"]) == (False, "forbidden")
        assert read_rows() == rows_before

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize(
        "path",
        [
            "/console/account",
            "/console/none",
            "/console/w/a/b/c/d/e",
            "/console//account",
            "/%63onsole/x",
        ],
    )
    def test_an_api_key_gives_no_access_on_unknown_pages(
        self, method: str, path: str, local_server: LocalServer
    ) -> None:
        request_line = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        key = tokens.generate()
        with_key = f"{request_line}Authorization: Bearer svc_live_abc\r\n\r\n"
        in_query = f"{request_line}\r\n".replace(" HTTP", f"?a={key} HTTP")
        in_path = f"{request_line}\r\n".replace(" HTTP", f"/{key}/keys HTTP")
        for text in (with_key, in_query, in_path):
            reply = local_server.request(text.encode())
            assert reply.status == 403
            if method != "HEAD":
                assert reply.data["code"] == "forbidden"
        reply = local_server.request(f"{request_line}\r\n".encode())
        if path == "/console/account":
            assert reply.status == (303 if method in {"GET", "HEAD", "POST"} else 405)
            return
        assert reply.status == 404
        assert reply.header("Content-Type") == "text/html; charset=utf-8"
        assert reply.header("X-Frame-Options") == "DENY"

    def test_an_api_key_in_a_path_gives_no_access(self, world: World) -> None:
        key, console_owner = world.here.token, world.person("boss")
        for person in (console_owner, Person("boss@example.com")):
            for path in (f"/console/w/{key}/keys", f"{world.here.path}/keys/{key}/revoke"):
                answer = person.get(path)
                assert (answer.status, answer.data["code"]) == (403, "forbidden")
                assert "Location" not in answer.headers

    def test_an_api_key_pasted_into_a_search_is_refused_with_an_explanation(
        self, world: World
    ) -> None:
        console_owner = world.person("boss")
        path = f"{world.here.path}/keys?q={world.here.token}"
        answer = console_owner.request("GET", path, Accept="text/html,*/*;q=0.8")
        assert answer.status == 403
        assert b"The request contains an API key" in answer.body
        assert world.here.token.encode() not in answer.body

    def test_a_name_may_begin_like_an_api_key(self, world: World) -> None:
        console_owner = world.person("boss")
        form = {"name": "svc_live_prod", "scopes": "pages:read"}
        assert console_owner.post(f"{world.here.path}/keys", form).status == 200
        assert b"svc_live_prod" in console_owner.get(f"{world.here.path}/keys?q=svc_live_").body

    def test_a_masked_key_may_be_searched_for(self, world: World) -> None:
        masked_token = f"svc_live_…{world.here.token[-4:]}"
        console_owner = world.person("boss")
        search_page = console_owner.get(f"{world.here.path}/keys?q={quote(masked_token)}")
        assert search_page.status == 200
        assert masked_token in search_page.body.decode()
