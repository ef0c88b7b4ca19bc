"""JSON merge patch (RFC 7396)."""

from typing import Any


def merge(target: Any, patch: Any) -> Any:  # noqa: ANN401  JSON
    """Return the target with the patch applied: null removes, an object merges, the rest is set."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged
