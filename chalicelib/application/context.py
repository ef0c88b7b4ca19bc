"""The context of a call, which handlers and flows take."""

from dataclasses import dataclass, field

from chalicelib.core.call_names import Naming, insert_routes, insert_tool_names
from chalicelib.core.limits import HEAVY
from chalicelib.core.principals import Principal
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Context:
    """The context of a call: the principal, and the unit of work to which the handler adds writes.

    ``naming`` rewrites the names of operations in warnings for this caller.
    """

    principal: Principal
    unit: UnitOfWork
    request_id: str
    warnings: list[str] = field(default_factory=list)
    naming: Naming = insert_routes

    @property
    def workspace_id(self) -> str:
        """The workspace of the call.

        >>> from chalicelib.core.principals import VisitorPrincipal
        >>> Context(VisitorPrincipal(visitor="v"), UnitOfWork("workspace"), "request").workspace_id
        'workspace'
        """
        return self.unit.tenant

    @property
    def is_tool_call(self) -> bool:
        """Whether an AI client called a tool, whose results should be short."""
        return self.naming is insert_tool_names

    def charge(self, units: int) -> None:
        """Charge ``units`` further calls to the caller's limit of heavy calls.

        Use it if the work turns out to be larger than the call's declared weight.

        Raises:
            RateLimitedError: the caller has used its heavy calls of this minute.
        """
        if self.principal.limited:
            limits.take(HEAVY, self.principal.rate_limit_key, units)

    def warn(self, message: str) -> None:
        """Add a sentence to ``data.warnings``.

        Use it if the call succeeds, but differs from what the caller may expect.
        """
        message = self.naming(message)
        if message not in self.warnings:
            self.warnings.append(message)
