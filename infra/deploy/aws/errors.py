"""Explains errors of AWS, with advice to the operator."""

from botocore import exceptions

EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
UNKNOWN_KEY = {
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403"}

NO_CREDENTIALS = "There are no AWS credentials. Sign in (aws sso login), or set AWS_PROFILE."
EXPIRED_CREDENTIALS = "The AWS credentials have expired. Sign in again (aws sso login)."
NO_REGION = "No AWS region is chosen. Give --region, or set AWS_REGION."


def code(error: exceptions.ClientError) -> str:
    """Return AWS's code of an error, such as ``AccessDenied``."""
    return str(error.response.get("Error", {}).get("Code", ""))


def explain(error: Exception) -> str | None:
    """Return an explanation and advice for an AWS SDK error, or None if the error is not known."""
    if isinstance(error, exceptions.ClientError):
        return _describe_refusal(error)
    if isinstance(error, exceptions.ProfileNotFound):
        return f"{error}. Set AWS_PROFILE to one that ~/.aws/config has."
    if isinstance(error, (exceptions.EndpointConnectionError, exceptions.ConnectTimeoutError)):
        return f"AWS does not answer ({error}). Is the network up, and the region a real one?"
    return next((says for kind, says in _SAYS.items() if isinstance(error, kind)), None)


_SAYS: dict[type[Exception], str] = {
    exceptions.NoCredentialsError: NO_CREDENTIALS,
    exceptions.PartialCredentialsError: NO_CREDENTIALS,
    exceptions.NoRegionError: NO_REGION,
    exceptions.TokenRetrievalError: EXPIRED_CREDENTIALS,
    exceptions.UnauthorizedSSOTokenError: EXPIRED_CREDENTIALS,
    exceptions.CredentialRetrievalError: EXPIRED_CREDENTIALS,
}


def _describe_refusal(error: exceptions.ClientError) -> str:
    name = code(error)
    if name in EXPIRED:
        return EXPIRED_CREDENTIALS
    if name in UNKNOWN_KEY:
        return f"AWS does not know these credentials ({name}). Sign in, or choose an AWS_PROFILE."
    message = error.response.get("Error", {}).get("Message", "")
    if name in DENIED:
        return f"These credentials may not call {error.operation_name}: {message or name}"
    return f"AWS refused {error.operation_name} ({name}): {message}"
