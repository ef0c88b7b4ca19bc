"""The client that presents a code or a token."""

from chalicelib.domains.identity.store import connections
from chalicelib.domains.oauth.flows import clients
from chalicelib.domains.oauth.rules import registration
from chalicelib.domains.oauth.rules.clients import Client
from chalicelib.domains.oauth.rules.errors import OAuthError


def client_of(token: str, prefixes: tuple[str, ...], client_id: str) -> Client:
    """Return the client of a request that presents a code or a token.

    A metadata document is requested only for a token of a connection with that client. Otherwise
    anybody could make this service send requests to any server.

    Raises:
        OAuthError: ``invalid_client``: there is no such client. ``invalid_grant``: the token
            belongs to no connection of the client.
    """
    if client_id.startswith(registration.PREFIX) or not client_id.startswith("https://"):
        return clients.find(client_id)
    connection = connections.find_by_token(token, *prefixes)
    if connection is None or not connection.is_of(client_id):
        msg = (
            "The code or token is unknown, or was issued to another client. Connect the app again."
        )
        raise OAuthError("invalid_grant", msg)
    return clients.find(client_id)
