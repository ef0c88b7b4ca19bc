"""Endpoints for tokens and revocation that OAuth clients call."""

import base64
import json
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from chalicelib.core import clock
from chalicelib.lib import tokens
from tests.conftest import Answer, Api, Owner, Time
from tests.factories.console import FORM
from tests.factories.oauth import REDIRECT_URI, forged, grant, works
from tests.factories.oauth_http import (
    BASE,
    CLIENT,
    DOCUMENT,
    content,
    error_of,
    exchange_form,
    register,
    send_form,
)
from tests.fakes.internet import Internet, http_response

BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def code_of(owner: Owner, **changes: Any) -> str:
    code: str = grant(owner.workspace, **{"clientId": CLIENT, **changes})["code"]
    return code


def connected(owner: Owner) -> dict[str, Any]:
    answer = send_form("token", **exchange_form(code_of(owner)))
    assert answer.status == 200
    return content(answer)


def refresh(token: str, **changes: str) -> Answer:
    form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": CLIENT}
    return send_form("token", **{**form, **changes})


class TestTokens:
    def test_a_code_is_exchanged_for_tokens(self, owner: Owner) -> None:
        answer = send_form("token", **exchange_form(code_of(owner), resource=f"{BASE}/api/mcp/"))
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/json"
        assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == (
            "no-store",
            "no-cache",
        )
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        token_pair = content(answer)
        assert token_pair.pop("access_token").startswith(tokens.ACCESS_PREFIX)
        assert token_pair.pop("refresh_token").startswith(tokens.REFRESH_PREFIX)
        assert token_pair == {
            "token_type": "Bearer",
            "expires_in": 3600,
            "scope": "projects:read crm:read crm:write",
        }

    def test_tokens_are_refreshed_and_narrowed(self, owner: Owner) -> None:
        tokens = connected(owner)
        answer = refresh(tokens["refresh_token"], scope="crm:read unknown")
        assert content(answer)["scope"] == "crm:read"
        assert works(content(answer)["access_token"])
        refreshed = refresh(content(answer)["refresh_token"], resource=f"{BASE}/api/mcp")
        assert content(refreshed)["scope"] == "projects:read crm:read crm:write"

    def test_a_second_use_of_a_code_ends_what_the_first_gave(self, owner: Owner) -> None:
        form = exchange_form(code_of(owner))
        tokens = content(send_form("token", **form))
        assert works(tokens["access_token"])
        answer = send_form("token", **form)
        assert (answer.status, error_of(answer)) == (400, "invalid_grant")
        assert not works(tokens["access_token"])

    def test_a_code_lives_for_a_minute(self, owner: Owner, time: Time) -> None:
        code = code_of(owner)
        time.pass_by(seconds=61)
        assert error_of(send_form("token", **exchange_form(code))) == "invalid_grant"

    @pytest.mark.parametrize(
        ("changes", "status", "error"),
        [
            ({"grant_type": ""}, 400, "invalid_request"),
            ({"grant_type": "password"}, 400, "unsupported_grant_type"),
            ({"code": ""}, 400, "invalid_request"),
            ({"code": "wsac_x"}, 400, "invalid_grant"),
            ({"code_verifier": ""}, 400, "invalid_request"),
            ({"code_verifier": "x" * 43}, 400, "invalid_grant"),
            ({"code_verifier": "x" * 200}, 400, "invalid_request"),
            ({"redirect_uri": "https://client.example/other"}, 400, "invalid_grant"),
            ({"client_id": ""}, 401, "invalid_client"),
            ({"client_id": "dcr_e30"}, 401, "invalid_client"),
            ({"client_id": "somebody"}, 401, "invalid_client"),
            ({"resource": "https://other.example"}, 400, "invalid_target"),
        ],
    )
    def test_a_faulty_request_is_refused_and_uses_no_code(
        self, changes: dict[str, str], status: int, error: str, owner: Owner
    ) -> None:
        code = code_of(owner)
        answer = send_form("token", **exchange_form(code, **changes))
        assert (answer.status, error_of(answer)) == (status, error)
        assert send_form("token", **exchange_form(code)).status == 200

    def test_another_clients_code_is_refused(self, owner: Owner) -> None:
        other = content(register({"redirect_uris": [REDIRECT_URI], "client_name": "Other"}))
        form = exchange_form(code_of(owner), client_id=other["client_id"])
        assert error_of(send_form("token", **form)) == "invalid_grant"

    def test_a_client_with_one_address_need_not_repeat_it(self, owner: Owner) -> None:
        form = exchange_form(code_of(owner))
        del form["redirect_uri"]
        assert send_form("token", **form).status == 200

    @pytest.mark.parametrize(
        ("body", "kind", "status"),
        [
            (b"grant_type=refresh_token&grant_type=refresh_token", FORM, 400),
            (b'{"grant_type": "refresh_token"}', "application/json", 400),
            (b"a=" + b"x" * 40_000, FORM, 413),
            (b"\xff\xfe=%ff&%00", FORM, 400),
        ],
    )
    def test_a_body_that_cannot_be_read_is_refused(
        self, body: bytes, kind: str, status: int
    ) -> None:
        answer = Api(None).call("POST", "/oauth/token", body, {"Content-Type": kind})
        assert (answer.status, error_of(answer)) == (status, "invalid_request")

    def test_a_client_that_authenticates_by_header_is_told_how(self) -> None:
        basic = "Basic " + base64.b64encode(b"somebody:secret").decode()
        headers = {"Content-Type": FORM, "Authorization": basic}
        body = b"grant_type=refresh_token&refresh_token=x"
        answer = Api(None).call("POST", "/oauth/token", body, headers)
        assert (answer.status, error_of(answer)) == (401, "invalid_client")
        assert answer.headers["WWW-Authenticate"] == "Basic"

    def test_a_failure_of_the_database_is_temporary(
        self, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from chalicelib.core.errors import UnavailableError
        from chalicelib.transports.oauth import token

        def fail(*_: object, **__: object) -> None:
            raise UnavailableError

        form = exchange_form(code_of(owner))
        monkeypatch.setattr(token, "invoke", fail)
        answer = send_form("token", **form)
        assert (answer.status, error_of(answer)) == (503, "temporarily_unavailable")
        monkeypatch.setattr(token, "invoke", lambda *_, **__: 1 / 0)
        answer = send_form("token", **form)
        assert (answer.status, error_of(answer)) == (500, "server_error")


class TestAssertions:
    """ChatGPT's client authenticates by ``private_key_jwt``."""

    @pytest.fixture
    def net(self, net: Internet) -> Internet:
        metadata = {
            "client_id": DOCUMENT,
            "client_name": "Chat",
            "redirect_uris": [REDIRECT_URI],
            "token_endpoint_auth_method": "private_key_jwt",
            "jwks": {"keys": [key().as_dict(private=False)]},
        }
        self.server = net.serve(DOCUMENT, http_response(json.dumps(metadata).encode()))
        return net

    def form(self, owner: Owner, **changes: str) -> dict[str, str]:
        form = exchange_form(code_of(owner, clientId=DOCUMENT), client_id=DOCUMENT)
        return {**form, "client_assertion_type": BEARER, **changes}

    @pytest.mark.parametrize("audience", [BASE, f"{BASE}/oauth/token"])
    def test_a_client_proves_itself_by_its_key(
        self, audience: str, owner: Owner, net: Internet
    ) -> None:
        form = self.form(owner, client_assertion=assertion(audience))
        del form["client_id"]  # The assertion names it, too.
        tokens = content(send_form("token", **form))
        assert works(tokens["access_token"])
        second_proof = {"client_assertion_type": BEARER, "client_assertion": assertion(audience)}
        assert refresh(tokens["refresh_token"], client_id=DOCUMENT, **second_proof).status == 200

    @pytest.mark.parametrize(
        "changes",
        [{}, {"client_assertion": "x"}, {"client_assertion": "a.e30.c"}],
    )
    def test_a_client_without_proof_is_refused(
        self, changes: dict[str, str], owner: Owner, net: Internet
    ) -> None:
        answer = send_form("token", **self.form(owner, **changes))
        assert (answer.status, error_of(answer)) == (401, "invalid_client")

    def test_an_assertion_for_another_server_is_refused(self, owner: Owner, net: Internet) -> None:
        form = self.form(owner, client_assertion=assertion("https://other.example"))
        assert error_of(send_form("token", **form)) == "invalid_client"

    @pytest.mark.parametrize(
        "code", ["x", forged("01" * 13, tokens.CODE_PREFIX)], ids=["malformed", "forged"]
    )
    def test_a_made_up_code_causes_no_request_to_the_clients_server(
        self, code: str, owner: Owner, net: Internet
    ) -> None:
        form = exchange_form(code, client_id=DOCUMENT)
        assert error_of(send_form("token", **form)) == "invalid_grant"
        assert send_form("revoke", token=code, client_id=DOCUMENT).status == 200
        assert self.server.requests == []


@cache
def key() -> ECKey:
    return ECKey.generate_key("P-256", {"kid": "one"})


def assertion(audience: str) -> str:
    claims = {
        "iss": DOCUMENT,
        "sub": DOCUMENT,
        "aud": audience,
        "exp": int((clock.now() + timedelta(minutes=5)).timestamp()),
        "jti": tokens.generate(),
    }
    return jwt.encode({"alg": "ES256", "kid": "one"}, claims, key(), algorithms=["ES256"])


class TestRevocation:
    @pytest.mark.parametrize("name", ["access_token", "refresh_token"])
    def test_either_token_ends_the_connection(self, name: str, owner: Owner) -> None:
        tokens = connected(owner)
        answer = send_form("revoke", token=tokens[name], client_id=CLIENT, token_type_hint="x")
        assert answer.status == 200
        assert not works(tokens["access_token"])
        assert error_of(refresh(tokens["refresh_token"])) == "invalid_grant"
        assert send_form("revoke", token=tokens[name], client_id=CLIENT).status == 200

    def test_an_unknown_token_is_no_error(self, owner: Owner) -> None:
        for token in ("x", forged("01" * 13, tokens.ACCESS_PREFIX)):
            assert send_form("revoke", token=token, client_id=CLIENT).status == 200

    def test_a_request_without_a_token_or_a_client_is_refused(self) -> None:
        assert error_of(send_form("revoke", client_id=CLIENT)) == "invalid_request"
        assert error_of(send_form("revoke", token="x")) == "invalid_client"

    def test_another_client_cannot_revoke_a_token(self, owner: Owner) -> None:
        tokens = connected(owner)
        other = content(register({"redirect_uris": [REDIRECT_URI], "client_name": "Other"}))
        answer = send_form("revoke", token=tokens["access_token"], client_id=other["client_id"])
        assert error_of(answer) == "invalid_grant"
        assert works(tokens["access_token"])


@pytest.mark.parametrize("path", ["token", "revoke", "register"])
class TestPages:
    def test_pages_of_any_origin_may_call(self, path: str) -> None:
        answer = Api(None).call(
            "OPTIONS", f"/oauth/{path}", headers={"Origin": "https://a.example"}
        )
        assert answer.status == 204
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Content-Type" in answer.headers["Access-Control-Allow-Headers"]
        assert "Access-Control-Allow-Credentials" not in answer.headers

    def test_other_methods_are_refused(self, path: str) -> None:
        assert Api(None).call("GET", f"/oauth/{path}").status == 405
