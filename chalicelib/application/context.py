"""The context of a call, which handlers and flows take."""

from dataclasses import dataclass, field

from chalicelib.core.call_names import Naming, by_route
from chalicelib.core.limits import HEAVY
from chalicelib.core.principals import Principal
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler works with: who calls, and the unit of work that the call writes to."""

    principal: Principal
    unit: UnitOfWork
    request_id: str
    warnings: list[str] = field(default_factory=list)
    naming: Naming = by_route

    @property
    def workspace_id(self) -> str:
        """The workspace that the call works in."""
        return self.unit.tenant

    def charge(self, units: int) -> None:
        """Count more of the caller's heavy calls, for work whose weight shows only on the way.

        Raises:
            RateLimitedError: there are no more of them this minute.
        """
        if self.principal.limited:
            limits.take(HEAVY, self.principal.rate_limit_key, units)

    def warn(self, message: str) -> None:
        """Add a sentence to ``data.warnings``.

        The call succeeded, but not quite as the caller may think.
        """
        message = self.naming(message)
        if message not in self.warnings:
            self.warnings.append(message)
