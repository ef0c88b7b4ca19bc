"""A client discovers that and where users can sign in (RFC 9728, RFC 8414)."""

import json
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from chalicelib import SERVICE
from chalicelib.domains.oauth.rules import resources
from chalicelib.domains.oauth.rules.errors import OAuthError
from tests.conftest import Answer, Api

BASE = "http://127.0.0.1:8000"
RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"


def document(path: str) -> dict[str, Any]:
    answer = Api(None).call("GET", path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    metadata: dict[str, Any] = json.loads(answer.body)
    return metadata


def refused_call(authorization: str | None = None) -> Answer:
    headers = {"Authorization": authorization} if authorization else {}
    return Api(None).call("POST", "/api/mcp", b"{}", headers)


class TestMetadata:
    @pytest.mark.parametrize("path", [RESOURCE, f"{RESOURCE}/api/mcp"])
    def test_the_tool_server_names_its_authorization_server(self, path: str) -> None:
        metadata = document(path)
        assert metadata["resource"] == f"{BASE}/api/mcp"
        assert metadata["authorization_servers"] == [BASE]
        assert metadata["bearer_methods_supported"] == ["header"]
        assert metadata["resource_name"] == SERVICE
        assert (
            Api(None).call("GET", urlsplit(metadata["resource_documentation"]).path).status == 200
        )

    def test_the_authorization_server_names_its_endpoints(self) -> None:
        metadata = document(SERVER)
        assert metadata["issuer"] == BASE
        endpoints = {name: url for name, url in metadata.items() if name.endswith("_endpoint")}
        assert endpoints == {
            "authorization_endpoint": f"{BASE}/oauth/authorize",
            "token_endpoint": f"{BASE}/oauth/token",
            "registration_endpoint": f"{BASE}/oauth/register",
            "revocation_endpoint": f"{BASE}/oauth/revoke",
        }
        assert metadata["code_challenge_methods_supported"] == ["S256"]
        assert metadata["grant_types_supported"] == ["authorization_code", "refresh_token"]
        assert metadata["response_types_supported"] == ["code"]
        assert metadata["response_modes_supported"] == ["query"]
        signing = "endpoint_auth_signing_alg_values_supported"
        assert metadata[f"revocation_{signing}"] == metadata[f"token_{signing}"] != []
        for endpoint in ("token", "revocation"):
            methods = metadata[f"{endpoint}_endpoint_auth_methods_supported"]
            assert methods == ["none", "private_key_jwt"]
        assert metadata["client_id_metadata_document_supported"] is True
        assert metadata["authorization_response_iss_parameter_supported"] is True
        assert Api(None).call("GET", urlsplit(metadata["service_documentation"]).path).status == 200

    def test_the_scopes_are_those_of_all_areas_but_the_blog(self) -> None:
        scopes = document(SERVER)["scopes_supported"]
        assert scopes == document(RESOURCE)["scopes_supported"]
        assert "crm:write" in scopes
        assert not [scope for scope in scopes if scope.startswith("blog")]

    @pytest.mark.parametrize("path", [RESOURCE, f"{RESOURCE}/api/mcp", SERVER])
    def test_pages_of_every_origin_may_read_the_metadata(self, path: str) -> None:
        answer = Api(None).call("GET", path, headers={"Origin": "https://inspector.example"})
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        preflight = Api(None).call("OPTIONS", path, headers={"Origin": "https://inspector.example"})
        assert preflight.status == 204
        assert "MCP-Protocol-Version" in preflight.headers["Access-Control-Allow-Headers"]

    @pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
    def test_on_the_own_machine_the_metadata_has_the_name_that_the_client_uses(
        self, name: str
    ) -> None:
        host = {"Host": f"{name}:8000"}
        base = f"http://{name.lower()}:8000"
        for path in (RESOURCE, f"{RESOURCE}/api/mcp", SERVER):
            metadata = json.loads(Api(None).call("GET", path, headers=host).body)
            urls = [text for text in metadata.values() if str(text).startswith("http")]
            assert urls
            assert all(url.startswith(f"{base}/") or url == base for url in urls)
            assert metadata.get("authorization_servers", [base]) == [base]
        challenge = Api(None).call("POST", "/api/mcp", b"{}", host).headers["WWW-Authenticate"]
        assert f'resource_metadata="{base}{RESOURCE}/api/mcp"' in challenge

    @pytest.mark.parametrize(
        "host", ["evil.example:8000", "localhost:8001", "localhost", "127.0.0.1.evil.example", ""]
    )
    def test_another_host_does_not_change_the_metadata(self, host: str) -> None:
        answer = Api(None).call("GET", RESOURCE, headers={"Host": host})
        assert json.loads(answer.body)["resource"] == f"{BASE}/api/mcp"

    def test_a_host_does_not_change_the_metadata_of_a_public_server(
        self, reload_settings: Callable[[], None]
    ) -> None:
        os.environ["PUBLIC_URL"] = "https://api.example.com"
        reload_settings()
        answer = Api(None).call("GET", RESOURCE, headers={"Host": "localhost:8000"})
        assert json.loads(answer.body)["resource"] == "https://api.example.com/api/mcp"

    def test_the_server_is_found_below_a_base_url_with_a_path(
        self, reload_settings: Callable[[], None]
    ) -> None:
        os.environ["PUBLIC_URL"] = "https://a1.execute-api.eu-central-1.amazonaws.com/dev"
        reload_settings()
        assert document("/.well-known/openid-configuration") == document(SERVER)
        metadata = document(SERVER)
        assert metadata["issuer"].endswith("/dev")
        # The official TypeScript SDK refuses a document of OpenID Connect without these.
        needed = ("subject_types_supported", "id_token_signing_alg_values_supported")
        assert [metadata[name] for name in needed] == [[], []]
        assert metadata["jwks_uri"] == f"{metadata['issuer']}/.well-known/jwks.json"
        assert document("/.well-known/jwks.json") == {"keys": []}

    def test_the_metadata_follows_the_public_url(self, reload_settings: Callable[[], None]) -> None:
        os.environ["PUBLIC_URL"] = "https://api.example.com/"
        reload_settings()
        assert document(SERVER)["issuer"] == "https://api.example.com"
        assert document(RESOURCE)["authorization_servers"] == ["https://api.example.com"]
        assert document(RESOURCE)["resource"] == "https://api.example.com/api/mcp"


class TestChallenge:
    def test_a_call_without_a_token_is_told_where_to_sign_in(self) -> None:
        answer = refused_call()
        assert answer.status == 401
        scheme, _, values = answer.headers["WWW-Authenticate"].partition(" ")
        assert scheme == "Bearer"
        assert f'resource_metadata="{BASE}{RESOURCE}/api/mcp"' in values
        assert 'scope="projects:read projects:write pages:read' in values
        assert "blog" not in values
        assert "error" not in values

    @pytest.mark.parametrize("authorization", ["Bearer nope", "Basic x", "Bearer wsat_x"])
    def test_a_call_with_a_wrong_token_is_told_so(self, authorization: str) -> None:
        answer = refused_call(authorization)
        assert answer.status == 401
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]

    def test_the_challenge_is_a_list_of_quoted_values(self) -> None:
        metadata = f"{resources.issuer()}/.well-known/oauth-protected-resource/api/mcp"
        values = f'resource_metadata="{metadata}", scope="{" ".join(resources.SCOPES)}"'
        assert resources.challenge(had_token=False) == f"Bearer {values}"
        assert resources.challenge(had_token=True) == f'Bearer error="invalid_token", {values}'

    def test_pages_may_read_the_challenge(self) -> None:
        answer = Api(None).call("POST", "/api/mcp", b"{}", {"Origin": BASE})
        assert "WWW-Authenticate" in answer.headers["Access-Control-Expose-Headers"]

    def test_the_rest_of_the_api_has_no_such_challenge(self) -> None:
        answer = Api(None).call("GET", "/api/workspaces/list")
        assert answer.headers["WWW-Authenticate"] == "Bearer"


