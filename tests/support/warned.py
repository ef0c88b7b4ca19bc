"""The warnings of a response, without their sentences."""

from collections.abc import Mapping
from typing import Any


def warned(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the code and the facts of each warning of a response."""
    details = data.get("warningDetails", [])
    assert [detail["message"] for detail in details] == data.get("warnings", [])
    return [
        {name: value for name, value in detail.items() if name != "message"} for detail in details
    ]
