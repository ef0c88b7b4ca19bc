"""Images of a saved record that could not be taken."""

import re
from typing import Any

_NOT_IMPORTED = re.compile(r"The image (.+) was not imported: (.+)\.", re.DOTALL)


def image_warnings(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the URL of each image that could not be taken, and the reason."""
    matches = [_NOT_IMPORTED.fullmatch(warning) for warning in answer.get("warnings", ())]
    return [(match[1], match[2]) for match in matches if match]
