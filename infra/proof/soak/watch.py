"""Samples of a process from outside, and the decision whether they are flat."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import NamedTuple

from infra.proof.parts import BrokenPromiseError

SECONDS = 3.0
"""Seconds between two samples."""
WARM_UP = 0.2
"""Share of the samples that are left out, while caches and pools fill."""
MEGABYTE = 1_048_576
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Sample(NamedTuple):
    """Resources of a process at a moment, in seconds since the first sample.

    ``memory`` is the resident memory in MB, ``files`` are its open file descriptors, and
    ``temporary`` the files in its temporary folder. ``blocks`` are the memory blocks of living
    Python objects, as the process itself counts them. ``cpu`` are the CPU seconds so far.
    """

    at: float
    memory: float
    files: int
    threads: int
    temporary: int
    blocks: int
    cpu: float


class Room(NamedTuple):
    """Largest growth of the median from the first quarter to the last, by measure."""

    memory: float
    files: float
    threads: float
    temporary: float
    blocks: float


class Watch:
    """Samples a process in a thread, until it is stopped."""

    def __init__(self, pid: int, temporary: Path, blocks: Callable[[], int]) -> None:
        self.samples: list[Sample] = []
        self._pid, self._temporary, self._blocks = pid, temporary, blocks
        self._began = time.monotonic()
        self._stop = Event()
        self._thread = Thread(target=self._run)

    def start(self) -> None:
        """Start sampling."""
        self._thread.start()

    def stop(self) -> list[Sample]:
        """Stop sampling, and return the samples."""
        self._stop.set()
        self._thread.join()
        return self.samples

    def sample(self) -> Sample:
        """Return what the process uses now.

        Raises:
            OSError: the process has ended.
        """
        process = Path("/proc", str(self._pid))
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        pages = int((process / "statm").read_text().split()[1])
        ticks = int(fields[11]) + int(fields[12])
        return Sample(
            round(time.monotonic() - self._began, 1),
            round(pages * PAGE_BYTES / MEGABYTE, 2),
            len(list((process / "fd").iterdir())),
            int(fields[17]),
            sum(1 for path in self._temporary.rglob("*") if path.is_file()),
            self._blocks(),
            ticks / os.sysconf("SC_CLK_TCK"),
        )

    def _run(self) -> None:
        while not self._stop.wait(SECONDS):
            with suppress(OSError, HTTPException):  # If the process has ended, the load fails.
                self.samples.append(self.sample())


def quarters(values: list[float]) -> tuple[float, float]:
    """Return the medians of the first and of the last quarter after the warm-up.

    Raises:
        BrokenPromiseError: there are too few values to decide.
    """
    warm = values[int(len(values) * WARM_UP) :]
    size = len(warm) // 4
    if not size:
        msg = f"there are only {len(values)} samples"
        raise BrokenPromiseError(msg)
    return median(warm[:size]), median(warm[-size:])


def require_flat(samples: list[Sample], room: Room) -> dict[str, tuple[float, float]]:
    """Return the medians of the first and the last quarter of each measure.

    Raises:
        BrokenPromiseError: a measure has grown by more than its room.
    """
    averages = {}
    for name, limit in room._asdict().items():
        first, last = averages[name] = quarters(
            [float(getattr(sample, name)) for sample in samples]
        )
        if last - first > limit:
            msg = f"{name} grew from {first:g} to {last:g}, and at most {limit:g} more is flat"
            raise BrokenPromiseError(msg)
    return averages
