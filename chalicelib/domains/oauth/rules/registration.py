"""Register clients without storage by ids that contain their metadata (RFC 7591, A.5.2).

There is no row, so nothing has to be limited or to expire. Clients register again for each
connection, and a client whose registration was removed would not recover. The metadata is checked
at each use, since anybody can write such an id. It needs no signature for the same reason: it says
nothing that its holder could not have registered.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from chalicelib.domains.oauth.rules import client_metadata, redirect_uris
from chalicelib.domains.oauth.rules.client_metadata import MAX_ID, Client
from chalicelib.domains.oauth.rules.errors import OAuthError

PREFIX = "dcr_"
GRANT_TYPES = ("authorization_code", "refresh_token")
RESPONSE_TYPES = ("code",)


def register(metadata: object) -> dict[str, Any]:
    """Return the response to a registration request (RFC 7591, 3.2.1).

    What the service does not use is ignored, as the RFC allows. Raises OAuthError
    ``invalid_redirect_uri`` or ``invalid_client_metadata``.
    """
    if not isinstance(metadata, Mapping):
        raise _invalid("expected a JSON object with redirect_uris")
    for field, ours in (("grant_types", GRANT_TYPES), ("response_types", RESPONSE_TYPES)):
        requested_value = metadata.get(field)
        if requested_value is not None and not (
            isinstance(requested_value, list) and ours[0] in requested_value
        ):
            msg = (
                f"{field}: expected a list that contains {ours[0]}, received "
                f"{requested_value!r:.100}"
            )
            raise _invalid(msg)
    name = metadata.get("client_name")
    if name is not None and not isinstance(name, str):
        raise _invalid("client_name: expected a string")
    try:
        uris = client_metadata.checked_uris(metadata.get("redirect_uris"))
    except ValueError as error:
        msg = f"redirect_uris: {error}."
        raise OAuthError("invalid_redirect_uri", msg) from None
    client_name = client_metadata.shown_name(name) or redirect_uris.parse(uris[0]).display_name
    client_id = _encode(client_name, uris)
    if len(client_id) > MAX_ID:
        too_long = (
            f"expected redirect_uris and client_name of at most about {MAX_ID:,} bytes together"
        )
        raise _invalid(too_long)
    return {
        "client_id": client_id,
        "client_name": client_name,
        "redirect_uris": list(uris),
        "grant_types": list(GRANT_TYPES),
        "response_types": list(RESPONSE_TYPES),
        # A client is public, whatever method it asks for.
        "token_endpoint_auth_method": "none",
    }


def read(client_id: str) -> Client:
    """Return the client of a registered id, or raise OAuthError ``invalid_client``."""
    error = OAuthError(
        "invalid_client", "This client_id is not registered. Register the client again."
    )
    if len(client_id) > MAX_ID:
        raise error
    encoded = client_id.removeprefix(PREFIX)
    try:
        data = base64.urlsafe_b64decode(encoded + "==")  # it ignores padding that is too long
        name, *uris = json.loads(data)
        valid_uris = client_metadata.checked_uris(uris)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise error from None
    if (
        client_metadata.shown_name(name) != name
        or not name
        or _encode(name, valid_uris) != client_id
    ):
        raise error
    return Client(id=client_id, name=name, redirect_uris=valid_uris)


def _encode(name: str, uris: tuple[str, ...]) -> str:
    data = json.dumps([name, *uris], ensure_ascii=False, separators=(",", ":")).encode()
    return PREFIX + base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _invalid(message: str) -> OAuthError:
    return OAuthError("invalid_client_metadata", f"{message}.")
