"""What a page of the console works with: who asks, where, and the operations they may call."""

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
"""The field of a form that makes it count once, however often it is sent."""
SESSION_OVER = "session_over"
"""What is said on the page to sign in to who has sent a form after the session's end."""
MAX_FIELDS = 200
SEARCH_FROM = 20
"""Lists longer than this can be searched (ui.md, Habits)."""


class Membership(NamedTuple):
    """A workspace of the account, and the role of the account in it."""

    workspace: WorkspaceRow
    membership: MembershipRow

    @property
    def path(self) -> str:
        """Where its pages are."""
        return f"{PREFIX}/w/{self.workspace.slug}"

    @property
    def manages(self) -> bool:
        """Whether the account may change it."""
        return self.membership.role in {"owner", "manager"}

    @property
    def owns(self) -> bool:
        """Whether it is the account's own."""
        return self.membership.role == "owner"


class Problem(NamedTuple):
    """Why a form was not taken: a summary, and a sentence for each field that is at fault.

    ``headers`` are those of the failure, such as when to try again.
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
            UnauthorizedError: nobody is signed in.
        """
        if self.account is None:
            raise UnauthorizedError("Sign in first.")
        return self.account

    @property
    def here(self) -> Membership:
        """The workspace of the page.

        Raises:
            NotFoundError: the page has none.
        """
        if self.place is None:
            raise _no_workspace()
        return self.place

    def enter(self, slug: str) -> None:
        """Go into a workspace of the account.

        Raises:
            NotFoundError: it belongs to none of that slug, whether there is one or not.
        """
        self.place = next((p for p in self.places if p.workspace.slug == slug), None)
        if self.place is None:
            raise _no_workspace()

    @cached_property
    def principal(self) -> Principal:
        """Who calls operations."""
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
        """Call an operation and return what is inside the envelope.

        Raises:
            AppError: as the operation says.
        """
        return self._call(operation, arguments, None)

    def call_once(self, operation: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
        """Call one under the idempotency key of the form, so that a double click does no harm.

        Raises:
            AlreadyCreatedError: the form was sent before, and what it made was shown then.
            AppError: as the operation says.
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
        """The fields of the form that was sent, each with its values."""
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
        """Return the last value of a field, "" without one."""
        return (self.form.get(name) or [""])[-1]

    def asked(self, name: str) -> str:
        """Return the last value of a query parameter, "" without one."""
        return (list(self.request.query.get(name, ())) or [""])[-1]

    @cached_property
    def language(self) -> texts.Language:
        """The language that the pages speak."""
        return render.language(self.request)

    def say(self, key: str, **values: object) -> str:
        """Return a text of the catalogue."""
        return texts.say(self.language, key, **values)

    def problem(self, error: AppError) -> Problem:
        """Return what a page says of a failure, in its own words where it has some."""

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
        """Return a page of the console, in its frame."""
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
        """Return the text of what was just done, if the page was opened after that."""
        key = f"done_{self.asked('done')}"
        return self.say(key) if texts.has(self.language, key) else ""


def _no_workspace() -> NotFoundError:
    return NotFoundError("There is no such workspace.")
