"""Render an operation's example as calls that run unchanged, in curl, Python, JavaScript and MCP.

They read the key from the variable ``API_KEY``. Words in capitals are placeholders for ids.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from chalicelib.transports.api_docs.model import OperationDoc

_STREAM = "text/event-stream"
_INDENT = "    "
_SHORT = 60  # Longest value, in characters, that is written on one line.
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)  # of a field that JavaScript takes without quotes
_EVENTS = """
let rest = "";
for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + piece).split("\\n");
  rest = lines.pop();
  for (const line of lines) if (line.startsWith("data: ")) console.log(JSON.parse(line.slice(6)));
}"""


def curl(operation: OperationDoc) -> str:
    """Return the call as a shell command."""
    path, query, body = operation.call
    flags = " -N" if operation.answer_type == _STREAM else ""
    flags += " -G" if query else ""
    flags += "" if operation.method == "GET" else f" -X {operation.method}"
    lines = [f"curl{flags} {_shell_quote(operation.base_url + _fill_path(operation.path, path))}"]
    if operation.needs_key:
        lines.append('-H "Authorization: Bearer $API_KEY"')
    texts = {name: query_text(value) for name, value in query.items()}
    lines += [f"--data-urlencode {_shell_quote(f'{name}={text}')}" for name, text in texts.items()]
    if body:
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"-d {_shell_quote(_format(body, _JSON))}")
    return " \\\n  ".join(lines)


def query_text(value: object) -> str:
    """Return a value as a query string's value, with booleans as ``true`` and ``false``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def python(operation: OperationDoc) -> str:
    """Return the call as a Python program with ``requests``."""
    path, query, body = operation.call
    url = operation.base_url + _fill_path(operation.path, path)
    arguments = [f'"{url}"']
    if operation.needs_key:
        arguments.append('headers={"Authorization": f"Bearer {os.environ[\'API_KEY\']}"}')
    if query:
        texts = {n: query_text(v) if isinstance(v, bool) else v for n, v in query.items()}
        arguments.append(f"params={_format(texts, _PYTHON, 1)}")
    if body:
        arguments.append(f"json={_format(body, _PYTHON, 1)}")
    streamed = operation.answer_type == _STREAM
    arguments.append("stream=True, timeout=300" if streamed else "timeout=30")
    inside = "".join(f"{_INDENT}{argument},\n" for argument in arguments)
    call = f"requests.{operation.method.lower()}(\n{inside})"
    imports = "import os\n\nimport requests" if operation.needs_key else "import requests"
    if streamed:
        return (
            f"import json\n\n{imports}\n\nresponse = {call}\nfor line in response.iter_lines():\n"
            f'{_INDENT}if line.startswith(b"data: "):\n{_INDENT * 2}print(json.loads(line[6:]))'
        )
    printed = (
        'response.json()["data"]'
        if operation.answer_type == "application/json"
        else ("response.text")
    )
    return f"{imports}\n\nresponse = {call}\nprint({printed})"


def javascript(operation: OperationDoc) -> str:
    """Return the call as a JavaScript module, for Node.js and without a key also for browsers."""
    path, query, body = operation.call
    url = operation.base_url + _fill_path(operation.path, path)
    address, before = f'"{url}"', ""
    if query:
        address = f"`{url}?${{query}}`"
        before = f"const query = new URLSearchParams({_format(query, _JAVASCRIPT)});\n"
    headers = {"Authorization": "`Bearer ${process.env.API_KEY}`"} if operation.needs_key else {}
    headers |= {"Content-Type": '"application/json"'} if body else {}
    options = {} if operation.method == "GET" else {"method": f'"{operation.method}"'}
    options |= {"headers": _format(headers, _EXPRESSIONS, 1)} if headers else {}
    options |= {"body": f"JSON.stringify({_format(body, _JAVASCRIPT, 1)})"} if body else {}
    lines = "".join(f"  {name}: {value},\n" for name, value in options.items())
    arguments = f"{address}, {{\n{lines}}}" if options else address
    call = f"{before}const response = await fetch({arguments});"
    if operation.answer_type == _STREAM:
        return f"{call}\n{_EVENTS}"
    is_json = operation.answer_type == "application/json"
    result = "(await response.json()).data" if is_json else "await response.text()"
    return f"{call}\nconsole.log({result});"


def tool_call(operation: OperationDoc) -> str | None:
    """Return the call as a message to the tool server, or None without a tool."""
    if operation.tool is None:
        return None
    params = {"name": operation.tool, "arguments": dict(operation.example)}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return _format(call, _JSON)


def answer(operation: OperationDoc) -> str:
    """Return the recorded response to the call."""
    if operation.answer is None:
        return ""
    return (
        operation.answer if isinstance(operation.answer, str) else _format(operation.answer, _JSON)
    )


def _fill_path(path: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return path


def _shell_quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _literal(value: object) -> str:
    return _quoted(value) if isinstance(value, str) else repr(value)


def _field(name: str) -> str:
    return name if _NAME.fullmatch(name) else _quoted(name)


class _Style(NamedTuple):
    scalar: Callable[[Any], str]
    indent: str
    key: Callable[[str], str] = _quoted
    last: str = ","  # after the last part, if each has a line
    padding: str = ""  # inside of the braces of an object on one line


_JSON = _Style(_quoted, "  ", last="")
_PYTHON = _Style(_literal, "    ")
_JAVASCRIPT = _Style(_quoted, "  ", _field, padding=" ")
_EXPRESSIONS = _JAVASCRIPT._replace(scalar=str)


def _format(value: Any, style: _Style, depth: int = 0) -> str:  # noqa: ANN401  any JSON value
    if not isinstance(value, Mapping | list) or not value:
        return "{}" if value == {} else "[]" if value == [] else style.scalar(value)
    inner = style.indent * (depth + 1)
    if isinstance(value, Mapping):
        opened, closed, padding = "{", "}", style.padding
        members = value.items()
        parts = [f"{style.key(n)}: {_format(member, style, depth + 1)}" for n, member in members]
    else:
        opened, closed, padding = "[", "]", ""
        parts = [_format(member, style, depth + 1) for member in value]
    flat = opened + padding + ", ".join(parts) + padding + closed
    if len(flat) <= _SHORT and "\n" not in flat:
        return flat
    lines = ",\n".join(inner + part for part in parts)
    return f"{opened}\n{lines}{style.last}\n{style.indent * depth}{closed}"
