"""Calling an operation checks the caller, counts the call, commits its rows and records it."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.application.invoke import (
    MAX_ANSWER_BYTES,
    authorize,
    invoke,
    may_use,
)
from chalicelib.core.errors import (
    AdminRequiredError,
    ConflictError,
    ForbiddenError,
    IdempotencyMismatchError,
    InsufficientScopeError,
    PayloadTooLargeError,
    PlanRequiredError,
    RateLimitedError,
    ValidationError,
)
from chalicelib.core.idempotency_keys import _canonical
from chalicelib.core.limits import Limit, RateLimitStatus
from chalicelib.core.operations import Operation, Registry, operation
from chalicelib.core.principals import (
    PLATFORM,
    ApiKeyPrincipal,
    Audience,
    OAuthPrincipal,
    OperatorPrincipal,
    Principal,
    Role,
    SessionPrincipal,
    VisitorPrincipal,
)
from chalicelib.core.scopes import Scope
from chalicelib.core.unit import IdempotencyRecord
from chalicelib.core.wire.schema import Wire
from chalicelib.engine import audit, idempotency, limits
from chalicelib.engine.claims import ClaimRow, claim
from chalicelib.engine.idempotency import MAX_INLINE_BYTES
from tests.conftest import Time
from tests.support.keyed import keyed

pytestmark = pytest.mark.usefixtures("database")

KEY = ApiKeyPrincipal(
    workspace_id="own",
    plan="business",
    account_id="account",
    key_id="k",
    scopes=frozenset(Scope),
    client_ip="192.0.2.1",
)
APP = OAuthPrincipal(
    workspace_id="own", plan="business", account_id="account", key_id="c", scopes=frozenset(Scope)
)
MANAGER = SessionPrincipal(workspace_id="own", account_id="account", membership=Role.MANAGER)
VISITOR = VisitorPrincipal(visitor="v")
OPERATOR = OperatorPrincipal(workspace_id="own")


class Arguments(Wire):
    """Input of the operations that these tests register."""

    id: str = Field(default="one", description="Name of the row to write.")
    note: str = Field(default="", description="Anything.")
    size: int = Field(default=1, description="Number of units.")
    word: str = Field(default="word", min_length=1, description="A word.")
    dry_run: bool = Field(default=False, description="Whether to change nothing.")


class Result(Wire):
    """The tenant of the call."""

    tenant: str
    text: str = ""
    token: str | None = None


def declare(
    handler: Callable[[Context, Arguments], Result] | None = None, **more: Any
) -> Operation:
    """Return an operation that writes a row, or does what the handler does."""
    registry = Registry()

    def write(ctx: Context, args: Arguments) -> Result:
        """Write a row, and return the tenant of the call."""
        if handler is not None:
            return handler(ctx, args)
        ctx.unit.create(
            claim("TEST", name=args.id, target="x"), on_conflict=ConflictError("Taken.")
        )
        return Result(tenant=ctx.unit.tenant, token="secret" if "secret" in more else None)

    options: dict[str, Any] = {"title": "Write", "audience": tuple(Audience), "role": Role.MEMBER}
    options |= more
    if Audience.SESSION not in options["audience"]:
        del options["role"]
    operation(**options, registry=registry)(write)
    return registry["write"]


def call(what: Operation, caller: Principal = KEY, key: str | None = None, **args: Any) -> Any:
    """Call an operation, and return the data of the response."""
    reply = invoke(what, caller, lambda: args, request_id="r", idempotency_key=key)
    data = json.loads(reply.body)["data"]
    assert data.pop("status") is True
    return data


def tenant(caller: Principal, **more: Any) -> str:
    return str(call(declare(**more), caller)["tenant"])


class TestTenants:
    """The workspace whose rows a call uses: keys and sessions never reach another one."""

    @pytest.mark.parametrize("caller", [KEY, APP, MANAGER, OPERATOR])
    def test_a_call_uses_the_callers_own_workspace(self, caller: Principal) -> None:
        assert tenant(caller) == "own"

    @pytest.mark.parametrize("caller", [KEY, APP, MANAGER])
    def test_no_input_leads_a_key_or_a_member_to_another_workspace(self, caller: Principal) -> None:
        assert tenant(caller, resolve=lambda args: f"of {args.id}") == "own"

    @pytest.mark.parametrize("caller", [VISITOR, OPERATOR])
    def test_the_input_leads_a_visitor_and_the_operator_to_a_workspace(
        self, caller: Principal
    ) -> None:
        assert tenant(caller, resolve=lambda args: f"of {args.id}") == "of one"

    def test_the_input_leads_a_person_who_joins_to_a_workspace(self) -> None:
        joins = {"role": Role.ACCOUNT, "resolve": lambda args: f"of {args.id}"}
        assert tenant(MANAGER, **joins) == "of one"

    def test_joining_leads_neither_a_key_nor_a_call_without_a_secret_elsewhere(self) -> None:
        assert tenant(KEY, role=Role.ACCOUNT, resolve=lambda args: f"of {args.id}") == "own"
        assert call(declare(role=Role.ACCOUNT), MANAGER, id="two")["tenant"] == "own"

    @pytest.mark.parametrize("caller", [KEY, APP, MANAGER, VISITOR, OPERATOR])
    def test_operations_of_the_platform_use_its_rows(self, caller: Principal) -> None:
        assert tenant(caller, platform=True, resolve=lambda args: args.id) == PLATFORM


class TestAccess:
    def test_a_principal_of_an_unknown_class_is_refused(self) -> None:
        class Other(ApiKeyPrincipal):
            __slots__ = ()

        other = Other(workspace_id="own", plan="business", key_id="k", scopes=frozenset(Scope))
        with pytest.raises(ForbiddenError):
            authorize(declare(), other)

    @pytest.mark.parametrize("kind", [KEY, APP])
    def test_a_key_needs_the_plan_then_the_scope_then_the_role(self, kind: ApiKeyPrincipal) -> None:
        blog = declare(audience=(Audience.KEY,), scope=Scope.BLOG_WRITE)
        low = replace(kind, plan="free", scopes=frozenset())
        with pytest.raises(PlanRequiredError):
            authorize(blog, low)
        unprivileged = replace(kind, scopes=frozenset({Scope.BLOG_READ, Scope.PAGES_WRITE}))
        with pytest.raises(InsufficientScopeError):
            authorize(blog, unprivileged)
        with pytest.raises(AdminRequiredError):
            authorize(blog, kind)
        authorize(blog, replace(kind, role="admin"))
        pages = declare(audience=(Audience.KEY,), scope=Scope.PAGES_WRITE)
        authorize(pages, unprivileged)
        assert may_use(pages, unprivileged)
        assert may_use(declare(), unprivileged)
        assert not may_use(blog, replace(unprivileged, role="admin"))
        assert not may_use(declare(audience=(Audience.PUBLIC,)), kind)

    @pytest.mark.parametrize(
        ("kind", "place"), [(KEY, "This key does not have"), (APP, "Connected apps")]
    )
    def test_a_refusal_says_where_the_missing_scope_is_granted(
        self, kind: ApiKeyPrincipal, place: str
    ) -> None:
        unprivileged = replace(kind, scopes=frozenset())
        with pytest.raises(InsufficientScopeError, match=place) as caught:
            authorize(declare(audience=(Audience.KEY,), scope=Scope.PAGES_WRITE), unprivileged)
        assert "pages:write" in caught.value.message

    @pytest.mark.parametrize(
        ("role", "place"), [("user", "Only an ADMIN account"), ("admin", "Connected apps")]
    )
    def test_a_refused_app_is_told_who_can_allow_a_scope_of_admins(
        self, role: str, place: str
    ) -> None:
        app = replace(APP, role=role, scopes=frozenset())
        with pytest.raises(InsufficientScopeError, match=place):
            authorize(declare(audience=(Audience.KEY,), scope=Scope.BLOG_WRITE), app)

    def test_a_person_without_a_role_in_the_workspace_is_told_so(self) -> None:
        outside = SessionPrincipal(account_id="account")
        with pytest.raises(ForbiddenError, check=keyed("not_member")):
            authorize(declare(), outside)
        with pytest.raises(ForbiddenError, check=keyed("role_required", role="owner")):
            authorize(declare(role=Role.OWNER), MANAGER)
        authorize(declare(role=Role.MANAGER), MANAGER)


class TestCounting:
    LIMIT = Limit("test", "tests a minute", 3, timedelta(minutes=1))

    @pytest.fixture(autouse=True)
    def _scale(self, monkeypatch: pytest.MonkeyPatch, time: Time) -> None:
        """Limits are not scaled, and the minute of a limit does not end in a test."""
        exact = replace(limits.settings(), rate_limit_scale=1)
        monkeypatch.setattr(limits, "settings", lambda: exact)

    def status(self, what: Operation, caller: Principal = KEY, **args: Any) -> int | None:
        """Call an operation, and return how many units are left."""
        reply = invoke(what, caller, lambda: args, request_id="r")
        return reply.rate_limit.remaining if isinstance(reply.rate_limit, RateLimitStatus) else None

    def test_each_caller_is_counted_even_if_the_call_fails(self) -> None:
        what = declare(limit=self.LIMIT)
        assert self.status(what) == 2
        with pytest.raises(ConflictError):
            self.status(what)
        assert self.status(what, id="two") == 0
        with pytest.raises(RateLimitedError):
            self.status(what, id="three")
        assert self.status(what, APP, id="three") == 2

    def test_a_limit_that_is_reached_is_the_error_of_an_invalid_call(self) -> None:
        what = declare(limit=self.LIMIT)
        for _ in range(3):
            with pytest.raises(Exception, match="size"):
                self.status(what, size="many")
        with pytest.raises(RateLimitedError):
            self.status(what, size="many")

    def test_a_call_with_an_idempotency_key_reports_its_limit(self) -> None:
        what = declare(limit=self.LIMIT)
        reply = invoke(what, KEY, dict, request_id="r", idempotency_key="key")
        assert reply.rate_limit is not None
        assert reply.rate_limit.remaining == 2

    def test_the_operator_is_not_limited(self) -> None:
        what = declare(limit=self.LIMIT)
        assert [self.status(what, OPERATOR, id=str(n)) for n in range(5)] == [None] * 5

    def test_a_limit_may_weigh_a_call_by_its_input(self) -> None:
        what = declare(limit=self.LIMIT.weighed(lambda args: args.size))
        assert self.status(what, id="a", size=2) == 1
        assert self.status(what, id="b", size=0) is None
        with pytest.raises(RateLimitedError):
            self.status(what, id="c", size=2)
        assert self.status(what, id="d") == 0

    def test_a_limit_may_count_by_a_part_of_the_input(self) -> None:
        what = declare(limit=replace(self.LIMIT, within=lambda args: args.note))
        assert self.status(what, id="a", note="x") == 2
        assert self.status(what, id="b", note="x") == 1
        assert self.status(what, id="c", note="y") == 2
        assert self.status(what, APP, id="d", note="x") == 2


class TestCommits:
    def test_a_read_and_a_trial_commit_nothing(self) -> None:
        call(declare(reads=True))
        call(declare(), dryRun=True)
        call(declare(), key="key", dryRun=True)
        assert ClaimRow.find_claim("TEST", name="one") is None
        call(declare(), key="key")
        assert ClaimRow.find_claim("TEST", name="one") is not None

    def test_a_read_takes_no_idempotency_key(self) -> None:
        calls: list[Arguments] = []

        def note(_: Context, args: Arguments) -> Result:
            calls.append(args)
            return Result(tenant="")

        what = declare(note, reads=True)
        for _ in range(2):
            call(what, key="key")
        assert len(calls) == 2

    def test_a_change_is_recorded_with_its_caller_and_its_fields_without_ids(self) -> None:
        call(declare(), note="private", size=2)
        (record,) = audit.latest("own")
        assert (record.operation, record.actor, record.key_id) == ("write", "account", "k")
        assert (record.client_ip, record.request_id) == ("192.0.2.1", "r")
        assert record.fields == ["note", "size"]
        call(declare(), MANAGER, id="two")
        record, _ = audit.latest("own")
        assert (record.actor, record.key_id, record.fields) == ("account", "", [])

    def test_a_change_of_the_platform_is_recorded_in_the_callers_workspace(self) -> None:
        call(declare(platform=True))
        assert audit.latest(PLATFORM) == []
        assert len(audit.latest("own")) == 1

    def test_reads_and_operations_that_are_only_counted_are_not_recorded(self) -> None:
        call(declare(reads=True))
        call(declare(audit=False))
        assert audit.latest("own") == []


class TestAnswers:
    def test_ignored_fields_are_warnings_of_an_answer_and_of_a_failure(self) -> None:
        answer = call(declare(), nonsense=1)
        (warning,) = answer["warnings"]
        facts = {"field": "nonsense", "suggestion": None}
        assert answer["warningDetails"] == [{"code": "unknown_field", "message": warning, **facts}]
        assert list(answer)[:2] == ["warnings", "warningDetails"]
        assert not call(declare(), id="two").keys() & {"warnings", "warningDetails"}
        with pytest.raises(ConflictError) as caught:
            call(declare(), nonsense=1)
        assert caught.value.details == {name: answer[name] for name in list(answer)[:2]}
        with pytest.raises(ConflictError) as caught:
            call(declare())
        assert caught.value.details == {}

    @pytest.mark.parametrize("more", [0, 1])
    def test_an_answer_that_lambda_could_not_send_is_refused(self, more: int) -> None:
        length = 0

        def answer(*_: Any) -> Result:
            return Result(tenant="", text="x" * length)

        empty = invoke(declare(answer), KEY, dict, request_id="r").body.decode()
        length = MAX_ANSWER_BYTES - len(json.dumps(json.dumps(empty))) + more  # quoted twice
        if more:
            with pytest.raises(PayloadTooLargeError, check=keyed("response")):
                call(declare(answer))
        else:
            assert len(call(declare(answer))["text"]) == length

    def test_messages_name_operations_as_the_caller_does(self) -> None:
        def refuse(*_: Any) -> Result:
            raise ConflictError("Call it first.")

        with pytest.raises(ConflictError) as caught:
            invoke(declare(refuse), KEY, dict, request_id="r", naming=str.upper)
        assert caught.value.message == "CALL IT FIRST."

    @pytest.mark.parametrize("more", [0, 1])
    def test_an_answer_that_its_row_cannot_hold_is_replayed_from_an_object(self, more: int) -> None:
        length = 0

        def answer(*_: Any) -> Result:
            return Result(tenant="", text="x" * length)

        what = declare(answer)
        length = MAX_INLINE_BYTES - len(invoke(what, KEY, dict, request_id="r").body) + more
        first, repeated = (
            invoke(what, KEY, dict, request_id=request_id, idempotency_key="key")
            for request_id in "ab"
        )
        assert len(first.body) == MAX_INLINE_BYTES + more
        assert (repeated.body, repeated.replayed) == (first.body, True)
        place = IdempotencyRecord(f"{KEY.rate_limit_key}#write", "key", "")
        record = idempotency.find("own", place)
        assert record is not None
        assert bool(record.object_key) == bool(more)

    def test_an_empty_text_is_left_out_of_a_call_that_destroys_nothing(self) -> None:
        call(declare(), word="")
        with pytest.raises(ValidationError, match="word"):
            call(declare(destructive=True), id="two", word="")

    def test_a_default_that_is_sent_makes_another_call(self) -> None:
        call(declare(), key="key")
        with pytest.raises(IdempotencyMismatchError):
            call(declare(), key="key", note="")

    def test_the_order_of_keys_makes_no_other_call(self) -> None:
        one = {"b": [1, {"y": None, "x": "ж"}], "a": True}
        other = {"a": True, "b": [1, {"x": "ж", "y": None}]}
        assert _canonical(one) == _canonical(other)
        assert json.loads(_canonical(one)) == one
        assert _canonical([1, 2]) != _canonical([2, 1])
