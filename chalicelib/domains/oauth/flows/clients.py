"""Find and authenticate OAuth clients."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from chalicelib.core import clock
from chalicelib.domains.oauth.rules import client_metadata, registration
from chalicelib.domains.oauth.rules.client_metadata import Client
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.domains.oauth.rules.resources import SIGNATURES
from chalicelib.domains.oauth.store import assertions
from chalicelib.engine.cache import cached
from chalicelib.gateways.fetch import Fetched, fetch
from chalicelib.gateways.public_http import FetchError, UpstreamError

MAX_DOCUMENT_BYTES = 5 * 1024  # draft-ietf-oauth-client-id-metadata-document, 6.6
MAX_KEYS_BYTES = 20 * 1024
SECONDS = 3.0  # for a document: a user waits for this request
# Bounds of the time for which documents are cached, whatever their headers say.
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(days=1)

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LONGEST_ASSERTION = timedelta(minutes=10)
LEEWAY = timedelta(seconds=30)  # difference between the clocks of a client and of this service
MAX_ASSERTION = 8_192  # characters
MAX_JTI = 255
MIN_RSA_BITS = 2048  # shortest RSA key that signs assertions (RFC 7518, 3.3)
KEY_TYPES = frozenset({"EC", "OKP", "RSA"})


def find(client_id: str) -> Client:
    """Return a client.

    Its metadata document is requested unless it is cached. Raises OAuthError: ``invalid_client`` if
    it does not exist or its metadata cannot be used, ``temporarily_unavailable`` if its document
    cannot be requested now.
    """
    if client_id.startswith(registration.PREFIX):
        return registration.read(client_id)
    if len(client_id) > client_metadata.MAX_ID or not client_id.startswith("https://"):
        msg = "client_id: expected the id of a registered client, or the URL of its metadata."
        raise OAuthError("invalid_client", msg)
    client_metadata.check_document_url(client_id)
    return client_metadata.from_document(
        client_id, _document("client", url=client_id, max_bytes=MAX_DOCUMENT_BYTES)
    )


def authenticate(client: Client, form: Mapping[str, str], *, audiences: Sequence[str]) -> None:
    """Authenticate a client at an endpoint.

    Public clients have nothing to prove. ``audiences`` are the issuer and the URL of the endpoint:
    the values that an assertion may name as ``aud`` (RFC 7523, 3). Raises OAuthError:
    ``invalid_client`` if the assertion is missing, wrong or used before,
    ``temporarily_unavailable`` if the client's keys cannot be requested now.
    """
    if client.auth_method == "none":
        return
    if form.get("client_assertion_type") != ASSERTION_TYPE:
        msg = f"expected client_assertion_type={ASSERTION_TYPE} with a client_assertion"
        raise _client_error(msg)
    claims = _verified(client, form.get("client_assertion", ""))
    expires = _checked_claims(client, claims, audiences)
    if not assertions.use(client.id, jti=claims["jti"], expires=expires + LEEWAY):
        raise _client_error(
            "client_assertion: expected an assertion that was not used before; sign a new one "
            "with another jti"
        )


def _verified(client: Client, assertion: str) -> dict[str, Any]:
    # Imported late: few requests need it, and it loads the cryptography library.
    from joserfc import jws, jwt
    from joserfc.errors import JoseError

    if not 0 < len(assertion) <= MAX_ASSERTION:
        msg = f"expected a client_assertion of at most {MAX_ASSERTION:,} characters"
        raise _client_error(msg)
    # A client that declares its algorithm accepts no other one (RFC 8725, 3.1).
    allowed = [client.signing_alg] if client.signing_alg else SIGNATURES
    try:
        header = jws.extract_compact(assertion.encode()).headers()
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in SIGNATURES or algorithm not in allowed:
            msg = f"expected a signature with {', '.join(allowed)}, received {algorithm!r}"
            raise _client_error(msg)
        keys = _keys(client, key_id if isinstance(key_id, str) else None)
        claims: dict[str, Any] = jwt.decode(assertion, keys, algorithms=[str(algorithm)]).claims
    except (JoseError, ValueError, TypeError, KeyError) as error:
        msg = f"the assertion cannot be verified ({type(error).__name__})"
        raise _client_error(msg) from None
    return claims


def _checked_claims(
    client: Client, claims: Mapping[str, Any], audiences: Sequence[str]
) -> datetime:
    now = clock.now()
    if not claims.get("iss") == claims.get("sub") == client.id:
        raise _client_error("expected iss and sub to be the client_id")
    audience = claims.get("aud")
    if not set(audiences) & set([audience] if isinstance(audience, str) else _texts(audience)):
        msg = f"expected aud to be {audiences[0]}"
        raise _client_error(msg)
    times = {name: _moment(claims.get(name)) for name in ("exp", "iat", "nbf")}
    expires = times["exp"]
    if expires is None or not now - LEEWAY < expires <= now + LONGEST_ASSERTION + LEEWAY:
        raise _client_error("expected exp within the next 10 minutes")
    if any(time is not None and time > now + LEEWAY for time in (times["iat"], times["nbf"])):
        raise _client_error("expected iat and nbf in the past")
    # The id and the expiry let a second use of the assertion be recognized (RFC 7523, 3).
    jti = claims.get("jti")
    if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI:
        msg = f"expected jti to be a string of 1 to {MAX_JTI} characters"
        raise _client_error(msg)
    return expires


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _moment(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _keys(client: Client, key_id: str | None) -> Any:  # noqa: ANN401  joserfc is imported late
    from joserfc.jwk import KeySet

    document: Mapping[str, Any] | None = client.jwks
    if document is None:
        document = _document("client-keys", url=client.jwks_uri, max_bytes=MAX_KEYS_BYTES)
        if key_id and key_id not in {key.get("kid") for key in _usable(document)}:
            # Cached under another kind for a minute, so that wrong ids do not cause requests.
            document = _document(
                "client-keys-again", url=client.jwks_uri, max_bytes=MAX_KEYS_BYTES, longest=SHORTEST
            )
    usable = [
        {name: value for name, value in key.items() if name not in {"use", "key_ops"}}
        for key in _usable(document)
        if key_id is None or key.get("kid") == key_id
    ]
    if not usable:
        msg = (
            f"the client publishes no key with this kid; RSA keys have {MIN_RSA_BITS} bits or more"
        )
        raise _client_error(msg)
    return KeySet.import_key_set({"keys": usable})


def _usable(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    keys = document.get("keys")
    return [
        key
        for key in (keys if isinstance(keys, list) else [])
        if isinstance(key, dict)
        and key.get("kty") in KEY_TYPES
        and key.get("use", "sig") == "sig"
        and (key["kty"] != "RSA" or _modulus_bits(key.get("n")) >= MIN_RSA_BITS)
    ]


def _modulus_bits(modulus: object) -> int:
    try:
        data = urlsafe_b64decode(f"{modulus}==")
    except ValueError:
        return 0
    return int.from_bytes(data).bit_length()


def _document(
    kind: str, *, url: str, max_bytes: int, longest: timedelta = LONGEST
) -> dict[str, Any]:
    # Errors are not cached.
    def request() -> list[Any]:
        response = _request(url, max_bytes)
        try:
            return [_json_object(response.body), response.fresh_for]
        except ValueError as error:
            msg = f"The document at {url} {error}."
            raise OAuthError("invalid_client", msg) from None

    def life(answer: list[Any]) -> timedelta:
        return min(max(timedelta(seconds=answer[1]), SHORTEST), longest)

    document: dict[str, Any] = cached(f"oauth-{kind}", key=url, ttl=life, produce=request)[0]
    return document


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004  one error for whatever is wrong
    return value


def _request(url: str, max_bytes: int) -> Fetched:
    try:
        return fetch(
            url,
            max_bytes=max_bytes,
            timeout_seconds=SECONDS,
            accept="application/json",
            # A redirect would let another host speak for the client's id.
            redirects=0,
        )
    except UpstreamError as error:
        msg = f"The document at {url} cannot be read: {error.reason}."
        raise OAuthError("temporarily_unavailable", msg) from None
    except FetchError as error:
        msg = f"The document at {url} cannot be used: {error.reason}."
        raise OAuthError("invalid_client", msg) from None


def _client_error(what: str) -> OAuthError:
    return OAuthError("invalid_client", f"Client authentication failed: {what}.")
