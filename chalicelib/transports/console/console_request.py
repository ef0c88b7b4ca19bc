"""Context of a console page, with the account, the workspace, and calls of operations."""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from secrets import token_urlsafe
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from pydantic_core import from_json

from chalicelib.application.invoke import invoke, may_in_console, require_role
from chalicelib.core.errors import AppError, NotFoundError, UnauthorizedError, ValidationError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Principal, Role, SessionPrincipal
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire import parsing
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.workspaces import MembershipRow, WorkspaceRow
from chalicelib.engine import audit
from chalicelib.lib.currencies import RUB
from chalicelib.transports import auth, form_data
from chalicelib.transports.console import typed_values
from chalicelib.transports.console.menu import menu
from chalicelib.transports.console.routes import PREFIX
from chalicelib.transports.form_data import SentFile
from chalicelib.transports.http import HttpRequest, HttpResponse, media_type
from chalicelib.transports.web import render, texts

# The form field with the idempotency key: a form sent twice takes effect once.
IDEMPOTENCY_FIELD = "once"
# Begins the key of a field error that a page raises itself, which is the key of its text.
OWN_KEY = "wrong_"
SEEN = "seen"  # The form field with the marks of the values that a form was opened with.
# Changes among which a deletion is looked for, when its record is not there any more.
LATEST_CHANGES = 200
# Reason shown on the sign-in page after a form was sent with an expired session.
SESSION_OVER = "session_over"
# The form fields by which a user confirms what a thief of the session would want.
CODE_FIELD, PASSWORD_FIELD = "secondFactor", "currentPassword"
MAX_FIELDS = 600  # Maximum number of values of a form. A week of 24 intervals a day has 350.
# Texts of refusals by the key of the error. ``most`` is its maximum.
_TEXTS = {
    "already_member": "is_member",
    "assistants_off": "assistants_listed_first",
    "too_many_agents": "bots_full",
    "too_many_bot_keys": "bot_keys_full",
    "too_many_connections": "keys_and_apps_full",
    "too_many_invitations": "invitations_full",
    "too_many_keys": "keys_full",
    "too_many_services": "booking_page_services_full",
    "too_many_webhooks": "webhooks_full",
    "too_many_workspaces": "workspaces_full",
    "webhook_off": "webhook_is_off",
}
SEARCH_THRESHOLD = 20  # Lists longer than this have a search field.


class Membership(NamedTuple):
    """A workspace of the account, and the account's role there."""

    workspace: WorkspaceRow
    row: MembershipRow

    @property
    def role(self) -> Role:
        return Role(self.row.role)

    @property
    def path(self) -> str:
        return f"{PREFIX}/w/{self.workspace.slug}"

    @property
    def own_resource_id(self) -> str:
        """The only resource whose bookings the account may see, or "" if it may see all."""
        return self.row.resource_id or "" if self.role is Role.STAFF else ""

    def may(self, operation: str) -> bool:
        return may_in_console(REGISTRY.entry(operation), self.role)

    def lacks_resource(self, operation: str) -> bool:
        """Whether an operation is about the own calendar, which nobody has linked yet."""
        if self.role is not Role.STAFF or self.own_resource_id:
            return False
        own = REGISTRY[operation].own
        return own is not None and own.needs_resource


class Problem(NamedTuple):
    """The reason why a form was refused: a summary, and a message for each wrong field."""

    summary: str = ""
    fields: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}  # such as ``Retry-After``


class Uploads(NamedTuple):
    """Ids of the files that a control of a form has sent, and the message of a refused one."""

    ids: list[str]
    problem: str = ""


