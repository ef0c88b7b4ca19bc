"""Clients with a metadata document, and their authentication."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jws, jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from chalicelib.core import clock
from chalicelib.domains.oauth.flows import clients
from chalicelib.domains.oauth.rules.errors import OAuthError
from tests.conftest import Time
from tests.fakes.internet import Answer, Internet, Server, flood, http_response, to

pytestmark = pytest.mark.usefixtures("database", "time")
ID = "https://chatgpt.example.com/oauth/client.json"
KEYS = "https://chatgpt.example.com/oauth/keys.json"
ISSUER = "https://api.example.com"
AUDIENCES = [ISSUER, f"{ISSUER}/oauth/token"]
METADATA = {
    "client_id": ID,
    "client_name": "ChatGPT",
    "redirect_uris": ["https://chatgpt.example.com/connector/oauth/1"],
    "token_endpoint_auth_method": "private_key_jwt",
    "token_endpoint_auth_signing_alg": "RS256",
    "jwks_uri": KEYS,
}
PUBLIC_METADATA = {
    "client_id": ID,
    "client_name": "Editor",
    "redirect_uris": ["http://127.0.0.1/callback"],
}


@cache
def rsa(kid: str = "one") -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid})


@cache
def private_rsa(bits: int) -> RSAKey:
    key = generate_private_key(65_537, bits)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return RSAKey.import_key(pem, {"kid": "one"})


def published(*keys: Any) -> bytes:
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


def document(metadata: Any, **headers: str) -> Answer:
    return http_response(json.dumps(metadata).encode(), **headers)


@pytest.fixture
def server(net: Internet) -> Server:
    """The client's server, with its document and its keys."""
    server = net.serve(ID, document(METADATA))
    server.pages["/oauth/keys.json"] = http_response(published(rsa()))
    return server


def read_refused(client_id: str) -> OAuthError:
    with pytest.raises(OAuthError) as refusal:
        clients.find(client_id)
    return refusal.value