class TestResources:
    @pytest.mark.parametrize(
        "requested",
        [
            "",
            f"{BASE}/api/mcp",
            f"{BASE}/api/mcp/",
            f"{BASE}/api/mcp?toolsets=crm",
            "HTTP://127.0.0.1:8000/api/mcp",
            "http://localhost:8000/api/mcp",
            "http://[::1]:8000/api/mcp/",
        ],
    )
    def test_a_token_may_be_requested_for_the_tool_server(self, requested: str) -> None:
        resources.check_resource(requested)

    @pytest.mark.parametrize(
        "requested",
        [
            BASE,
            f"{BASE}/api",
            f"{BASE}/API/MCP",
            f"{BASE}/api/mcp/other",
            f"{BASE}/api/mcp//",
            f"{BASE}/api/mcp#tools",
            f"{BASE}/api/mcp#",
            "https://127.0.0.1:8000/api/mcp",
            "http://127.0.0.1:8001/api/mcp",
            "http://localhost:8001/api/mcp",
            "http://localhost/api/mcp",
            "https://evil.example/api/mcp",
            "http://[",
            "x",
        ],
    )
    def test_a_token_for_another_resource_is_refused(self, requested: str) -> None:
        with pytest.raises(OAuthError) as refusal:
            resources.check_resource(requested)
        assert refusal.value.error == "invalid_target"