@dataclass
class ConsoleRequest:
    http: HttpRequest
    csrf: str
    account: AccountRow | None = None
    session_id: str = ""
    # Whether the user has proved a moment ago to be the owner of the account.
    is_confirmed: bool = False
    membership: Membership | None = field(default=None, init=False)
    # Files that the form's controls have stored, by control (``uploads.store_files``).
    uploads: dict[str, Uploads] = field(default_factory=dict, init=False)

    @cached_property
    def memberships(self) -> list[Membership]:
        """The account's memberships, oldest first."""
        return [
            Membership(*membership)
            for membership in workspaces.read_by_account(self.signed_in_account.id)
        ]

    @property
    def signed_in_account(self) -> AccountRow:
        """The account. Raises UnauthorizedError if the visitor is not signed in."""
        if self.account is None:
            raise UnauthorizedError("Sign in first.", key="not_signed_in")
        return self.account

    @property
    def current_membership(self) -> Membership:
        """The account's membership of the page's workspace. Raises NotFoundError outside of one."""
        if self.membership is None:
            raise _no_workspace()
        return self.membership

    @property
    def currency(self) -> str:
        """The currency of the workspace's prices."""
        return self.membership.workspace.currency if self.membership else RUB

    def select_workspace(self, slug: str) -> None:
        """Select a workspace of the account, or raise NotFoundError, also for those of others."""
        matches = (
            membership for membership in self.memberships if membership.workspace.slug == slug
        )
        self.membership = next(matches, None)
        if self.membership is None:
            raise _no_workspace()

    def require_deleted(self, record_id: str) -> None:
        """Raise NotFoundError unless the record was deleted before, as by a first click."""
        changes = audit.page(self.current_membership.workspace.id, LATEST_CHANGES).rows
        if not any(name.endswith(f":{record_id}") for row in changes for name in row.resources):
            # None of the latest changes names the record. It may never have been here.
            raise NotFoundError("The workspace has no record with this id.", key="record")

    def require(self, operation: str) -> None:
        """Raise ForbiddenError if the account's role may not call an operation."""
        require_role(REGISTRY.entry(operation), self.current_membership.role)

    @cached_property
    def principal(self) -> Principal:
        if self.account is None:
            return auth.visitor(self.http)
        session = SessionPrincipal(
            account_id=self.account.id,
            role=self.account.role,
            session_id=self.session_id,
            client_ip=self.http.client_ip,
        )
        if self.http.method == "POST":
            session = replace(
                session,
                code=self.form_value(CODE_FIELD),
                password=self.form_value(PASSWORD_FIELD),
            )
        if self.membership is None:
            return session
        return replace(
            session,
            workspace_id=self.membership.workspace.id,
            plan=self.membership.workspace.plan,
            membership=self.membership.role,
            resource_id=self.membership.row.resource_id or "",
        )

    def call(self, operation: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
        """Call an operation and return ``data`` of its envelope.

        Raises:
            TypeError: the operation has no such argument. Callers of the API get a warning, which
                no page would show.
        """
        return self._call(operation, arguments, None)

    def call_once(self, operation: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
        """Call an operation under the form's idempotency key, so that a double click is harmless.

        Raises:
            AlreadyCreatedError: the form was sent before, and its result was shown then.
        """
        return self._call(operation, arguments, self.form_value(IDEMPOTENCY_FIELD) or None)

    def upload(self, file: SentFile, part: str) -> dict[str, Any]:
        """Store a file of the form, once however often sent; ``part`` tells the files apart."""
        key = self.form_value(IDEMPOTENCY_FIELD)
        content = base64.b64encode(file.content).decode()
        arguments = {"name": file.name, "content": content}
        response = self._call("upload_file", arguments, f"{key}-{part}" if key else None)
        uploaded: dict[str, Any] = response["file"]
        return uploaded

    def call_if(
        self,
        check: Callable[[], None] | None,
        operation: str,
        /,
        **arguments: Any,  # noqa: ANN401  any JSON
    ) -> dict[str, Any]:
        """Call an operation whose changes are committed unless ``check`` raises an error."""
        return self._call(operation, arguments, None, check)

    def _call(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        key: str | None,
        check: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        called = REGISTRY[operation]
        if unknown := parsing.unknown_fields(called.input, arguments):
            first = unknown[0].message
            msg = f"A page calls {operation} with an argument that it does not take. {first}"
            raise TypeError(msg)
        reply = invoke(
            called,
            self.principal,
            lambda: arguments,
            request_id=self.http.request_id,
            idempotency_key=key,
            check=check,
        )
        data: dict[str, Any] = from_json(reply.body)["data"]
        return data

    @cached_property
    def form(self) -> dict[str, list[str]]:
        fields: dict[str, list[str]] = {}
        for name, value in self._parts[0]:
            fields.setdefault(name, []).append(value)
        return fields

    @property
    def sent_files(self) -> list[SentFile]:
        return self._parts[1]

    @cached_property
    def _parts(self) -> tuple[form_data.Fields, list[SentFile]]:
        try:
            if media_type(self.http) == form_data.MULTIPART:
                fields, files = form_data.read_parts(self.http)
                return (fields, files) if len(fields) <= MAX_FIELDS else ([], [])
            body = self.http.body.decode(errors="replace")
            # The limit keeps a body of many tiny fields from taking seconds to parse.
            return parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS), []
        except (ValueError, ValidationError):
            return [], []

    def form_value(self, name: str) -> str:
        """Return the last value of a form field, or "" if it is missing."""
        return (self.form.get(name) or [""])[-1]

    def query_value(self, name: str) -> str:
        """Return the last value of a query parameter, or "" if it is missing."""
        return (list(self.http.query.get(name, ())) or [""])[-1]

    @property
    def path(self) -> str:
        path = self.http.route
        for name, value in self.http.path.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        return path

    @property
    def page_number(self) -> int:
        """The page number of a list in the query, from 1. Anything else counts as 1."""
        text = self.query_value("page")
        return int(text) if re.fullmatch("[1-9][0-9]{0,5}", text, re.ASCII) else 1

    def query_with(self, **changes: object) -> str:
        """Return the page's query with other values, as a relative link. None removes a value."""
        # The confirmation of the last action must not be shown again on the next page.
        values = {name: self.query_value(name) for name in self.http.query if name != "done"}
        values |= {name: "" if value is None else str(value) for name, value in changes.items()}
        return "?" + urlencode({name: value for name, value in values.items() if value})

    @cached_property
    def language(self) -> texts.Language:
        return render.preferred_language(self.http)

    def translate(self, key: str, **values: object) -> str:
        return texts.translate(self.language, key, **values)

    def problem(self, error: AppError) -> Problem:
        """Return the messages of a failure, translated where the catalogue has a translation."""

        def translated(key: str, *, default: str) -> str:
            return self.translate(key) if texts.has(self.language, key) else default

        fields = {
            e.field: translated(
                e.key if e.key.startswith(OWN_KEY) else f"wrong_{e.field}", default=e.message
            )
            for e in error.errors
        }
        waits_days = int(error.headers.get("Retry-After", 0)) > timedelta(hours=1).seconds
        key = f"error_{error.code}" + ("_today" if waits_days else "")
        own_summary = translated(key, default=error.message)
        if error.key in _TEXTS:
            most = error.details.get("maximum")
            own_summary = self.translate(_TEXTS[error.key], most=most)
        summary = self.translate("wrong_fields") if fields else own_summary
        return Problem(summary, fields, error.headers)

    def page(
        self,
        template: str,
        status: int = 200,
        *,
        problem: Problem | None = None,
        **values: object,
    ) -> HttpResponse:
        zone = self.membership.workspace.timezone if self.membership else render.ZONE
        problem = problem or Problem()
        page_values = {
            "request": self,
            "membership": self.membership,
            "may": self.membership.may if self.membership else None,
            "menu": menu(self.membership.may) if self.membership else [],
            "csrf": self.csrf,
            # Each page has a new key, so that a form that is opened again is another call.
            "once": token_urlsafe(18),
            "problem": problem,
            "conflicts": (),
            "done": self._confirmation(),
            "session_over": self.query_value("done") == SESSION_OVER,
            "money": lambda amount, currency=self.currency: texts.money(
                self.language, amount, currency
            ),
            "rubles": lambda kopecks: texts.money(self.language, kopecks, RUB),
            "currency": self.currency,
            "sign": partial(texts.sign, self.language),
            "length": lambda minutes: typed_values.length(self.language, minutes),
            "number": lambda n: texts.number(self.language, n),
            "moment": lambda iso: texts.near_moment(
                self.language, datetime.fromisoformat(iso), zone
            ),
            "offset": lambda iso: texts.offset(datetime.fromisoformat(iso), zone),
            "zone": texts.zone,
            "zone_name": zone,
        }
        response = render.page(
            self.http,
            f"console/{template}.html",
            status,
            cached=False,
            script="console",
            is_test=self.membership is not None and is_test(self.membership.workspace.id),
            **page_values | values,
        )
        return response._replace(headers={**response.headers, **problem.headers})

    def _confirmation(self) -> str:
        key = f"done_{self.query_value('done')}"
        return self.translate(key) if texts.has(self.language, key) else ""


def find_by_id(
    records: Iterable[Mapping[str, Any]], record_id: str, *, key: str = "id"
) -> dict[str, Any]:
    """Return the record with an id, or raise NotFoundError."""
    for record in records:
        if record[key] == record_id:
            return dict(record)
    raise NotFoundError("No record has this id.", key="record")


def _no_workspace() -> NotFoundError:
    return NotFoundError("This workspace does not exist.", key="workspace")
