"""The AI frameworks of the first environment, each used through its public API.

No framework reaches a real model. Its model is replaced where the framework allows it: a local
HTTP endpoint for both clients of Gemini, a custom model for openai-agents and pydantic-ai.
The tools of LangChain and mcp-use are called directly, as their agents call them.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import agents
import httpx
from agents.items import ModelResponse as AgentsResponse
from agents.mcp import MCPServerStreamableHttp
from google import genai
from google.ai.generativelanguage_v1beta import GenerateContentRequest
from google.genai import types as genai_types
from google.protobuf import json_format
from langchain_core.messages import ToolMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_use import MCPClient
from mcp_use.agents.adapters.langchain_adapter import LangChainAdapter
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.clients.client import JAVASCRIPT, Outcome, Server, Tool
from tests.fakes import JsonServer, ReceivedRequest
from tests.support.patience import PATIENCE

PROMPT = "Call the tool."


def protobuf_violation(body: dict[str, Any]) -> str:
    """Return the error of Google's protobuf for a request, or an empty string.

    The API reads types in any case, but this parser does not.
    """

    def upper(node: Any) -> Any:
        if isinstance(node, list):
            return list(map(upper, node))
        if not isinstance(node, dict):
            return node
        kind = node.get("type")
        kinds = {"type": kind.upper()} if isinstance(kind, str) else {}
        return {name: upper(value) for name, value in node.items()} | kinds

    known = {
        name: upper(body[name]) for name in ("contents", "tools", "toolConfig") if name in body
    }
    try:
        json_format.ParseDict(known, GenerateContentRequest.pb(GenerateContentRequest()))
    except json_format.ParseError as error:
        return str(error)
    return ""


def gemini_violations(node: Any, path: str) -> Iterator[str]:
    """Yield each part of the declared functions that the Gemini API refuses, with its location."""
    if isinstance(node, list):
        for number, item in enumerate(node):
            yield from gemini_violations(item, f"{path}[{number}]")
    if isinstance(node, dict):
        for name, value in node.items():
            yield from gemini_violations(value, f"{path}.{name}")
        for number, value in enumerate(node["enum"] if isinstance(node.get("enum"), list) else ()):
            if not isinstance(value, str):
                yield f"Invalid value at '{path}.enum[{number}]' (TYPE_STRING), {value}"
        if node.get("type") == "STRING" and node.get("format") not in {None, "enum", "date-time"}:
            yield f"{path}.format: only 'enum' and 'date-time' are supported for STRING type"


class FakeGemini(JsonServer):
    """A fake Gemini API that requests one function call, then ends the conversation."""

    def __init__(self, function: str, arguments: dict[str, Any]) -> None:
        super().__init__()
        self.call = {"name": function, "args": arguments}
        self.bodies: list[dict[str, Any]] = []

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:
        self.bodies.append(json.loads(request.body))
        violations = list(gemini_violations(self.bodies[-1]["tools"], "tools"))
        if violation := protobuf_violation(self.bodies[-1]):
            violations.append(violation)
        if violations:
            status = "INVALID_ARGUMENT"
            return 400, {"error": {"code": 400, "message": "\n".join(violations), "status": status}}
        answered = any("functionResponse" in part for part in self.parts())
        part = {"text": "Done."} if answered else {"functionCall": self.call}
        content = {"role": "model", "parts": [part]}
        return 200, {"candidates": [{"content": content, "finishReason": "STOP"}]}

    def parts(self) -> list[dict[str, Any]]:
        """Return the parts of the conversation in the last request."""
        return [part for content in self.bodies[-1]["contents"] for part in content["parts"]]


class GoogleGenai:
    """google-genai with automatic function calling over an MCP session."""

    package = "google-genai"
    failure = "`error` in place of `result` in the function response"
    checks_arguments = False

    def __init__(self, server: Server) -> None:
        self.server = server

    def tools(self) -> list[Tool]:
        declared = self._run("svc_list_workspaces", {}).bodies[0]["tools"]
        return [
            Tool(function["name"], function["parameters"])
            for tool in declared
            for function in tool["functionDeclarations"]
        ]

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        (answer,) = (
            part["functionResponse"]["response"]
            for part in self._run(tool, arguments).parts()
            if "functionResponse" in part
        )
        (kind, result), *_ = answer.items()
        return Outcome(kind == "error", result["content"][0]["text"])

    def _run(self, tool: str, arguments: dict[str, Any]) -> FakeGemini:
        with FakeGemini(tool, arguments) as gemini:
            asyncio.run(self._generate(gemini.url))
            return gemini

    async def _generate(self, url: str) -> None:
        options = genai_types.HttpOptions(base_url=url)
        client = genai.Client(api_key="none", http_options=options)
        async with (
            httpx.AsyncClient(headers=self.server.headers, timeout=PATIENCE) as http,
            streamable_http_client(self.server.url, http_client=http) as streams,
            ClientSession(*streams[:2]) as session,
            client.aio as aio,
        ):
            await session.initialize()
            # The SDK copies a GenerateContentConfig together with its sessions, which fails.
            # It uses a dictionary without copying it.
            await aio.models.generate_content(
                model="gemini-2.5-flash", contents=PROMPT, config={"tools": [session]}
            )


class LangchainGemini:
    """@langchain/google-genai, the JavaScript client of Gemini that n8n uses."""

    package = "@langchain/google-genai"
    failure = "`error` in place of `result` in the function response"
    checks_arguments = False

    def __init__(self, server: Server) -> None:
        self.server = server

    def tools(self) -> list[Tool]:
        (declared,) = self._run("svc_list_workspaces", {}).bodies[0]["tools"]
        return [
            Tool(function["name"], function.get("parameters", {}))
            for function in declared["functionDeclarations"]
        ]

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        (answer,) = (
            part["functionResponse"]["response"]
            for part in self._run(tool, arguments).parts()
            if "functionResponse" in part
        )
        failed = "error" in answer
        return Outcome(failed, answer["error"]["details"] if failed else answer["result"])

    def _run(self, tool: str, arguments: dict[str, Any]) -> FakeGemini:
        with FakeGemini(tool, arguments) as gemini:
            variables = {
                "SERVER_URL": self.server.url,
                "API_KEY": self.server.key,
                "GEMINI_URL": gemini.url,
            }
            run_script("gemini.mjs", variables)
            return gemini


def run_script(script: str, variables: dict[str, str], *arguments: Path) -> str:
    """Run a script of the JavaScript clients, and return its output."""
    run = subprocess.run(
        ["node", JAVASCRIPT / script, *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


class ScriptedModel(agents.Model):
    """A model of openai-agents that calls one tool, then ends the run."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool, self.arguments = tool, json.dumps(arguments)
        self.offered: list[Tool] = []

    async def get_response(self, *, tools: Any, **request: Any) -> AgentsResponse:
        self.offered = [
            Tool(tool.name, tool.params_json_schema, strict=tool.strict_json_schema)
            for tool in tools
        ]
        item: Any
        if any(item.get("type") == "function_call_output" for item in request["input"]):
            text = ResponseOutputText(text="Done.", type="output_text", annotations=[])
            item = ResponseOutputMessage(
                id="1", content=[text], role="assistant", status="completed", type="message"
            )
        else:
            item = ResponseFunctionToolCall(
                call_id="1", name=self.tool, arguments=self.arguments, type="function_call"
            )
        return AgentsResponse(output=[item], usage=agents.Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


class OpenaiAgents:
    """openai-agents, with strict schemas for tools whose schemas can be converted."""

    package = "openai-agents"
    failure = "the message; `is_error` is set for the application"
    checks_arguments = False

    def __init__(self, server: Server) -> None:
        self.server = server

    def tools(self) -> list[Tool]:
        model = ScriptedModel("svc_list_workspaces", {})
        asyncio.run(self._run(model))
        return model.offered

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        items = asyncio.run(self._run(ScriptedModel(tool, arguments)))
        (output,) = (item for item in items if isinstance(item, agents.ToolCallOutputItem))
        return Outcome(bool((output.custom_data or {})["is_error"]), output.output["text"])

    async def _run(self, model: ScriptedModel) -> list[Any]:
        async with MCPServerStreamableHttp(
            {"url": self.server.url, "headers": self.server.headers},
            client_session_timeout_seconds=60,
            custom_data_extractor=lambda result: {"is_error": result.is_error},
        ) as connected:
            agent = agents.Agent(
                name="tester",
                model=model,
                mcp_servers=[connected],
                mcp_config={"convert_schemas_to_strict": True},
            )
            config = agents.RunConfig(tracing_disabled=True)
            result = await agents.Runner.run(agent, PROMPT, run_config=config)
            return result.new_items


class Langchain:
    """langchain-mcp-adapters: the tools that a LangChain or LangGraph agent receives."""

    package = "langchain-mcp-adapters"
    failure = 'a tool message with `status="error"`'
    checks_arguments = False

    def __init__(self, server: Server) -> None:
        connection = {"transport": "streamable_http", "url": server.url, "headers": server.headers}
        self.client = MultiServerMCPClient({"workspace": connection})

    def tools(self) -> list[Tool]:
        tools = asyncio.run(self.client.get_tools())
        return [Tool(tool.name, tool.tool_call_schema) for tool in tools]

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        message = asyncio.run(self._call(tool, arguments))
        return Outcome(message.status == "error", message.content[0]["text"])

    async def _call(self, name: str, arguments: dict[str, Any]) -> ToolMessage:
        (tool,) = (tool for tool in await self.client.get_tools() if tool.name == name)
        call = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
        message: ToolMessage = await tool.ainvoke(call)
        return message


class PydanticAi:
    """pydantic-ai with an MCP toolset."""

    package = "pydantic-ai-slim"
    failure = 'a retry prompt: `outcome="retried"`'
    checks_arguments = False

    def __init__(self, server: Server) -> None:
        self.server = server

    def tools(self) -> list[Tool]:
        tools: list[Tool] = []

        def reply(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            tools.extend(
                Tool(tool.name, tool.parameters_json_schema) for tool in info.function_tools
            )
            return ModelResponse(parts=[TextPart("Done.")])

        self._run(reply)
        return tools

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        outcomes: list[Outcome] = []

        def reply(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
            last = messages[-1].parts[-1]
            if not isinstance(last, ToolReturnPart):
                return ModelResponse(parts=[ToolCallPart(tool, arguments)])
            text = last.model_response_str(wrap_if_error=False)
            outcomes.append(Outcome(failed=last.outcome == "retried", text=text))
            return ModelResponse(parts=[TextPart("Done.")])

        self._run(reply)
        return outcomes[0]

    def _run(self, reply: Any) -> None:
        toolset = MCPToolset(self.server.url, headers=self.server.headers)
        agent = Agent(FunctionModel(reply), toolsets=[toolset])
        asyncio.run(self._enter(agent))

    @staticmethod
    async def _enter(agent: Agent) -> None:
        async with agent:
            await agent.run(PROMPT)


class McpUse:
    """mcp-use: the tools that its agent receives.

    It sends null for each argument that the model left out.
    """

    package = "mcp-use"
    failure = "the message inside a description of its own error"
    checks_arguments = True

    def __init__(self, server: Server) -> None:
        # Without "auth", it signs in with OAuth, even where no key is needed.
        where = {"url": server.url, "auth": server.key or None}
        self.configuration = {"mcpServers": {"workspace": where}}

    def tools(self) -> list[Tool]:
        offered: list[Tool] = asyncio.run(self._run(self._schemas))
        return offered

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        async def invoke(tools: list[Any]) -> Any:
            (one,) = (candidate for candidate in tools if candidate.name == tool)
            return await one.ainvoke(arguments)

        result = asyncio.run(self._run(invoke))
        failed = isinstance(result, dict)
        return Outcome(failed, result["details"] if failed else result)

    @staticmethod
    async def _schemas(tools: list[Any]) -> list[Tool]:
        return [Tool(tool.name, tool.args_schema.model_json_schema()) for tool in tools]

    async def _run(self, use: Callable[[list[Any]], Awaitable[Any]]) -> Any:
        client = MCPClient.from_dict(self.configuration)
        try:
            adapter = LangChainAdapter()
            await adapter.create_tools(client)
            return await use(adapter.tools)
        finally:
            await client.close_all_sessions()


class PythonSdk:
    """The official Python SDK."""

    package = "mcp"

    def __init__(self, server: Server) -> None:
        self.server = server

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        return asyncio.run(self._call(tool, arguments))

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        async with (
            streamable_http_client(self.server.url) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            await session.initialize()
            result: Any = await session.call_tool(tool, arguments)
            return Outcome(result.isError, result.content[0].text)


class TypescriptSdk:
    """The official TypeScript SDK."""

    package = "@modelcontextprotocol/sdk"
    arguments: tuple[Path, ...] = ()

    def __init__(self, server: Server) -> None:
        self.server = server

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        with TemporaryDirectory() as folder:
            variables = {
                "SERVER_URL": self.server.url,
                "TOOL": tool,
                "ARGUMENTS": json.dumps(arguments),
                "MCP_REMOTE_CONFIG_DIR": folder,
            }
            output = run_script("sdk.mjs", variables, *self.arguments)
        return Outcome(**json.loads(output))


class McpRemote(TypescriptSdk):
    """mcp-remote, which passes the messages of a client with standard input on to a server."""

    package = "mcp-remote"
    arguments = (JAVASCRIPT / "node_modules" / "mcp-remote" / "dist" / "proxy.js",)


SDKS = [PythonSdk, TypescriptSdk, McpRemote]
"""Clients without a model."""
FRAMEWORKS = [GoogleGenai, LangchainGemini, McpUse, OpenaiAgents, Langchain, PydanticAi]
