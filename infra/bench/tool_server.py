"""The tool server's CPU time, beside the official SDK's server and FastMCP, and a REST read's."""

import json
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

import click

from infra.bench import ours
from infra.bench.timing import cpu_ms

ROOT = Path(__file__).parents[2]
PEERS_PYTHON = ROOT / "build" / "bench" / "bin" / "python"
METHODS = ("tools/list", "tools/call")
OURS = "ours, in the Lambda handler"
ROUNDS = 5
"""Of ours and the peers in turns: a machine is not as fast at one minute as at the next."""


def section() -> str:
    """Measure, and return the page's section."""
    rounds = []
    with ours.stubs():
        calls = {
            "tools/list": ours.call_handler("tools/list", {}),
            "tools/call": ours.call_handler("tools/call", {"name": ours.TOOL, "arguments": {}}),
            "REST": ours.get_handler("/api/projects/list"),
        }
        tools = json.loads(calls["tools/list"]()["body"])["result"]["tools"]
        given = {"definitions": tools, "text": ours.answer_text(), "tool": ours.TOOL}
        for _ in range(ROUNDS):
            mine = {name: cpu_ms(call) for name, call in calls.items()}
            rounds.append({OURS: {**mine, "version": ""}, **_peers(given)})
    rest = median(each[OURS]["REST"] for each in rounds)
    size = len(json.dumps(tools, separators=(",", ":")).encode())
    return f"""\
## Tool server, {len(tools)} tools ({size:,} bytes)

CPU time of a warm request in the handler, without sockets or a database. The peers serve the same
schemas; the called tool lists ten sites, from records in memory through a pydantic model. In turns,
the medians of {ROUNDS} rounds.

| server | version | `tools/list` | times ours | `tools/call` | times ours |
|---|---|---|---|---|---|
{chr(10).join(_row(name, rounds) for name in rounds[0])}

A warm `GET /api/projects/list` of ten sites takes {rest:.3f} ms in the same handler.
"""


def _row(name: str, rounds: list[dict[str, Any]]) -> str:
    cells = [name, rounds[0][name]["version"]]
    for method in METHODS:
        times = median(each[name][method] / each[OURS][method] for each in rounds)
        cells += [f"{median(each[name][method] for each in rounds):.3f} ms", f"{times:.1f}"]
    return f"| {' | '.join(cells)} |"


def _peers(given: dict[str, Any]) -> dict[str, Any]:
    """Return each peer's version and milliseconds, measured in their own environment."""
    if not PEERS_PYTHON.exists():
        msg = f"{PEERS_PYTHON.relative_to(ROOT)} is missing. Run make bench, which installs it."
        raise click.ClickException(msg)
    ran = subprocess.run(
        [PEERS_PYTHON, Path(__file__).with_name("peers.py")],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        msg = f"the peers failed: {ran.stderr[-2000:]}"
        raise click.ClickException(msg)
    measured: dict[str, Any] = json.loads(ran.stdout)
    return measured
