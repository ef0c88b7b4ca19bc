"""Headers of every response of the API, whatever its status."""

import pytest

from tests.conftest import Api
from tests.factories.examples import Things, talk


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/products/list"),
        ("POST", "/api/products/create"),
        ("PUT", "/api/products/create"),
        ("GET", "/api/openapi.json"),
        ("GET", "/api/health"),
        ("POST", "/api/mcp"),
        ("POST", "/oauth/token"),
        ("POST", "/oauth/register"),
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/api/public/services/x/slots"),
    ],
)
def test_json_is_never_taken_for_a_page(method: str, path: str, api: Api, things: Things) -> None:
    for caller in (api, Api(None)):
        headers = caller.call(method, path, {} if method == "POST" else None).headers
        assert headers["Content-Type"].startswith("application/json")
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_answer_of_a_bot_is_never_taken_for_a_page(things: Things) -> None:
    assert talk(things.agent, "<script>").headers["X-Content-Type-Options"] == "nosniff"
