"""The rules of a service that decide when it can be booked."""

from typing import NamedTuple


class ServiceRules(NamedTuple):
    """Requirements of a service for a slot.

    A booking to be moved keeps its duration and buffers.
    """

    duration_min: int
    step_min: int
    buffer_before_min: int = 0
    buffer_after_min: int = 0
    min_notice_min: int = 0
    horizon_days: int = 60
