"""Failures of OAuth, under the error codes of its RFCs."""

from typing import Literal

from chalicelib.core.errors import AppError

# Codes of RFC 6749 (4.1.2.1 and 5.2), RFC 7591 (3.2.2) and RFC 8707 (2).
ErrorCode = Literal[
    "access_denied",
    "invalid_client",
    "invalid_client_metadata",
    "invalid_grant",
    "invalid_redirect_uri",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
]

# HTTP statuses other than 400 (RFC 6749, 5.2).
_STATUSES: dict[ErrorCode, int] = {
    "invalid_client": 401,
    "server_error": 500,
    "temporarily_unavailable": 503,
}


class OAuthError(AppError):
    """A request of an OAuth client is refused. ``error`` is the code of RFC 6749."""

    status = 400
    code = "oauth_error"

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.status = _STATUSES.get(error, 400)  # type: ignore[misc]  # OAuth has one class
