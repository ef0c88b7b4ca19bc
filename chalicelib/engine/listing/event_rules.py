"""Rules by which changes of a noun's records are events (ADR 60).

A rule compares a record before and after a unit of work. So jobs, cascades, chats and commands emit
the same events as calls.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chalicelib.engine.tables import Record

Rule = Callable[[Any, Any], bool]
"""Whether a change is an event. The old record of a new record is None."""
EventRules = Mapping[str, Rule]
"""The rules of a noun, by the names of its events."""


def is_new(old_record: Record | None, new_record: Record) -> bool:  # noqa: ARG001  a rule
    """Whether the record is created."""
    return old_record is None


def changes(*names: str) -> Rule:
    """Return the rule for changes of any of these attributes of an existing record."""
    return lambda old_record, new_record: (
        old_record is not None and _differ(old_record, new_record=new_record, names=names)
    )


def changes_others(*names: str) -> Rule:
    """Return the rule for changes of any attribute of an existing record but these.

    Attributes that all records have, such as times and index keys, do not count.
    """

    def rule(old_record: Record | None, new_record: Record) -> bool:
        attributes = (
            type(new_record).get_attributes().keys() - Record.get_attributes().keys() - {*names}
        )
        return old_record is not None and _differ(
            old_record, new_record=new_record, names=attributes
        )

    return rule


def _differ(old_record: Record, *, new_record: Record, names: Iterable[str]) -> bool:
    return any(getattr(old_record, name) != getattr(new_record, name) for name in names)
