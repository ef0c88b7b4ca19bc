"""Rules by which changes of a noun's records are events, whoever makes them (ADR 60)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chalicelib.engine.tables import Record

# Receives the old record (None for a new one) and the new record.
Rule = Callable[[Any, Any], bool]
EventRules = Mapping[str, Rule]  # by the names of events


def is_new(old_record: Record | None, new_record: Record) -> bool:  # noqa: ARG001  a rule
    """Whether the record is created."""
    return old_record is None


def changes(*names: str) -> Rule:
    """Return the rule for changes of any of these attributes of an existing record."""
    return lambda old_record, new_record: (
        old_record is not None and _differ(old_record, new_record=new_record, names=names)
    )


def changes_others(*names: str) -> Rule:
    """Return the rule for changes of other attributes, except those that all records have."""

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
