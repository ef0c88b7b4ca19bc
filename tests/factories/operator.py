"""The operator's command line."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from click.testing import CliRunner, Result

from chalicelib.domains.identity.store import api_keys, workspaces
from infra.operator.admin import admin
from tests.conftest import call_operator

LIST = "/api/projects/list"


@dataclass
class Operator:
    """Runs the operator's commands."""

    def invoke(self, *words: str) -> Result:
        return CliRunner().invoke(admin, words)

    def run(self, *words: str) -> dict[str, Any]:
        """Run a command that must succeed, and return its output."""
        result = self.invoke(*words)
        assert result.exit_code == 0, (result.output, result.exception)
        assert result.stdout.count("\n") == 1
        printed: dict[str, Any] = json.loads(result.stdout)
        return printed

    def run_failing(self, *words: str) -> str:
        """Run a command that must fail, and return its error line."""
        result = self.invoke(*words)
        assert result.exit_code == 1, (result.output, result.exception)
        assert result.stdout == ""
        assert result.stderr.endswith("\n")
        line = result.stderr[:-1]
        assert line
        assert "\n" not in line
        assert "Traceback" not in line
        return line

    def create_account(self, email: str, **more: str) -> dict[str, Any]:
        options = [word for name, value in more.items() for word in (f"--{name}", value)]
        return self.run("create-account", "--email", email, "--password", "long enough", *options)

    def create_key(self, workspace: str, scopes: str = "*:read,*:write") -> dict[str, Any]:
        words = ("--workspace", workspace, "--name", "A key", "--scopes", scopes)
        return self.run("create-key", *words)

    def set_plan(self, workspace: str, plan: str) -> dict[str, Any]:
        return self.run("set-plan", "--workspace", workspace, "--plan", plan)


def seed_keys(
    monkeypatch: pytest.MonkeyPatch, workspace: str, count: int, expires: datetime | None = None
) -> list[api_keys.ApiKeyRow]:
    """Create keys without counting the existing ones, which would be slow."""
    home = workspaces.get(workspace)
    with monkeypatch.context() as patched:
        patched.setattr(api_keys, "read_all", lambda _: [])
        return [
            call_operator(
                "create_key",
                workspaceId=home.id,
                name="x",
                scopes=["*:read"],
                **({"expires": expires.isoformat()} if expires else {}),
            )
            for _ in range(count)
        ]
