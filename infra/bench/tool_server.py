"""CPU time of the tool server, compared with the official SDK, FastMCP and a REST read."""

import json
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

import click

from infra.bench import our_handler
from infra.bench.timing import cpu_ms

ROOT = Path(__file__).parents[2]
PEERS_PYTHON = ROOT / "build" / "bench" / "bin" / "python"
METHODS = ("tools/list", "tools/call")
OURS = "ours, in the Lambda handler"
ROUNDS = 5
"""Rounds in which all servers are measured in turn, because the speed of a machine changes."""


def section() -> str:
    """Measure and return this section of the page."""
    rounds = []
    with our_handler.stubs():
        calls = {
            "tools/list": our_handler.call_handler("tools/list", {}),
            "tools/call": our_handler.call_handler(
                "tools/call", {"name": our_handler.TOOL, "arguments": {}}
            ),
            "REST": our_handler.get_handler("/api/projects/list"),
        }
        tools = json.loads(calls["tools/list"]()["body"])["result"]["tools"]
        workload = {
            "definitions": tools,
            "text": our_handler.answer_text(),
            "tool": our_handler.TOOL,
        }
        for _ in range(ROUNDS):
            measured = {name: cpu_ms(call) for name, call in calls.items()}
            rounds.append({OURS: {**measured, "version": ""}, **_peers(workload)})
    rest_times = median(sample[OURS]["REST"] for sample in rounds)
    return f"""\
## Tool server, {len(tools)} tools

CPU time of a warm request in the handler, without sockets or a database. All servers have the same
schemas. The called tool lists ten sites, from records in memory through a pydantic model. The
servers are measured in turn. Values are the medians of {ROUNDS} rounds.

| server | version | `tools/list` | times ours | `tools/call` | times ours |
|---|---|---|---|---|---|
{chr(10).join(_row(name, rounds) for name in rounds[0])}

A warm `GET /api/projects/list` of ten sites takes {rest_times:.3f} ms in the same handler.
"""


def _row(name: str, rounds: list[dict[str, Any]]) -> str:
    cells = [name, rounds[0][name]["version"]]
    for method in METHODS:
        times = median(sample[name][method] / sample[OURS][method] for sample in rounds)
        cells += [f"{median(sample[name][method] for sample in rounds):.3f} ms", f"{times:.1f}"]
    return f"| {' | '.join(cells)} |"


def _peers(workload: dict[str, Any]) -> dict[str, Any]:
    """Return the version and CPU milliseconds of each peer, measured in their own environment."""
    if not PEERS_PYTHON.exists():
        msg = f"{PEERS_PYTHON.relative_to(ROOT)} is missing. Run make bench, which installs it."
        raise click.ClickException(msg)
    process = subprocess.run(
        [PEERS_PYTHON, Path(__file__).with_name("peers.py")],
        input=json.dumps(workload),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        msg = f"the peers failed: {process.stderr[-2000:]}"
        raise click.ClickException(msg)
    measured: dict[str, Any] = json.loads(process.stdout)
    return measured
