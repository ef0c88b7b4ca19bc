"""Authorization requests with mistakes, and who is told of them."""

import re
from html import unescape
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from chalicelib.domains.oauth.rules import registration
from tests.conftest import Answer
from tests.factories.console import Person, World
from tests.factories.oauth import REDIRECT_URI
from tests.factories.oauth_http import (
    BASE,
    DOCUMENT,
    REQUEST,
    allow,
    content,
    document,
    exchange_form,
    path,
    returned,
    send_form,
)
from tests.fakes.internet import Internet, http_response


def reported(answer: Answer) -> tuple[str, dict[str, str]]:
    """Return the link of a page that refuses a request, and the parameters for the client."""
    assert answer.status == 400
    assert "Location" not in answer.headers
    assert b"The app cannot be connected" in answer.body
    back_link = re.search(
        r'<a [^>]*href="([^"]+)"><svg.*</svg>Back to the app', answer.body.decode()
    )
    assert back_link
    link = unescape(back_link[1])
    return link, dict(parse_qsl(urlsplit(link).query, strict_parsing=True))


class TestFaultyRequests:
    @pytest.mark.parametrize(
        "changes",
        [
            {"client_id": None},
            {"client_id": "dcr_e30"},
            {"client_id": "somebody"},
            {"client_id": "http://chat.example.com/client.json"},
            {"redirect_uri": "https://evil.example/callback"},
            {"redirect_uri": f"{REDIRECT_URI}/"},
            {"redirect_uri": f"{REDIRECT_URI}?a=1"},
            {"redirect_uri": "javascript:alert(1)"},
        ],
    )
    @pytest.mark.parametrize("name", ["boss", "visitor"])
    def test_an_unknown_client_or_address_is_never_redirected_to(
        self, name: str, changes: dict[str, str | None], world: World
    ) -> None:
        person = world.person("boss") if name == "boss" else Person("boss@example.com")
        answers = [person.get(path(**changes))]
        if name == "boss":
            answers.append(allow(person, path(**changes), world.here.slug))
        for answer in answers:
            assert answer.status == 400
            assert "Location" not in answer.headers
            assert b"The app cannot be connected" in answer.body

    def test_an_unreachable_document_is_explained(self, net: Internet, world: World) -> None:
        net.serve(DOCUMENT, http_response(status="503 Service Unavailable"))
        answer = world.person("boss").get(path(client_id=DOCUMENT))
        assert answer.status == 503
        assert b"The app cannot be connected" in answer.body

    @pytest.mark.parametrize("scope", ["claudeai offline_access", "openid", "read write"])
    def test_unknown_scopes_alone_ask_for_everything_that_can_be_read(
        self, scope: str, world: World
    ) -> None:
        console_owner = world.person("boss")
        page = console_owner.get(path(scope=scope)).body.decode()
        assert 'value="projects:read"' in page
        assert 'value="projects:write"' not in page
        got = returned(
            allow(console_owner, path(scope=scope), world.here.slug, "projects:read", "crm:write")
        )
        tokens = content(send_form("token", **exchange_form(got["code"])))
        assert tokens["scope"] == "projects:read"

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"response_type": "token"}, "unsupported_response_type"),
            ({"response_type": None}, "invalid_request"),
            ({"response_mode": "fragment"}, "invalid_request"),
            ({"code_challenge": None}, "invalid_request"),
            ({"code_challenge": "short"}, "invalid_request"),
            ({"code_challenge_method": "plain"}, "invalid_request"),
            ({"code_challenge_method": None}, "invalid_request"),
            ({"resource": "https://other.example/api/mcp"}, "invalid_target"),
            ({"scope": "blog:write"}, "invalid_scope"),
        ],
    )
    def test_other_mistakes_are_shown_with_a_link_that_reports_them_to_the_client(
        self, changes: dict[str, str | None], error: str, world: World
    ) -> None:
        console_owner = world.person("boss")
        for answer in (
            console_owner.get(path(**changes)),
            allow(console_owner, path(**changes), world.here.slug),
        ):
            link, got = reported(answer)
            assert got.pop("error_description")
            assert got == {"error": error, "state": REQUEST["state"], "iss": BASE}
            assert link.startswith(f"{REDIRECT_URI}?")
            assert b"client.example" in answer.body

    @pytest.mark.parametrize("changes", [{"response_type": "zzz"}, {"scope": "blog:write"}])
    def test_a_client_with_a_document_gets_no_redirect_with_an_error(
        self, changes: dict[str, str], net: Internet, world: World
    ) -> None:
        """Anybody can publish a document, too."""
        net.serve(DOCUMENT, document())
        link, _ = reported(world.person("boss").get(path(client_id=DOCUMENT, **changes)))
        assert link.startswith(f"{REDIRECT_URI}?")

    @pytest.mark.parametrize("scheme", ["ms-msdt", "search-ms", "tel", "editor"])
    def test_an_id_with_a_scheme_of_the_system_is_no_client(
        self, scheme: str, world: World
    ) -> None:
        """Ids are not signed, so that anybody can write one that registration would refuse."""
        uri = f"{scheme}:/x"
        client_id = registration._encode("App", (uri,))
        answer = world.person("boss").get(path(client_id=client_id, redirect_uri=uri))
        assert answer.status == 400
        assert uri.encode() not in answer.body
        assert "Location" not in answer.headers

    @pytest.mark.parametrize("name", ["scope", "code_challenge", "state", "response_type"])
    def test_a_repeated_parameter_is_refused(self, name: str, world: World) -> None:
        _, got = reported(world.person("boss").get(f"{path()}&{name}=x"))
        assert got["error"] == "invalid_request"
        assert got.get("state") == (None if name == "state" else REQUEST["state"])

    @pytest.mark.parametrize("name", ["client_id", "redirect_uri"])
    def test_a_repeated_client_or_address_gets_no_redirect(self, name: str, world: World) -> None:
        twice = urlencode({name: REQUEST[name]})
        assert world.person("boss").get(f"{path()}&{twice}").status == 400