class TestDocuments:
    def test_client_has_the_metadata_of_its_document(self, server: Server) -> None:
        client = clients.find(ID)
        assert (client.id, client.name, client.host) == (ID, "ChatGPT", "chatgpt.example.com")
        assert client.redirect_uris == tuple(METADATA["redirect_uris"])
        assert client.auth_method == "private_key_jwt"

    def test_keys_of_a_wrong_type_are_left_out(self, net: Internet) -> None:
        net.serve(ID, document({**PUBLIC_METADATA, "jwks_uri": 5, "jwks": [{"kty": "RSA"}]}))
        client = clients.find(ID)
        assert (client.jwks_uri, client.jwks) == ("", None)

    def test_a_client_without_a_name_is_named_by_its_host(self, net: Internet) -> None:
        net.serve(ID, document({**PUBLIC_METADATA, "client_name": "\u200b"}))
        assert clients.find(ID).name == "chatgpt.example.com"

    @pytest.mark.parametrize(
        ("cache_control", "seconds"),
        [
            ("", 60),
            ("max-age=0", 60),
            ("no-store, max-age=900", 60),
            ("public, max-age=900", 900),
            ("max-age=9999999", 86_400),
        ],
    )
    def test_document_is_cached_for_a_minute_to_a_day(
        self, net: Internet, time: Time, cache_control: str, seconds: int
    ) -> None:
        server = net.serve(ID, document(PUBLIC_METADATA, cache_control=cache_control))
        clients.find(ID)
        time.pass_by(seconds=seconds - 1)
        clients.find(ID)
        assert len(server.requests) == 1
        time.pass_by(seconds=1)
        clients.find(ID)
        assert len(server.requests) == 2

    def test_an_error_is_not_cached(self, net: Internet) -> None:
        net.serve(ID, http_response(b"", "503 Busy"), document(PUBLIC_METADATA))
        assert read_refused(ID).error == "temporarily_unavailable"
        assert clients.find(ID).name == "Editor"

    @pytest.mark.parametrize(
        "change",
        [
            {"client_id": ID + "?"},
            {"client_id": None},
            {"client_secret": "x"},
            {"token_endpoint_auth_method": "client_secret_basic"},
            {"token_endpoint_auth_method": ["none"]},
            {"token_endpoint_auth_method": "private_key_jwt"},
            {"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "http://x.example/k"},
            {"token_endpoint_auth_method": "private_key_jwt", "jwks": [{"kty": "RSA"}]},
            {"redirect_uris": 5},
            {"redirect_uris": []},
            {"redirect_uris": ["javascript:alert(1)"]},
            {"redirect_uris": None},
        ],
    )
    def test_a_document_that_cannot_be_used_is_refused(
        self, net: Internet, change: dict[str, Any]
    ) -> None:
        net.serve(ID, document({**PUBLIC_METADATA, **change}))
        assert read_refused(ID).error == "invalid_client"

    def test_addresses_that_cannot_be_used_are_left_out(self, net: Internet) -> None:
        usable = PUBLIC_METADATA["redirect_uris"]
        uris = ["unknown://oauth", "http://inside.example/", 5, *usable, "ms-msdt:/id"]
        net.serve(ID, document({**PUBLIC_METADATA, "redirect_uris": uris}))
        assert clients.find(ID).redirect_uris == tuple(usable)

    def test_addresses_are_named_if_none_can_be_used(self, net: Internet) -> None:
        change = {"redirect_uris": ["unknown://oauth"]}
        net.serve(ID, document({**PUBLIC_METADATA, **change}))
        assert "unknown" in str(read_refused(ID))

    def test_the_methods_of_authentication_are_named(self, net: Internet) -> None:
        change = {"token_endpoint_auth_method": "client_secret_basic"}
        net.serve(ID, document({**PUBLIC_METADATA, **change}))
        assert "expected none or private_key_jwt, received" in read_refused(ID).message

    @pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 5_000, b"null"])
    def test_document_must_be_a_json_object(self, net: Internet, body: bytes) -> None:
        net.serve(ID, http_response(body))
        assert read_refused(ID).error == "invalid_client"

    @pytest.mark.parametrize(
        ("answer", "error"),
        [
            (to("https://chatgpt.example.com/other.json"), "temporarily_unavailable"),
            (to("http://169.254.169.254/latest"), "invalid_client"),
            (http_response(b"", "404 Not Found"), "temporarily_unavailable"),
            (http_response(b" " * 5_121), "invalid_client"),
            (flood(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 1_000), "invalid_client"),
        ],
    )
    def test_failing_server_is_requested_once(
        self, net: Internet, answer: Answer, error: str
    ) -> None:
        server = net.serve(ID, answer)
        assert read_refused(ID).error == error
        assert len(server.requests) == len(net.connections) == 1

    def test_a_document_of_5_kilobytes_is_read(self, net: Internet) -> None:
        body = json.dumps(PUBLIC_METADATA).encode()
        net.serve(ID, http_response(body + b" " * (5_120 - len(body))))
        assert clients.find(ID).name == "Editor"

    @pytest.mark.parametrize(
        "client_id",
        [
            "",
            "claude",
            "http://chatgpt.example.com/oauth/client.json",
            "HTTPS://chatgpt.example.com/oauth/client.json",
            "https://chatgpt.example.com",
            "https://chatgpt.example.com/",
            "https://chatgpt.example.com?x",
            "https://chatgpt.example.com/?x",
            "https://user@chatgpt.example.com/client.json",
            "https://chatgpt.example.com/client.json#",
            "https://chatgpt.example.com/a/../client.json",
            "https://chatgpt.example.com/./client.json",
            "https://chatgpt.example.com/%2e%2E/client.json",
            "https://chatgpt.example.com\\@other.example.com/client.json",
            "https://127.0.0.1/client.json",
            "https://[::1]/client.json",
            "https://169.254.169.254/client.json",
            "https://localhost/client.json",
            "https://inside.example.com/client.json",
            "https://chatgpt.example.com/" + "x" * 1_500,
        ],
    )
    def test_unsafe_client_id_is_refused_before_any_connection(
        self, net: Internet, client_id: str
    ) -> None:
        net.names["inside.example.com"] = ["10.0.0.1"]
        net.names["chatgpt.example.com"] = ["93.184.216.34"]
        assert read_refused(client_id).error == "invalid_client"
        assert net.connections == []

    def test_the_refusal_says_what_is_wrong_with_the_address(self) -> None:
        message = read_refused("https://chatgpt.example.com\\x/client.json").message
        assert message.startswith("client_id: expected a URL without backslashes")


