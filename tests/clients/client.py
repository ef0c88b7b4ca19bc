"""What the tests expect of a client, in each environment of ``make test-clients``."""

import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Server:
    """The tool server under test. The tools of a booking page need no key."""

    url: str
    key: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers that a client is configured with."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}


@dataclass(frozen=True)
class Tool:
    """A tool as the framework offers it to its model.

    ``strict`` is true if the model must follow the schema, in frameworks that have such a mode.
    """

    name: str
    schema: dict[str, Any]
    strict: bool = False


@dataclass(frozen=True)
class Outcome:
    """The result of a tool call as the framework passes it to its model.

    ``failed`` is the framework's own flag for a failed call.
    """

    failed: bool
    text: str

    @property
    def data(self) -> dict[str, Any]:
        """The object inside the envelope."""
        data: dict[str, Any] = json.loads(self.text)["data"]
        return data


class Framework(Protocol):
    """A framework connected to the tool server."""

    package: str
    failure: str
    """How the model can see that a call failed. The table shows this text."""
    checks_arguments: bool
    """Whether it refuses wrong arguments, and drops unknown ones, before it calls the server."""

    def tools(self) -> list[Tool]:
        """Return the tools that the framework offers to its model."""

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Let the model call a tool, and return the result that the model receives."""


JAVASCRIPT = Path(__file__).parents[2] / "build" / "clients-js"
"""Where make installs the JavaScript clients, if there is npm."""


def javascript_versions() -> dict[str, str]:
    """Return the versions of the JavaScript clients."""
    package = json.loads((Path(__file__).parent / "js" / "package.json").read_text())
    versions: dict[str, str] = package["dependencies"]
    return versions


def version_of(package: str) -> str:
    """Return the version of a framework, from Python or from npm."""
    return javascript_versions().get(package) or metadata.version(package)
