"""What a control of a form refuses in the browser, from the operation that its form calls."""

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from chalicelib.core import manifest
from chalicelib.core.operations import REGISTRY
from chalicelib.core.wire.schema import Wire
from chalicelib.transports.lazy import Lazy

if TYPE_CHECKING:
    from chalicelib.core.wire.limits import Limits

_LIMITS_OF: Lazy[[type[Wire], str], "Limits"] = Lazy("chalicelib.core.wire.limits:limits_of")


class ControlLimits(NamedTuple):
    """The limits of a control. A template shows them as attributes."""

    required: bool = False
    minlength: int | None = None
    maxlength: int | None = None

    @property
    def optional(self) -> "ControlLimits":
        """The limits of a control that may be empty, because the page sends something else then."""
        return self._replace(required=False)

    @property
    def lines(self) -> "ControlLimits":
        """The limits of a text area. A browser would cut a longer text that is pasted into it."""
        return self._replace(maxlength=None)

    def __html__(self) -> str:
        """Return the attributes, each after a space."""
        required = " required" if self.required else ""
        lengths = (("minlength", self.minlength), ("maxlength", self.maxlength))
        return required + "".join(f' {name}="{n}"' for name, n in lengths if n is not None)


NO_LIMITS = ControlLimits()


@cache
def control_limits(operation: str, argument: str) -> ControlLimits:
    """Return the limits of a control that fills an argument, such as ``client.name``.

    Raises:
        KeyError: the operation has no such argument.
    """
    packed = manifest.limits().get(operation)
    limits = packed[argument] if packed else _LIMITS_OF(REGISTRY[operation].input, argument)
    is_required, shortest, longest = limits
    # A required argument has one character at least, so this says nothing more.
    return ControlLimits(is_required, shortest if (shortest or 0) > 1 else None, longest)


def of(argument: str | ControlLimits, control: str = "") -> ControlLimits:
    """Return the limits of a control, for a template. A control without an argument has none.

    >>> of("create_bot_key", "name").required  # a control is called as its argument
    True
    >>> of("create_booking.client.name").maxlength
    200
    """
    if isinstance(argument, ControlLimits):
        return argument
    operation, _, path = argument.partition(".")
    return control_limits(operation, path or control) if operation else NO_LIMITS
