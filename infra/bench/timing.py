"""Measure the CPU time of a call as the median of several rounds."""

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median

ROUNDS = 9
ROUND_SECONDS = 0.4


def cpu_ms(call: Callable[[], object]) -> float:
    """Return the CPU milliseconds of one warm call."""
    count = _count(call)
    return median(_round(call, count) for _ in range(ROUNDS)) / count * 1000


def cpu_ms_in_turns(calls: Mapping[str, Callable[[], object]]) -> dict[str, tuple[float, float]]:
    """Return the CPU milliseconds of each call, and their ratio to the first call.

    The calls run in turn, so that other load on the machine affects all calls equally.
    """
    counts = {name: _count(call) for name, call in calls.items()}
    rounds = [
        {name: _round(call, counts[name]) / counts[name] * 1000 for name, call in calls.items()}
        for _ in range(ROUNDS)
    ]
    first = next(iter(calls))
    return {
        name: (median(r[name] for r in rounds), median(r[name] / r[first] for r in rounds))
        for name in calls
    }


def _count(call: Callable[[], object]) -> int:
    """Warm up and return the number of calls in a round."""
    call()
    count, spent = 1, 0.0
    while spent < ROUND_SECONDS / 4:
        count *= 2
        spent = _round(call, count)
    return max(1, round(count * ROUND_SECONDS / spent))


def _round(call: Callable[[], object], count: int) -> float:
    gc.collect()
    started = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - started
