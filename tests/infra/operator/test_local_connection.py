"""The operator's commands use the data and the settings of ``make dev``."""

import json
import os
from pathlib import Path
from unittest.mock import patch

import pytest

from chalicelib.core import deadline, retry
from chalicelib.engine import connection
from infra.local import workarounds
from infra.operator.admin import connect


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore what ``workarounds.be_patient`` sets."""
    for module, name in (
        (retry, "turn"),
        (retry, "HIGH_CONTENTION_SECONDS"),
        (deadline, "REQUEST_SECONDS"),
        (connection, "READ_SECONDS"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))


def test_commands_have_the_settings_of_the_local_service(tmp_path: Path) -> None:
    state = {"endpoint": "http://127.0.0.1:1", "port": 8123}
    (tmp_path / "dev.json").write_text(json.dumps(state))
    with patch.dict(os.environ, {"DATA_DIR": str(tmp_path)}, clear=True):
        connect(None)
        assert os.environ["AWS_ENDPOINT_URL_DYNAMODB"] == state["endpoint"]
        assert os.environ["OBJECT_STORE"] == f"file://{tmp_path}/objects"
        assert os.environ["PUBLIC_URL"] == "http://127.0.0.1:8123"
        assert os.environ["WEBHOOKS_TO_LOOPBACK"] == "1"
        assert connection.READ_SECONDS == workarounds.DATABASE_SECONDS
