"""What the edge says of a request, and how it is known that it was the edge.

Anyone may find an origin's own address and send any header to it. So the edge adds a secret, and
nothing is believed, or answered, without it where one is configured (``EDGE_SECRET``).
"""

import hmac
from collections.abc import Mapping

from chalicelib.core.errors import ForbiddenError
from chalicelib.core.settings import settings

SECRET_HEADER = "x-origin-secret"  # noqa: S105  a name
"""CloudFront adds no headers that begin with ``X-Edge-`` (developer guide, Add custom headers)."""
VIEWER_HEADER = "x-viewer-address"
"""The visitor's IP address, which the edge sets over whatever the visitor has sent."""
HOST_HEADER = "x-forwarded-host"
"""The host that the visitor asked; the edge sets it likewise."""


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


def host(headers: Mapping[str, str]) -> str:
    """Return the host that was asked, in lower case: the edge's word behind the edge, else ours.

    CloudFront asks an origin by the origin's own host. To be believed as ``client_ip`` is.
    """
    name = headers.get(HOST_HEADER if settings().edge_secret else "host", "")
    return name.partition(":")[0].strip().rstrip(".").lower()
