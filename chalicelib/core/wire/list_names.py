"""Names that lists share. Every call loads these, and only lists load the models of ``lists``."""

from collections.abc import Mapping
from functools import cache

from chalicelib.core.wire.fields import fields_of
from chalicelib.core.wire.schema import Wire

UPDATED_AT = "updatedAt"
"""The sort that every list of records has."""
_SAME = (("search", "q"), ("q", "search"), ("limit", "size"), ("sort", "sortBy"))


@cache
def other_names(model: type[Wire]) -> Mapping[str, str]:
    """Return names that a list also accepts in a query string, each with the field's wire name."""
    fields = fields_of(model)
    if not {"page", "size"} <= fields.keys():
        return {}
    return {other: name for other, name in _SAME if name in fields and other not in fields}
