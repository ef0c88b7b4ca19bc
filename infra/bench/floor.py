"""Cost of a request, compared with a bare function that does only what nothing can avoid.

It parses the event, hashes the key, validates input and result by the same models, and writes the
same body. Whole requests are counted in instructions of new processes (``bare_function``), with the
client of the database, which signs the same requests. Without a database, the same is measured as
CPU time in this process.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

import app as our_app
from chalicelib.domains.sites.operations.sites import SiteList, SiteListQuery, SiteOut
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine.listing.query import Query
from infra.bench import cold_start, our_handler
from infra.bench.bare_function import MODELS
from infra.bench.timing import cpu_ms_in_turns

FOLDER = Path(__file__).parent
CALLS = 100
"""Warm calls of one process."""
WARM = 1_000
"""Warm calls whose cost the page gives."""
LIST = "/api/projects/list"
ABOUT = f"""\
## The floor

A bare function does only what nothing can avoid: it parses the event, hashes the key, validates
input and result by the models of the operation, sends the same requests to the database, and writes
the same body. It imports only what it uses. Whole requests are counted in instructions, as above,
with the client of the database, which signs the requests; a stub answers them. Warm requests
are measured by {CALLS} after the first one.

| request | floor, times the libraries | ours, times the libraries | times the floor |
|---|---:|---:|---:|
"""
WITHOUT_DATABASE = """
Without a database, as CPU time of a warm request of ten sites in one process. Only ours looks for a
route, checks the state and the scopes of the key, sets a deadline, warns about unknown fields, and
makes the headers and the fields of the log.

| request | floor | ours | times the floor |
|---|---:|---:|---:|
"""


class _Cost(NamedTuple):
    first: float
    warm: float


def section() -> str:
    """Measure and return this section of the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        libraries = cold_start.cost(folder, "-c", cold_start.BASELINE)
        project = cold_start.packaged(folder / "project")
        costs = {kind: _costs(project, folder / "recording.json", kind) for kind in MODELS}
    rows = [
        f"| {label} {_name(kind)} | {floor / libraries:.2f} | {ours / libraries:.2f} "
        f"| {ours / floor:.2f} |"
        for label, of_label in (("First", _first), (f"{WARM:,} warm", _warm))
        for kind, costs_of_kind in costs.items()
        for floor, ours in [map(of_label, costs_of_kind)]
    ]
    return "\n".join([ABOUT + "\n".join(rows), WITHOUT_DATABASE + "\n".join(_in_process()), ""])


def _first(cost: _Cost) -> float:
    return cost.first


def _warm(cost: _Cost) -> float:
    return cost.warm * WARM


def _name(kind: str) -> str:
    return f"`{kind}`" if "/" in kind else kind


def _costs(project: Path, recording: Path, kind: str) -> tuple[_Cost, _Cost]:
    """Return the costs of the bare function and of the application."""
    ours, bare = (str(FOLDER / name) for name in ("first_answer.py", "bare_function.py"))
    cold_start.run(project, [sys.executable, ours, kind, "2", str(recording)])
    return (
        _cost(lambda calls: cold_start.cost(project, bare, kind, calls, str(recording))),
        _cost(lambda calls: cold_start.cost(project, ours, kind, calls)),
    )


def _cost(measure: Callable[[str], float]) -> _Cost:
    first, with_others = measure("1"), measure(str(1 + CALLS))
    return _Cost(first, (with_others - first) / CALLS)


class Measured(NamedTuple):
    """A call without a database: the bare function, and its event."""

    bare: Callable[[dict[str, Any]], dict[str, Any]]
    event: Callable[[], dict[str, Any]]

    def handlers(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Return both functions by the name of their column."""
        return {
            "floor": lambda: self.bare(self.event()),
            "ours": lambda: our_app.app(self.event(), None),
        }


def measured_calls() -> dict[str, Measured]:
    """Return a read and a call of a tool, by the name of their row."""
    call = {"name": our_handler.TOOL, "arguments": {}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    return {
        "read": Measured(_read, lambda: our_handler.event("GET", path=LIST, body=None)),
        "`tools/call`": Measured(
            _call, lambda: our_handler.event("POST", path="/api/mcp", body=message)
        ),
    }


def _in_process() -> Iterator[str]:
    """Yield the rows about calls without a database."""
    with our_handler.stubs():
        for name, call in measured_calls().items():
            measured = cpu_ms_in_turns(call.handlers())
            (floor, _), (ours, ratio) = measured["floor"], measured["ours"]
            yield f"| {name} | {floor:.3f} ms | {ours:.3f} ms | {ratio:.2f} |"


def _read(event: dict[str, Any]) -> dict[str, Any]:
    _require_key(event)
    query = event["multiValueQueryStringParameters"] or {}
    return _reply(_sites({name: values[-1] for name, values in query.items()}))


def _call(event: dict[str, Any]) -> dict[str, Any]:
    _require_key(event)
    message = from_json(event["body"])
    content = [{"type": "text", "text": _sites(message["params"]["arguments"]).decode()}]
    result = {"content": content, "isError": False}
    return _reply(to_json({"jsonrpc": "2.0", "id": message["id"], "result": result}))


def _require_key(event: dict[str, Any]) -> None:
    token = event["headers"]["Authorization"].partition(" ")[2]
    if our_handler.KEY.pk != f"KEY#{hashlib.sha256(token.encode()).hexdigest()}":
        raise PermissionError


def _sites(arguments: dict[str, Any]) -> bytes:
    args = SiteListQuery.model_validate(arguments)
    page = SITES.page("bench", Query(args.page, args.size, "createdAt"))
    sites = [SiteOut.from_record(site) for site in page.records]
    result = SiteList(projects=sites, **args.counted(page.total))
    return b'{"data":{"status":true,%b}}' % to_json(result, by_alias=True)[1:-1]


def _reply(body: bytes) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    return {"statusCode": 200, "headers": headers, "body": body.decode()}
