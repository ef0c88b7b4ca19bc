"""``server.json``, as the schema of the registry of MCP servers requires it (2025-12-11)."""

import json
import re

import pytest
from click.testing import CliRunner

from chalicelib import VERSION
from infra.operator.registry_entry import entry, server_json


def test_the_entry_leads_to_the_tool_server() -> None:
    entry_document = entry("https://api.example.com")
    assert entry_document["name"] == "com.example.api/workspace-automation"
    assert entry_document["version"] == VERSION
    (remote,) = entry_document["remotes"]
    assert (remote["type"], remote["url"]) == (
        "streamable-http",
        "https://api.example.com/api/mcp",
    )
    (header,) = remote["headers"]
    assert (header["name"], header["isSecret"], header["isRequired"]) == (
        "Authorization",
        True,
        False,
    )


def test_the_entry_keeps_the_limits_of_the_schema() -> None:
    entry_document = entry("https://api.example.com", "com.example/workspace")
    assert set(entry_document) == {
        *("$schema", "name", "title", "description", "version", "websiteUrl", "icons", "remotes")
    }
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry_document["name"])
    assert 3 <= len(entry_document["name"]) <= 200
    assert 1 <= len(entry_document["title"]) <= 100
    assert 1 <= len(entry_document["description"]) <= 100
    assert len(entry_document["version"]) <= 255
    (icon,) = entry_document["icons"]
    assert icon["src"].startswith("https://")
    assert icon["mimeType"] in {"image/png", "image/jpeg", "image/svg+xml", "image/webp"}
    assert icon["sizes"] == ["any"]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://api.example.com", None),
        ("https://localhost", None),
        ("https://x.execute-api.eu-central-1.amazonaws.com/prod", None),
        ("api.example.com", None),
        ("https://api.example.com", "workspace"),
        ("https://api.example.com", "com.example/a/b"),
        ("https://api.example.com", "com.example/" + "x" * 200),
    ],
)
def test_a_server_that_cannot_be_listed_is_refused(url: str, name: str | None) -> None:
    with pytest.raises(ValueError, match=r"^expected .* received"):
        entry(url, name)


def test_the_command_prints_the_entry_or_what_was_expected() -> None:
    outcome = CliRunner().invoke(server_json, ["--url", "https://api.example.com/"])
    assert json.loads(outcome.stdout) == entry("https://api.example.com")
    outcome = CliRunner().invoke(server_json, ["--url", "http://localhost:8000"])
    assert outcome.exit_code == 1
    assert "Error: Expected a base URL such as https://api.example.com" in outcome.output
