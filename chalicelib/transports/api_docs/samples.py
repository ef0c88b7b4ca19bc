"""Render an operation's example as calls that run unchanged, in curl, Python and MCP.

They read the key from the variable ``API_KEY``. Words in capitals are placeholders for ids.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from chalicelib.transports.api_docs.model import OperationDoc

_STREAM = "text/event-stream"
_INDENT = "    "
_SHORT = 60  # Longest value, in characters, that is written on one line.


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
        lines.append(f"-d {_shell_quote(_json(body))}")
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
        arguments.append(f"params={_python(texts, 1)}")
    if body:
        arguments.append(f"json={_python(body, 1)}")
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


def tool_call(operation: OperationDoc) -> str | None:
    """Return the call as a message to the tool server, or None without a tool."""
    if operation.tool is None:
        return None
    params = {"name": operation.tool, "arguments": dict(operation.example)}
    return _json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def answer(operation: OperationDoc) -> str:
    """Return the recorded response to the call."""
    if operation.answer is None:
        return ""
    return operation.answer if isinstance(operation.answer, str) else _json(operation.answer)


def _fill_path(path: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return path


def _shell_quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _json(value: object) -> str:
    return _format(value, 0, lambda scalar: json.dumps(scalar, ensure_ascii=False), "  ", last="")


def _python(value: object, depth: int) -> str:
    def scalar(value: object) -> str:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)

    return _format(value, depth, scalar, _INDENT, last=",")


def _format(value: Any, depth: int, scalar: Any, indent: str, *, last: str) -> str:  # noqa: ANN401  any JSON value, and its formatter
    if not isinstance(value, Mapping | list) or not value:
        return "{}" if value == {} else "[]" if value == [] else str(scalar(value))
    inner = indent * (depth + 1)
    if isinstance(value, Mapping):
        opened, closed = "{}"
        parts = [
            f"{scalar(name)}: {_format(member, depth + 1, scalar, indent, last=last)}"
            for name, member in value.items()
        ]
    else:
        opened, closed = "[]"
        parts = [_format(member, depth + 1, scalar, indent, last=last) for member in value]
    flat = opened + ", ".join(parts) + closed
    if len(flat) <= _SHORT and "\n" not in flat:
        return flat
    lines = ",\n".join(inner + part for part in parts)
    return f"{opened}\n{lines}{last}\n{indent * depth}{closed}"
