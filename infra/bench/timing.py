"""CPU time per call: the median of several rounds, garbage collection and warm-up aside."""

import gc
import time
from collections.abc import Callable
from statistics import median

ROUNDS = 9
ROUND_SECONDS = 0.4


def cpu_ms(call: Callable[[], object]) -> float:
    """Return the CPU milliseconds that one warm call takes."""
    call()
    count, spent = 1, 0.0
    while spent < ROUND_SECONDS / 4:
        count *= 2
        spent = _round(call, count)
    count = max(1, round(count * ROUND_SECONDS / spent))
    return median(_round(call, count) for _ in range(ROUNDS)) / count * 1000


def _round(call: Callable[[], object], count: int) -> float:
    gc.collect()
    started = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - started
