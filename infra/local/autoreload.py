"""Restart ``chalice local`` when a watched file has changed.

Chalice runs the service in a worker process. It starts another worker whenever one exits with
``RESTART_REQUEST_RC``. Chalice's own watcher would restart for a change of any file in the
checkout, where the local database, the tests and Python's byte code cache write continually. The
watcher in this module replaces it and watches only the sources of the service.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

from chalice.cli.filewatch import RESTART_REQUEST_RC
from chalice.cli.filewatch.stat import StatFileWatcher

from infra.local import supervisor

ROOT = Path(__file__).parents[2]
SOURCES = ("app.py", "chalicelib", "infra", "vendor", ".chalice/config.json")
LOOK_SECONDS = 0.5
"""Seconds between two checks of the sources."""

Sources = dict[str, tuple[int, int]]
"""Modification time in nanoseconds, and size in bytes, by path."""


def watch_sources() -> None:
    """Restart this worker when a source changes, and end it when its ``chalice local`` ends.

    Call it before the service is imported, so that changes during the import count. Without
    autoreload, the function does nothing, because no worker runs.
    """
    # Chalice sets this variable for the worker that it restarts.
    if "CHALICE_WORKER" not in os.environ:
        return
    supervisor.end_with(_parent())
    _disable_chalices_watcher()
    Thread(target=_watch, args=(read_sources(),), daemon=True, name="autoreload").start()


def command_pid() -> int:
    """Return the process that runs as long as the command that the developer started."""
    return os.getppid() if "CHALICE_WORKER" in os.environ else os.getpid()


def read_sources(root: Path = ROOT) -> Sources:
    """Return the state of each source file, without byte code and temporary files of editors."""
    sources: Sources = {}
    for source in SOURCES:
        path = root / source
        files = [path] if path.suffix else _files(path)
        for file in files:
            with suppress(OSError):  # It has just been removed, or is a dangling link of an editor.
                stat = file.stat()
                # Time and size are compared and not contents, because the files are read twice a
                # second.
                sources[str(file.relative_to(root))] = (stat.st_mtime_ns, stat.st_size)
    return sources


def _files(folder: Path) -> list[Path]:
    paths = []
    for parent, subfolders, names in os.walk(folder):
        subfolders[:] = [name for name in subfolders if name != "__pycache__"]
        paths += [Path(parent, name) for name in names if name[0] != "." and name[-1] != "~"]
    return paths


def _parent() -> int:
    """Return the process id of the ``chalice local`` that started this worker.

    If that process was killed before this call, the worker has another parent. The worker then ends
    itself, because no other process would end it.
    """
    pid = os.getppid()
    if not supervisor.command_line(pid).endswith(" ".join(sys.argv[1:]).strip()):
        os._exit(1)  # This is not the main thread, which would wait forever.
    return pid


def _disable_chalices_watcher() -> None:
    """Make Chalice's watcher ignore the changes that it finds.

    The watcher polls files, or uses watchdog if it is installed. Chalice starts the watcher before
    importing ``app.py``, so it cannot be replaced.
    """

    def ignore(*_: object) -> None:
        pass

    StatFileWatcher._single_pass_poll = ignore  # type: ignore[assignment,method-assign]  # noqa: SLF001
    if eventbased := sys.modules.get("chalice.cli.filewatch.eventbased"):
        eventbased.WatchdogRestarter.on_any_event = ignore


def _watch(old_sources: Sources) -> None:
    while (now := read_sources()) == old_sources:
        time.sleep(LOOK_SECONDS)
    changed_paths = sorted(
        path for path in old_sources.keys() | now if old_sources.get(path) != now.get(path)
    )
    print(f"Restarting, because {changed_paths[0]} has changed.", flush=True)
    os._exit(RESTART_REQUEST_RC)  # At once: threads may be in the middle of requests or imports.
