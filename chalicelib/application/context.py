"""The context of a call, which handlers and flows take."""

from dataclasses import dataclass, field
from typing import Any

from chalicelib.core.call_names import Naming, insert_routes, insert_tool_names
from chalicelib.core.call_warnings import CallWarning, WarningCode
from chalicelib.core.limits import HEAVY
from chalicelib.core.principals import Principal
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Context:
    """The context of a call: the principal, and the unit of work to which a handler adds writes."""

    principal: Principal
    unit: UnitOfWork
    request_id: str
    warnings: list[CallWarning] = field(default_factory=list)
    naming: Naming = insert_routes  # rewrites the names of operations in warnings for this caller

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
        """Charge ``units`` heavy calls beyond the declared weight, or raise RateLimitedError."""
        if self.principal.limited:
            limits.take(HEAVY, self.principal.rate_limit_key, units)

    def warn(self, message: str, *, code: WarningCode, **facts: Any) -> None:  # noqa: ANN401  any JSON
        """Add to ``data.warnings`` how a successful call differs from what a caller may expect.

        ``data.warningDetails`` has its code and its ``facts``, which the code declares.
        """
        warning = CallWarning(self.naming(message), code, facts)
        if warning not in self.warnings:
            self.warnings.append(warning)
