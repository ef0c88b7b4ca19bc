"""Names of a stage's functions, and checks whether a deployment is whole."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from infra.deploy import releases
from infra.deploy.aws.store import Store
from tests.infra.conftest import Aws, Killed

BUCKET = "workspace-dev-123456789012-eu-central-1"
API, CHAT = "workspace-api-dev", "workspace-api-dev-chat-stream"
Deploy = Callable[..., dict[str, Any]]


def is_whole(aws: Aws, store: Store, result: dict[str, Any]) -> bool:
    """Whether one API, four functions and the release are there, and the lock is not."""
    functions = aws.client("lambda").list_functions()["Functions"]
    return (
        aws.apis() == [result["apiId"]]
        and len(functions) == 4
        and releases.list_releases(store)[0].id == result["release"]
        and store.get("state/lock.json") is None
    )


@contextmanager
def killed_before(aws: Aws, step: str) -> Iterator[None]:
    """Kill a deployment before one of its steps."""

    class Deadly(list[str]):
        def append(self, line: str) -> None:
            if line.startswith(step) and line.endswith("…"):
                raise Killed

    messages, aws.messages = aws.messages, Deadly()
    try:
        with pytest.raises(Killed):
            yield
    finally:
        aws.messages = messages
