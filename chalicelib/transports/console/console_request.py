"""Context of a console page: the account, the workspace, and calls of operations."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from secrets import token_urlsafe
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from pydantic_core import from_json

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import AppError, NotFoundError, UnauthorizedError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Principal, SessionPrincipal
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.workspaces import MembershipRow, WorkspaceRow
from chalicelib.transports import auth
from chalicelib.transports.console.routes import PREFIX
from chalicelib.transports.http import HttpRequest, HttpResponse
from chalicelib.transports.web import render, texts

ONCE = "once"
"""The form field with the idempotency key: a form sent twice takes effect once."""
SESSION_OVER = "session_over"
"""Reason shown on the sign-in page after a form was sent with an expired session."""
MAX_FIELDS = 200
SEARCH_FROM = 20
"""Lists longer than this have a search field."""


class Membership(NamedTuple):
    """A workspace of the account, and the account's role in it."""

    workspace: WorkspaceRow
    membership: MembershipRow

    @property
    def path(self) -> str:
        """Path of the workspace's pages."""
        return f"{PREFIX}/w/{self.workspace.slug}"

    @property
    def manages(self) -> bool:
        """Whether the account may change the workspace."""
        return self.membership.role in {"owner", "manager"}

    @property
    def owns(self) -> bool:
        """Whether the account owns the workspace."""
        return self.membership.role == "owner"


class Problem(NamedTuple):
    """The reason why a form was refused: a summary, and a sentence for each wrong field.

    ``headers`` are the headers of the failure, such as ``Retry-After``.
    """

    summary: str = ""
    fields: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}


@dataclass
class ConsoleRequest:
    """A request to the console."""

    request: HttpRequest
    csrf: str
    account: AccountRow | None = None
    session_id: str = ""
    place: Membership | None = field(default=None, init=False)

    @cached_property
    def places(self) -> list[Membership]:
        """The account's workspaces, oldest first."""
        return [Membership(*each) for each in workspaces.of_account(self.signed_in.id)]

    @property
    def signed_in(self) -> AccountRow:
        """The account.

        Raises:
            UnauthorizedError: the visitor is not signed in.
        """
        if self.account is None:
            raise UnauthorizedError("Sign in first.")
        return self.account

    @property
    def here(self) -> Membership:
        """The workspace of the page.

        Raises:
            NotFoundError: the page is not in a workspace.
        """
        if self.place is None:
            raise _no_workspace()
        return self.place

    def enter(self, slug: str) -> None:
        """Select a workspace of the account.

        Raises:
            NotFoundError: the account is not a member of a workspace with this slug. The same error
                is raised whether the workspace exists or not.
        """
        self.place = next((p for p in self.places if p.workspace.slug == slug), None)
        if self.place is None:
            raise _no_workspace()

    @cached_property
    def principal(self) -> Principal:
        """The principal that calls operations."""
        if self.account is None:
            return auth.visitor(self.request)
        outside = SessionPrincipal(
            account_id=self.account.id,
            role=self.account.role,
            session_id=self.session_id,
            client_ip=self.request.client_ip,
        )
        if self.place is None:
            return outside
        return replace(
            outside,
            workspace_id=self.place.workspace.id,
            plan=self.place.workspace.plan,
            membership=self.place.membership.role,
        )

    def call(self, operation: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
        """Call an operation and return ``data`` of its envelope.

        Raises:
            AppError: as the operation documents.
        """
        return self._call(operation, arguments, None)

    def call_once(self, operation: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
        """Call an operation under the form's idempotency key, so that a double click is harmless.

        Raises:
            AlreadyCreatedError: the form was sent before, and its result was shown then.
            AppError: as the operation documents.
        """
        return self._call(operation, arguments, self.text(ONCE) or None)

    def _call(
        self, operation: str, arguments: Mapping[str, Any], key: str | None
    ) -> dict[str, Any]:
        reply = invoke(
            REGISTRY[operation],
            self.principal,
            lambda: arguments,
            request_id=self.request.request_id,
            idempotency_key=key,
        )
        data: dict[str, Any] = from_json(reply.body)["data"]
        return data

    @cached_property
    def form(self) -> dict[str, list[str]]:
        """The fields of the submitted form, each with its values."""
        fields: dict[str, list[str]] = {}
        body = self.request.body.decode(errors="replace")
        try:
            pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            pairs = []
        for name, value in pairs:
            fields.setdefault(name, []).append(value)
        return fields

    def text(self, name: str) -> str:
        """Return the last value of a form field, or "" if it is missing."""
        return (self.form.get(name) or [""])[-1]

    def asked(self, name: str) -> str:
        """Return the last value of a query parameter, or "" if it is missing."""
        return (list(self.request.query.get(name, ())) or [""])[-1]

    @cached_property
    def language(self) -> texts.Language:
        """The language of the page."""
        return render.language(self.request)

    def say(self, key: str, **values: object) -> str:
        """Return a text of the catalogue."""
        return texts.say(self.language, key, **values)

    def problem(self, error: AppError) -> Problem:
        """Return the page's texts for a failure: its own where the catalogue has them."""

        def own(key: str, otherwise: str) -> str:
            return self.say(key) if texts.has(self.language, key) else otherwise

        fields = {e.field: own(f"wrong_{e.field}", e.message) for e in error.errors}
        summary = self.say("wrong_fields") if fields else own(f"error_{error.code}", error.message)
        return Problem(summary, fields, error.headers)

    def page(
        self,
        template: str,
        status: int = 200,
        *,
        problem: Problem | None = None,
        **values: object,
    ) -> HttpResponse:
        """Return a page of the console, with the common layout."""
        zone = self.place.workspace.timezone if self.place else render.ZONE
        problem = problem or Problem()
        shown = {
            "visit": self,
            "place": self.place,
            "csrf": self.csrf,
            "once": token_urlsafe(18),
            "problem": problem,
            "done": self._done(),
            "lost": self.asked("done") == SESSION_OVER,
            "money": lambda kopecks: texts.money(self.language, kopecks),
            "number": lambda n: texts.number(self.language, n),
            "moment": lambda iso: texts.moment(self.language, datetime.fromisoformat(iso), zone),
            "offset": lambda iso: texts.offset(datetime.fromisoformat(iso), zone),
            "zone": texts.zone,
            "zone_name": zone,
        }
        response = render.page(
            self.request,
            f"console/{template}.html",
            status,
            cached=False,
            script="console",
            **shown | values,
        )
        return response._replace(headers={**response.headers, **problem.headers})

    def _done(self) -> str:
        """Return the text that confirms the last action, if ``done`` names one."""
        key = f"done_{self.asked('done')}"
        return self.say(key) if texts.has(self.language, key) else ""


def _no_workspace() -> NotFoundError:
    return NotFoundError("There is no such workspace.")
