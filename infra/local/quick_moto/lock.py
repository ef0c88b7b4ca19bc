"""The lock of moto's tables, which are not thread-safe."""
# mypy: disable-error-code="method-assign"

from threading import Lock

from moto.dynamodb import responses

LOCK = Lock()
"""Held while a request uses the tables."""


def serve_one_request_at_a_time() -> None:
    """Change moto in this process, permanently."""
    call_action = responses.DynamoHandler.call_action

    def locked(handler: responses.DynamoHandler) -> object:
        with LOCK:
            return call_action(handler)

    responses.DynamoHandler.call_action = locked