def assertion(key: Any = None, algorithm: str = "RS256", **changes: Any) -> str:
    """Sign an assertion. A claim of None is left out."""
    key = key or rsa()
    now = int(clock.now().timestamp())
    claims = {
        "iss": ID,
        "sub": ID,
        "aud": ISSUER,
        "jti": "1",
        "exp": now + 300,
        "iat": now,
    } | changes
    header = {"alg": algorithm, "kid": key.kid} if key.kid else {"alg": algorithm}
    present_claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(header, present_claims, key, algorithms=[algorithm])


def authenticate(signed: str, **form: str) -> None:
    fields: Mapping[str, str] = {
        "client_assertion_type": clients.ASSERTION_TYPE,
        "client_assertion": signed,
    } | form
    clients.authenticate(clients.find(ID), fields, audiences=AUDIENCES)


def unauthenticated(signed: str, **form: str) -> OAuthError:
    with pytest.raises(OAuthError) as refusal:
        authenticate(signed, **form)
    return refusal.value


@pytest.mark.usefixtures("server")
class TestAssertions:
    @pytest.mark.parametrize("audience", [*AUDIENCES, [AUDIENCES[1], "https://x.example"]])
    def test_an_assertion_authenticates_the_client(self, audience: Any) -> None:
        authenticate(assertion(aud=audience))

    def test_an_assertion_is_used_once(self) -> None:
        signed = assertion()
        authenticate(signed)
        assert unauthenticated(signed).error == "invalid_client"
        authenticate(assertion(jti="2"))

    def test_an_assertion_cannot_be_used_again_until_it_has_expired(self, time: Time) -> None:
        signed = assertion(exp=int(clock.now().timestamp()) + 600)
        authenticate(signed)
        for _ in range(11):
            time.pass_by(minutes=1)
            assert unauthenticated(signed).error == "invalid_client"

    @pytest.mark.parametrize(
        "change",
        [
            {"iss": "https://other.example.com/client.json"},
            {"sub": "https://other.example.com/client.json"},
            {"iss": None},
            {"sub": None},
            {"aud": "https://other.example.com"},
            {"aud": [{}]},
            {"aud": {ISSUER: 1}},
            {"aud": None},
            {"jti": None},
            {"jti": ""},
            {"jti": 1},
            {"jti": "x" * 256},
            {"exp": None},
            {"exp": "soon"},
            {"exp": True},
            {"exp": 1e300},
            {"exp": 0},
        ],
    )
    def test_an_assertion_with_wrong_claims_is_refused(self, change: dict[str, Any]) -> None:
        assert unauthenticated(assertion(**change)).error == "invalid_client"

    @pytest.mark.parametrize(
        ("claim", "seconds"),
        [("exp", -31), ("exp", 631), ("iat", 31), ("nbf", 31)],
    )
    def test_an_assertion_of_another_time_is_refused(self, claim: str, seconds: int) -> None:
        moment: datetime = clock.now() + timedelta(seconds=seconds)
        assert unauthenticated(assertion(**{claim: int(moment.timestamp())}))

    def test_a_signature_by_another_key_is_refused(self) -> None:
        other = RSAKey.generate_key(2048, {"kid": "one"})
        assert unauthenticated(assertion(other)).error == "invalid_client"

    @pytest.mark.filterwarnings("ignore:Key size")
    @pytest.mark.parametrize("pad", [b"", b"\0" * 128])
    @pytest.mark.parametrize("bits", [1024, 2040])
    def test_an_rsa_key_of_less_than_2048_bits_is_refused(
        self, bits: int, pad: bytes, server: Server
    ) -> None:
        key = private_rsa(bits)
        weak = key.as_dict(private=False)
        modulus = urlsafe_b64decode(str(weak["n"]) + "==")
        weak["n"] = urlsafe_b64encode(pad + modulus).decode().rstrip("=")
        server.pages["/oauth/keys.json"] = http_response(json.dumps({"keys": [weak]}).encode())
        refusal = unauthenticated(assertion(key))
        assert refusal.error == "invalid_client"
        assert "2048 bits or more" in refusal.message

    def test_a_shared_secret_and_no_signature_are_refused(self) -> None:
        secret = OctKey.generate_key(256, {"kid": "one"})
        assert unauthenticated(assertion(secret, "HS256")).error == "invalid_client"
        _, payload, _ = assertion().split(".")
        header = jws.serialize_compact({"alg": "HS256"}, b"", secret).split(".")[0]
        for head in ("eyJhbGciOiJub25lIn0", header):
            assert unauthenticated(f"{head}.{payload}.").error == "invalid_client"

    def test_another_algorithm_than_the_document_names_is_refused(self) -> None:
        assert unauthenticated(assertion(algorithm="PS256")).error == "invalid_client"

    @pytest.mark.parametrize("signed", ["", "x", "a.b.c", "....", "é.é.é", "x" * 8_193])
    def test_malformed_assertion_is_refused(self, signed: str) -> None:
        assert unauthenticated(signed).error == "invalid_client"

    def test_another_kind_of_assertion_is_refused(self) -> None:
        assert unauthenticated(assertion(), client_assertion_type="saml").error == "invalid_client"


