"""What of an operation a member of the staff may do: the part that concerns the own resource.

A member with the role *staff* may call only operations that declare such a part, and
``application.invoke`` holds the call to it before and after the handler runs. Handlers do not know
the role.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from chalicelib.core.errors import ForbiddenError, NotFoundError
from chalicelib.core.wire.schema import Wire, wire_name

W = TypeVar("W", bound=Wire)
# Returns the resource of the record that the input names, or None if it names none.
FindResource = Callable[[Any, Any], str | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnPart:
    """The part of an operation that concerns a member of the staff."""

    needs_resource: bool = True
    resource: str = ""  # The input field of a resource, which may be no other than the own one.
    is_set: bool = False  # If the call omits the field, it is set.
    record: FindResource | None = None  # from the unit of work and the input
    # Returns the resources of the records that the unit of work writes.
    written: Callable[[Any], Collection[str]] | None = None
    # What a record of another resource is like: one that does not exist.
    not_found: Callable[[], NotFoundError] | None = None
    # Input fields that are not for the staff, each with the only value that a call may send.
    fixed: Mapping[str, Any] | None = None

    def bind(self, args: W, own_id: str) -> W:
        """Return the input for the own resource, or raise ForbiddenError."""
        if self.needs_resource and not own_id:
            msg = (
                "Your account is not linked to a member of the staff, so you have no calendar. Ask "
                "the owner or a manager to link it."
            )
            raise ForbiddenError(msg, key="no_staff_link")
        for name, value in (self.fixed or {}).items():
            if getattr(args, name) != value:
                label = wire_name(type(args), name)
                msg = f"{label}: this is not for your role, staff. Omit it."
                raise ForbiddenError(msg, key="not_for_staff")
        if not self.resource:
            return args
        sent = getattr(args, self.resource)
        if sent is None and self.is_set:
            return args.model_copy(update={self.resource: own_id})
        if sent not in {None, own_id}:
            label = wire_name(type(args), self.resource)
            msg = f"{label}: expected your own calendar, received another one. Omit the field."
            raise ForbiddenError(msg, key="not_own_calendar")
        return args

    def check_record(self, unit: object, args: Wire, own_id: str) -> None:
        """Raise NotFoundError if the input names a record of another resource."""
        if self.record is not None and self.record(unit, args) not in {None, own_id}:
            raise self._not_found()

    def check_writes(self, unit: object, own_id: str) -> None:
        """Raise ForbiddenError if the call writes a record of another resource as well."""
        if self.written is not None and set(self.written(unit)) - {own_id}:
            raise not_only_own()

    def cut(self, result: W, own_id: str) -> W:
        """Return a result without what belongs to others, or raise NotFoundError if all of it does.

        The input has bounded the result already. What a handler adds, such as the list of all
        staff, and what it reads by mistake, is taken out here.
        """
        own = _own(result, own_id)
        if own is None:
            raise self._not_found()
        return own

    def _not_found(self) -> NotFoundError:
        if self.not_found is not None:
            return self.not_found()
        return NotFoundError("Your calendar has no such record.", key="record")


def not_only_own() -> ForbiddenError:
    """Return the error for a call that would change records of others together with an own one."""
    msg = (
        "This would also change records of other staff, such as bookings of the same visit. Ask a "
        "member who has all calendars to do it."
    )
    return ForbiddenError(msg, key="not_only_own")


class _OtherOwnerError(Exception):
    pass


def _own(value: W, own_id: str) -> W | None:
    """Return a record as the staff sees it, or None if it, or a part of it, is of another one."""
    owner = type(value).OWNED_BY
    if owner and getattr(value, owner) != own_id:
        return None
    changes = dict(type(value).HIDDEN_FROM_STAFF)
    try:
        for name in type(value).__pydantic_fields__:
            if name not in changes:
                part = getattr(value, name)
                cut = _part(part, own_id)
                if cut is not part:
                    changes[name] = cut
    except _OtherOwnerError:
        return None
    return value.model_copy(update=changes) if changes else value


def _part(part: Any, own_id: str) -> Any:  # noqa: ANN401  any field of a result
    if isinstance(part, Wire):
        own = _own(part, own_id)
        if own is None:
            raise _OtherOwnerError
        return own
    if isinstance(part, list) and any(isinstance(each, Wire) for each in part):
        return [own for each in part if (own := _own(each, own_id)) is not None]
    return part


# Operations about the caller's own account, such as the choice of messages.
OWN_ACCOUNT = OwnPart(needs_resource=False)
