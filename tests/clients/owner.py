"""What only an owner or the operator does: accounts, workspaces, keys and the payment account."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
PASSWORD = "correct horse"
SCOPES = "*:read,*:write,settings:read,settings:write,webhooks:read,webhooks:write"
COOKIE = re.compile(r"(__Host-session=[^;]+)")
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


def admin(command: str, *arguments: str, **options: str) -> dict[str, Any]:
    """Run a command of the operator against the running server. Return its result."""
    pairs = [word for name, value in options.items() for word in (f"--{name}", value)]
    words = [os.environ["SERVICE_PYTHON"], "-m", "infra", "admin", command, *arguments, *pairs]
    process = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert process.returncode == 0, process.stderr[-5_000:]
    result: dict[str, Any] = json.loads(process.stdout)
    return result


class Owner:
    """An account of its own with an empty workspace, and its session in the console."""

    def __init__(self) -> None:
        self.email = f"{uuid4().hex}@example.com"
        admin("create-account", email=self.email, password=PASSWORD)
        self.workspace = admin("create-workspace", owner=self.email, name="Clear Dental")
        base = os.environ["BASE_URL"]
        self._http = httpx.Client(base_url=base, headers={"Origin": base}, timeout=PATIENCE)
        self._send("/console/sign-in", email=self.email, password=PASSWORD)

    def set_up_payments(self) -> None:
        """Choose the test merchant of ``make dev`` as the one that takes payments."""
        self._send(
            f"/console/w/{self.workspace['slug']}/payment-settings",
            provider="test",
            shopId="dentist",
            secret="test_dentist",
            vatCode="1",
            currentPassword=PASSWORD,
        )

    def _send(self, path: str, **fields: str) -> None:
        page = self._request("GET", path)
        saved = self._request("POST", path, data=dict(HIDDEN.findall(page.text)) | fields)
        assert saved.status_code == 303, saved.text

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self._http.request(method, path, **options)
        # Unlike browsers, httpx sends no secure cookie to a loopback address.
        if session := COOKIE.match(response.headers.get("Set-Cookie", "")):
            self._http.headers["Cookie"] = session[1]
        return response


def new_key(workspace_id: str, *, scopes: str = SCOPES, name: str = "agency") -> str:
    """Create an API key. Return its token."""
    token: str = admin("create-key", workspace=workspace_id, name=name, scopes=scopes)["token"]
    return token