class TestKeys:
    def test_new_key_is_found_immediately(self, server: Server) -> None:
        authenticate(assertion())
        server.pages["/oauth/keys.json"] = http_response(published(rsa(), rsa("two")))
        authenticate(assertion(rsa("two"), jti="2"))

    def test_unknown_keys_cause_at_most_one_more_request_a_minute(self, server: Server) -> None:
        for number in range(5):
            unauthenticated(assertion(rsa("two"), jti=str(number)))
        assert server.paths.count("/oauth/keys.json") == 2

    @pytest.mark.parametrize(
        ("key", "algorithm"),
        [
            (ECKey.generate_key("P-256", {"kid": "e"}), "ES256"),
            (OKPKey.generate_key("Ed25519", {"kid": "o"}), "Ed25519"),
            (rsa(), "PS512"),
        ],
    )
    def test_keys_of_a_document_itself_are_used(
        self, net: Internet, key: Any, algorithm: str
    ) -> None:
        metadata = {**METADATA, "jwks_uri": None, "token_endpoint_auth_signing_alg": None}
        net.serve(ID, document({**metadata, "jwks": json.loads(published(key))}))
        authenticate(assertion(key, algorithm))

    @pytest.mark.parametrize("keys", [{}, {"keys": 1}, {"keys": [1, {}, {"kty": "RSA"}]}, []])
    def test_keys_that_cannot_be_used_are_refused(self, server: Server, keys: Any) -> None:
        server.pages["/oauth/keys.json"] = document(keys)
        assert unauthenticated(assertion()).error == "invalid_client"

    def test_unreadable_keys_are_a_temporary_error(self, server: Server) -> None:
        server.pages["/oauth/keys.json"] = http_response(b"", "500 Oops")
        assert unauthenticated(assertion()).error == "temporarily_unavailable"

    def test_a_public_client_needs_no_keys(self, net: Internet) -> None:
        net.serve(ID, document(PUBLIC_METADATA))
        clients.authenticate(clients.find(ID), {}, audiences=AUDIENCES)
