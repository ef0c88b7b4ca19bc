"""Rules by which changes of records become events (ADR 60).

A noun declares its events: each has a rule that compares a record before and after a unit of work.
So jobs, cascades, chats and commands emit the same events as calls.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chalicelib.engine.tables import Record

Rule = Callable[[Any, Any], bool]
"""Whether a change is an event. The record before it is None for a new record."""
EventRules = Mapping[str, Rule]
"""The rules of a noun, by the names of its events."""


def is_new(before: Record | None, after: Record) -> bool:  # noqa: ARG001  a rule
    """Whether the record is created."""
    return before is None


def changes(*names: str) -> Rule:
    """Return the rule for changes of any of these attributes of an existing record."""
    return lambda before, after: before is not None and _differ(before, after, names)


def changes_others(*names: str) -> Rule:
    """Return the rule for changes of any attribute of an existing record but these.

    Attributes that all records have, such as times and index keys, do not count.
    """

    def rule(before: Record | None, after: Record) -> bool:
        own = type(after).get_attributes().keys() - Record.get_attributes().keys() - {*names}
        return before is not None and _differ(before, after, own)

    return rule


def _differ(before: Record, after: Record, names: Iterable[str]) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in names)
