"""Headers that the edge (CloudFront) adds to a request, and the proof that the edge added them.

Anyone may find the origin's own address and send any header there. So the edge adds a secret
(``EDGE_SECRET``). Where one is configured, requests without it are refused. While the secret is
replaced, the former one is accepted as well.
"""

import hmac
from collections.abc import Mapping

from chalicelib.core.errors import ForbiddenError
from chalicelib.core.settings import settings

# Not ``X-Edge-…``: CloudFront cannot add such headers (developer guide, Add custom headers).
SECRET_HEADER = "x-origin-secret"  # noqa: S105  a header's name
# The visitor's IP address. The edge overwrites any value that the visitor sent.
VIEWER_HEADER = "x-viewer-address"
# The host that the visitor requested. The edge overwrites any other value.
HOST_HEADER = "x-forwarded-host"


def check(headers: Mapping[str, str]) -> None:
    """Raise ForbiddenError for a request that bypassed the edge, if an edge is configured."""
    accepted = settings().edge_secrets
    received = headers.get(SECRET_HEADER, "").encode(errors="replace")
    # Each one is compared, so that the time does not depend on which one matches.
    matches = [hmac.compare_digest(received, secret.encode()) for secret in accepted]
    if accepted and not any(matches):
        raise ForbiddenError(
            "This URL does not accept calls. Use the public URL of the service.",
            key="not_public_url",
        )


def client_ip(headers: Mapping[str, str], peer: str) -> str:
    """Return the visitor's IP address: the edge's header behind an edge, else the peer's address.

    The value is trustworthy only after ``check``.
    """
    return headers.get(VIEWER_HEADER, "").strip() if settings().edge_secret else peer


def host(headers: Mapping[str, str]) -> str:
    """Return the requested host without its port, in lower case. Call ``check`` first."""
    return authority(headers).partition(":")[0].rstrip(".")


def authority(headers: Mapping[str, str]) -> str:
    """Return the requested host and port, in lower case. Call ``check`` first."""
    # CloudFront calls an origin by the origin's own host name.
    return headers.get(HOST_HEADER if settings().edge_secret else "host", "").strip().lower()
