"""crewai-tools, in an environment of its own: it needs other versions than the other frameworks."""

from typing import Any

from crewai_tools import MCPServerAdapter

from tests.clients.client import Outcome, Server, Tool


class CrewaiTools:
    """crewai-tools: the tools that an agent of CrewAI receives.

    It sends null for each argument that the model left out.
    """

    package = "crewai-tools"
    failure = "the message only"
    checks_arguments = True

    def __init__(self, server: Server) -> None:
        self.parameters = {
            "url": server.url,
            "transport": "streamable-http",
            "headers": server.headers,
        }

    def tools(self) -> list[Tool]:
        with MCPServerAdapter(self.parameters) as tools:
            return [Tool(tool.name, tool.args_schema.model_json_schema()) for tool in tools]

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        with MCPServerAdapter(self.parameters, tool) as (one,):
            text = one.run(**arguments)
        return Outcome('"status":false' in text, text)
