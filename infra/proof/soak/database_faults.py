"""Faults of the requests that the service sends to DynamoDB."""

import json
from collections import Counter
from threading import Lock
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from infra.proof.soak.dice import dice

NOWHERE = "http://nowhere"
_LOST = "soak_answer_lost"
"""Name in a request's context that marks a response to be lost."""
_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"})


class DatabaseFaults:
    """Lets a share of the requests fail, from 0 to 1.

    ``throttled``, ``conflict`` and ``unreachable`` requests are not carried out. A request whose
    response is ``lost`` is carried out, and ends like one that times out, but immediately. Faults
    take the place of a response, so botocore repeats none of these requests.
    """

    def __init__(self) -> None:
        self.share = 0.0
        self.made: Counter[str] = Counter()
        self.requests = 0
        self._dice = dice("database")
        self._lock = Lock()

    def install(self, client: Any) -> None:  # noqa: ANN401  botocore has no types
        """Apply to all requests of a client."""
        client.meta.events.register_first("before-call.dynamodb", self._before_call)
        client.meta.events.register_last("after-call.dynamodb", self._after_call)

    def _choose(self, operation: str) -> str | None:
        with self._lock:
            self.requests += 1
            if self._dice.random() >= self.share:
                return None
            kinds = ["throttled", "unreachable", "lost"]
            kind = self._dice.choice([*kinds, "conflict"] if operation in _WRITES else kinds)
            self.made[kind] += 1
            return kind

    def _before_call(
        self,
        model: Any,  # noqa: ANN401  as above
        params: dict[str, Any],
        *,
        context: dict[str, Any],
        **_: object,
    ) -> tuple[SimpleNamespace, dict[str, Any]] | None:
        match self._choose(model.name):
            case "throttled":
                return _refusal({"Error": _error("ProvisionedThroughputExceededException")})
            case "conflict":
                return _refusal(_conflict(model.name, params))
            case "unreachable":
                raise EndpointConnectionError(endpoint_url=NOWHERE)
            case "lost":
                context[_LOST] = True
        return None

    @staticmethod
    def _after_call(context: dict[str, Any], **_: object) -> None:
        if context.pop(_LOST, False):
            raise ReadTimeoutError(endpoint_url=NOWHERE)


def _refusal(parsed: dict[str, Any]) -> tuple[SimpleNamespace, dict[str, Any]]:
    return SimpleNamespace(status_code=400), {
        **parsed,
        "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {}},
    }


def _error(code: str) -> dict[str, str]:
    return {"Code": code, "Message": "a fault of the soak"}


def _conflict(operation: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the refusal of a write because another transaction holds one of its rows."""
    if operation != "TransactWriteItems":
        return {"Error": _error("TransactionConflictException")}
    rows = len(json.loads(params["body"])["TransactItems"])
    reasons = [{"Code": "TransactionConflict"}, *[{"Code": "None"}] * (rows - 1)]
    return {"Error": _error("TransactionCanceledException"), "CancellationReasons": reasons}
