"""Images of a saved record that could not be taken."""

from typing import Any

from chalicelib.core.call_warnings import WarningCode


def image_warnings(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the URL of each image that could not be taken, and the reason."""
    return [
        (warning["url"], warning["reason"])
        for warning in answer.get("warningDetails", ())
        if warning["code"] == WarningCode.IMAGE_NOT_IMPORTED
    ]
