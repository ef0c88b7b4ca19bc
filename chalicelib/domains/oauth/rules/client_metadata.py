"""Check the metadata of AI applications, from a document at their id or from the id itself."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import unquote, urlsplit

from chalicelib.core.text import BIDI_CONTROL, one_line
from chalicelib.domains.oauth.rules import redirect_uris
from chalicelib.domains.oauth.rules.errors import OAuthError
from chalicelib.lib import public_urls

AuthMethod = Literal["none", "private_key_jwt"]
AUTH_METHODS: tuple[AuthMethod, ...] = ("none", "private_key_jwt")
MAX_NAME = 100
MAX_REDIRECT_URIS = 20
MAX_ID = 1_500  # characters
# Characters without width, by which one name could look like another.
_UNSEEN = re.compile("[\u00ad\u034f\u180e\u200b-\u200d\u2060-\u2064\ufeff]")


@dataclass(frozen=True, slots=True)
class Client:
    """A client. ``jwks_uri`` or ``jwks`` has the keys of the method ``private_key_jwt``."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    auth_method: AuthMethod = "none"
    signing_alg: str = ""
    jwks_uri: str = ""
    jwks: Mapping[str, Any] | None = None

    @property
    def host(self) -> str:
        """The host that the client's document is on, or an empty string."""
        return urlsplit(self.id).hostname or ""

    @property
    def only_redirect_uri(self) -> str | None:
        """The redirect URI of a request that names none (RFC 6749, 3.1.2.3), if there is one."""
        return self.redirect_uris[0] if len(self.redirect_uris) == 1 else None

    def allows(self, redirect_uri: str) -> bool:
        return any(redirect_uris.matches(uri, requested=redirect_uri) for uri in self.redirect_uris)


def check_document_url(url: str) -> None:
    """Check that the URL of a metadata document may be the id of a client.

    Raises OAuthError ``invalid_client``. Source: draft-ietf-oauth-client-id-metadata-document, 3
    (Client Identifier).
    """
    try:
        public_urls.parse(url)
    except ValueError as error:
        msg = f"client_id: {error}."
        raise _client_error(msg) from None
    path = url.removeprefix("https://").partition("/")[2]
    segments = unquote(path.partition("?")[0]).split("/")
    if "#" in url:
        raise _client_error("client_id: expected a URL without a fragment.")
    if not path or path.startswith("?") or {".", ".."} & set(segments):
        raise _client_error(
            "client_id: expected a URL with a path that contains no . or .. segments."
        )


def from_document(url: str, document: Mapping[str, Any]) -> Client:
    """Return the client of a metadata document, or raise OAuthError ``invalid_client``."""
    if document.get("client_id") != url:
        msg = (
            f"The document at {url}: expected client_id to be the URL of the document, received "
            "another value."
        )
        raise _client_error(msg)
    if "client_secret" in document:
        msg = (
            f"The document at {url}: expected no client_secret, because the document is public. "
            "Remove the client_secret."
        )
        raise _client_error(msg)
    method = document.get("token_endpoint_auth_method", "none")
    if method not in AUTH_METHODS:
        known_methods = " or ".join(AUTH_METHODS)
        msg = f"token_endpoint_auth_method: expected {known_methods}, received {method!r:.100}."
        raise _client_error(msg)
    jwks_uri, jwks = document.get("jwks_uri"), document.get("jwks")
    if method == "private_key_jwt" and not (isinstance(jwks, Mapping) or _is_url(jwks_uri)):
        msg = f"The document at {url}: expected jwks_uri or jwks, received neither."
        raise _client_error(msg)
    listed_uris = document.get("redirect_uris")
    # A document may list addresses for other services, such as a scheme that is unknown here.
    usable = (
        [uri for uri in listed_uris if _is_usable(uri)] if isinstance(listed_uris, list) else None
    )
    try:
        uris = checked_uris(usable or listed_uris)
    except ValueError as error:
        msg = f"The document at {url} cannot be used: redirect_uris: {error}."
        raise _client_error(msg) from None
    return Client(
        id=url,
        name=shown_name(document.get("client_name")) or str(urlsplit(url).hostname),
        redirect_uris=uris,
        auth_method=cast("AuthMethod", method),
        signing_alg=str(document.get("token_endpoint_auth_signing_alg") or ""),
        jwks_uri=jwks_uri if isinstance(jwks_uri, str) else "",
        jwks=jwks if isinstance(jwks, Mapping) else None,
    )


def checked_uris(uris: object) -> tuple[str, ...]:
    """Return a client's redirect URIs, or raise ValueError if there is none, or one is unusable."""
    if not isinstance(uris, Sequence) or isinstance(uris, str | bytes) or not uris:
        raise ValueError("expected a list of at least one URI")
    if len(uris) > MAX_REDIRECT_URIS:
        msg = f"expected at most {MAX_REDIRECT_URIS} URIs, received {len(uris)}"
        raise ValueError(msg)
    for uri in uris:
        if not isinstance(uri, str):
            raise ValueError("expected strings")  # noqa: TRY004  one error for whatever is wrong
        redirect_uris.parse(uri)
    return tuple(uris)


def shown_name(name: object) -> str:
    """Return a client's name for display, as one line of printable characters."""
    if not isinstance(name, str):
        return ""
    visible = _UNSEEN.sub("", BIDI_CONTROL.sub("", name))
    return one_line("".join(c if c.isprintable() else " " for c in visible), MAX_NAME)


def _is_usable(uri: object) -> bool:
    try:
        return isinstance(uri, str) and bool(redirect_uris.parse(uri))
    except ValueError:
        return False


def _is_url(value: object) -> bool:
    return isinstance(value, str) and value.startswith("https://")


def _client_error(message: str) -> OAuthError:
    return OAuthError("invalid_client", message)
