"""The part of the proof with each failure of the database and gateways at each call site.

The attack is in ``tests/proof``, because it uses the examples and the database of the tests.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from infra.proof.parts import KEPT, ROOT, Figures, Part

SEED = 20_261_125
"""Decides the order of the attacks, and so which ones a short run makes."""
_ATTACK = "tests/proof/attack_error_paths.py"
_SHOWN = 10
LOG = KEPT / "error-paths.log"
"""The output of the last attack."""


class PathWithoutEndError(Exception):
    """A request did not end as it should."""


def run(minutes: float) -> Figures:
    """Attack for some minutes.

    Raises:
        PathWithoutEndError: a request broke a promise. The message names the first ones.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        variables = {"SEED": str(SEED), "MINUTES": str(minutes), "FIGURES": str(file)}
        environment = os.environ | {f"PROOF_{name}": value for name, value in variables.items()}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:logging", "--timeout=0", _ATTACK]
        with LOG.open("w") as log:
            process = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False
            )
        if process.returncode:
            reasons = [line for line in LOG.read_text().splitlines() if line.startswith("E  ")]
            msg = "\n".join([*reasons[:_SHOWN], f"The whole output: {LOG}"])
            raise PathWithoutEndError(msg)
        figures: Figures = json.loads(file.read_text())
    if broken := figures["broken"]:
        first = "\n".join(f"{path}\n  {why}" for path, why in list(broken.items())[:_SHOWN])
        msg = f"{len(broken)} error paths, seed {SEED}:\n{first}"
        raise PathWithoutEndError(msg)
    return figures


def section(figures: Figures) -> str:
    """Return the promise, the attack and its figures."""
    worst = figures["worstSeconds"]
    return f"""\
**Guarantee.** If the database or a gateway fails, the request still ends within
{float(min(worst, key=float)):g} seconds. The response is documented, the memory does not grow, and
the log contains no secret. A client can send the failed request again.

**Attack.** A run without faults records each call site: a place in the code that calls the
database or a gateway, with the lines that lead to it. Then each possible failure is raised at
each call site, once in one run and at every call in another. The failures are: a refused,
throttled, conflicting or invalid request, each condition of a transaction, a full partition, a
lost response, unprocessed keys, a time-out, a closed connection, and each error that a gateway
declares. Waiting uses simulated time. After a single failure, the same request with the same
idempotency key must succeed. The test also follows each chain of causes to its end: if an error
is its own cause, logging it uses all memory.

{_table(figures)}

Responses: {_counts(figures["statuses"])}.

The test finds planted defects: an error that is its own cause, retries after the deadline or
without end, a key in the log, the message of an internal error in a response, an undocumented
response, and a repeated call that is not recognized (`tests/proof/test_error_paths.py`).

**Found and fixed.**

- The chat's function had no right to read a hold after a lost response. Only AWS would have shown
  this.
- Requests to S3 ignored the deadline and took up to 33 seconds each.
- Requests to CloudFront had no time limit, and blocked a worker until Lambda ended it.
- Some lists requested unprocessed keys again without a pause and without end.
- A webhook run sent an event repeatedly if the result could not be stored.
"""


def _table(figures: Figures) -> str:
    tried = f"{figures['pairs']:,} of {figures['allPairs']:,}"
    rows: dict[str, Any] = {
        "Kinds of requests": figures["requestKinds"],
        "Call sites": f"{figures['sites']:,}, {figures['gatewaySites']} of them of gateways",
        "Pairs of a call site and a failure, once or always": f"{tried}, seed {figures['seed']}",
        "Requests sent": f"{figures['requests']:,}",
        "Longest request, of 29 simulated seconds": f"{figures['worstSeconds'].get('29', 0):g}",
        "Longest chat or job, of 300": f"{figures['worstSeconds'].get('300', 0):g}",
        "Largest growth of memory in a request, of 50 MB": f"{figures['worstMegabytes']:g} MB",
        "Broken promises": len(figures["broken"]),
    }
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines])


def _counts(statuses: dict[str, int]) -> str:
    by_frequency = sorted(statuses.items(), key=lambda row: -row[1])
    return ", ".join(f"{kind}: {count:,}" for kind, count in by_frequency)


PART = Part(
    name="error-paths",
    title="Every error path ends",
    minutes=10,
    minutes_in_ci=1.5,
    run=run,
    section=section,
)
