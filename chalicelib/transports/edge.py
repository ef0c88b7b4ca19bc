"""What the edge tells of a request, and how it is known that it was the edge.

Anyone may find an origin's own address and send any header to it. So the edge adds a secret, and
nothing is believed, or answered, without it where one is configured (``EDGE_SECRET``).
"""

import hmac
from collections.abc import Mapping

from chalicelib.core.errors import ForbiddenError
from chalicelib.core.settings import settings

SECRET_HEADER = "x-edge-secret"  # noqa: S105  a name
VIEWER_HEADER = "x-viewer-address"
"""The visitor's IP address, which the edge sets over whatever the visitor has sent."""


def check(headers: Mapping[str, str]) -> None:
    """Refuse a request that did not come by the edge, where there is one.

    Raises:
        ForbiddenError: it lacks the secret.
    """
    secret = settings().edge_secret
    given = headers.get(SECRET_HEADER, "").encode(errors="replace")
    if secret and not hmac.compare_digest(given, secret.encode()):
        raise ForbiddenError("Call the service at its public address.")


def client_ip(headers: Mapping[str, str], peer: str) -> str:
    """Return the visitor's address: the edge's word behind the edge, else who connects.

    To be believed only once ``check`` has let the request pass.
    """
    return headers.get(VIEWER_HEADER, "").strip() if settings().edge_secret else peer
