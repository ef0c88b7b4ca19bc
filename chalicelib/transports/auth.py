"""From an ``Authorization`` header to a context: one consistent read, then the key's rate limit."""

import os
from collections.abc import Mapping
from functools import cache

from chalicelib.core.errors import UnauthorizedError
from chalicelib.core.operations import Context
from chalicelib.core.ratelimit import RateLimitStatus, TokenBuckets
from chalicelib.core.scopes import expand
from chalicelib.core.settings import settings
from chalicelib.gateways.object_store import object_store
from chalicelib.store import api_keys
from chalicelib.store.unit import UnitOfWork


@cache
def key_limits() -> TokenBuckets:
    """Return the buckets of this process.

    100 requests a second and key, 200 at once, unless the environment says more.
    """
    scale = settings().rate_limit_scale
    rate = float(os.environ.get("RATE_LIMIT_PER_SECOND", "100")) * scale
    return TokenBuckets(rate, round(float(os.environ.get("RATE_LIMIT_BURST", "200")) * scale))


def bearer_token(headers: Mapping[str, str]) -> str:
    """Return the token of the ``Authorization`` header.

    Raises:
        UnauthorizedError: there is none, or not in the form ``Bearer <API_KEY>``.
    """
    value = headers.get("authorization", "")
    scheme, _, token = value.strip().partition(" ")
    if not value:
        msg = "No API key. Send the header Authorization: Bearer <API_KEY>."
        raise UnauthorizedError(msg)
    if scheme.lower() != "bearer" or not token.strip():
        msg = "The Authorization header is not of the form: Bearer <API_KEY>."
        raise UnauthorizedError(msg)
    return token.strip()


def authenticate(
    headers: Mapping[str, str], request_id: str, client_ip: str
) -> tuple[Context, RateLimitStatus]:
    """Return the caller's context and what is left of its rate limit.

    Names in ``headers`` are lower-case.

    Raises:
        UnauthorizedError: missing, malformed, unknown, revoked or expired key: one answer for all
        but the first.
        RateLimitedError: the key's bucket is empty.
    """
    key = api_keys.authenticate(bearer_token(headers))
    if key is None:
        msg = "This API key is not valid: mistyped, revoked or expired. Create one in the settings."
        raise UnauthorizedError(msg)
    allowance = key_limits().take(key.key_id)
    api_keys.touch(key)
    context = Context(
        workspace_id=key.workspace_id,
        account_id=key.account_id,
        role=key.role,
        plan=key.plan,
        scopes=expand(tuple(key.scopes)),
        key_id=key.key_id,
        request_id=request_id,
        client_ip=client_ip,
        unit=UnitOfWork(key.workspace_id, request_id, object_store),
    )
    return context, allowance
