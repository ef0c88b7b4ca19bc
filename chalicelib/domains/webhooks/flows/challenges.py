"""Ask an address whether it wants the events of a test workspace.

Anybody can make a test workspace, so it sends events only to a receiver that has answered.
"""

from datetime import timedelta
from secrets import token_urlsafe

from pydantic_core import from_json, to_json

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import ValidationError
from chalicelib.core.limits import Limit
from chalicelib.engine import limits
from chalicelib.gateways import post
from chalicelib.gateways.public_http import FetchError

CHALLENGES = Limit("webhook-challenges", "challenges of webhooks an hour", 30, timedelta(hours=1))
TYPE = "webhook.challenge"
SECONDS = 10.0  # API Gateway ends a call after 29 seconds.
_OK = 200


def require_answer(workspace_id: str, url: str) -> None:
    """Send a random value to a URL, or raise ValidationError unless the response repeats it.

    The body of the response is the value, or a JSON object with the value as ``challenge``. Raises
    RateLimitedError after too many challenges of the workspace.
    """
    limits.take(CHALLENGES, workspace_id)
    challenge = token_urlsafe(32)
    event = {"type": TYPE, "timestamp": iso(clock.now()), "isTest": True}
    body = to_json({**event, "data": {"challenge": challenge}})
    try:
        reply = post.post(url, body, {"Content-Type": "application/json"}, timeout_seconds=SECONDS)
    except FetchError as error:
        problem = f"no response: {error.reason}"
        raise _refusal(problem) from None
    if reply.status != _OK:
        problem = f"the status {reply.status}"
        raise _refusal(problem)
    if _answer(reply.body) != challenge:
        raise _refusal("another body")


def _answer(body: bytes) -> object:
    text = body.decode(errors="replace").strip()
    try:
        answer = from_json(text)
    except ValueError:
        return text
    return answer.get("challenge") if isinstance(answer, dict) else answer


def _refusal(received: str) -> ValidationError:
    message = (
        "expected a receiver that answers the challenge of a test workspace with status 200 and "
        f"the value of data.challenge as its body, received {received}"
    )
    return ValidationError.of("url", message=message, key="challenge")
