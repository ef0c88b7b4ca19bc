"""Start a fresh local server, and run a command.

Usage: ``python -m tests.support.with_server [--within S] COMMAND…``.

The server is started as by ``make dev`` with its demo, on a free port and with its own data folder.
Rate limits are off. Photos and barcodes come from fake services. The command
receives the server's URL in ``BASE_URL``, the demo's key in ``API_KEY``, its port and folder, and
the Python that runs the operator's commands in ``SERVICE_PYTHON``. It fails if it takes longer than
``S`` seconds.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from infra.local.data_dir import DataDir
from tests.fakes.open_facts import OpenFacts
from tests.fakes.openverse import FakeOpenverse

ROOT = Path(__file__).parents[2]
LOG = ROOT / "build" / "with-server.log"
START_SECONDS, STOP_SECONDS = 300, 60
READY = "Ctrl-C stops"
"""The end of the banner."""


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def served() -> Iterator[dict[str, str]]:
    """Run the server. Yields environment variables with its URL, key, port and folder."""
    port = free_port()
    LOG.parent.mkdir(exist_ok=True)
    with (
        TemporaryDirectory() as folder,
        FakeOpenverse() as photos,
        OpenFacts() as facts,
        LOG.open("wb") as log,
    ):
        data = DataDir(Path(folder))
        server = subprocess.Popen(
            [sys.executable, "-m", "infra", "dev"],
            cwd=ROOT,
            env={
                **{name: value for name, value in os.environ.items() if name != "MAKELEVEL"},
                "PORT": str(port),
                "DATA_DIR": folder,
                "DEMO": "ru",
                "RATE_LIMIT_SCALE": "1000000",
                "DEMO_WORD_SECONDS": "0.0001",
                "AI_DRAFTS_PER_DAY": "1000000",
                "PHOTO_SOURCE": f"openverse={photos.url}",
                "BARCODE_SOURCES": f"openfoodfacts={facts.url}",
                "PYTHONPATH": str(ROOT / "tests" / "offline"),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            wait_until_ready(server)
            url, place = f"http://127.0.0.1:{port}", {"PORT": str(port), "DATA_DIR": folder}
            place["SERVICE_PYTHON"] = sys.executable
            yield {"BASE_URL": url, "API_KEY": data.demo["key"], **place}
        finally:
            server.terminate()
            server.wait(STOP_SECONDS)


def wait_until_ready(server: subprocess.Popen[bytes]) -> None:
    """Wait for the banner. Exit with the log if the server ends before."""
    deadline = time.monotonic() + START_SECONDS
    while READY not in LOG.read_text():
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"The server did not start:\n{LOG.read_text()}")
        time.sleep(0.1)


def main() -> None:
    """Run the command and exit with its status."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--within", type=float, metavar="SECONDS")
    arguments.add_argument("command", nargs=argparse.REMAINDER)
    given = arguments.parse_args()
    with served() as variables:
        command = subprocess.Popen(given.command, env={**os.environ, **variables}, process_group=0)
        try:
            status = command.wait(given.within)
        except BaseException as error:
            os.killpg(command.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            status = f"{' '.join(given.command)} took longer than {given.within:g} seconds."
    if status:
        sys.stderr.write(f"The server's log: {LOG}\n")
    sys.exit(status)


if __name__ == "__main__":
    main()
