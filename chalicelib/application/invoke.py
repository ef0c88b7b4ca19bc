"""The only way to run an operation, for every kind of caller."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import from_json, to_json

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline, idempotency_keys
from chalicelib.core.call_names import Naming, call_name, insert_routes
from chalicelib.core.call_warnings import CallWarning
from chalicelib.core.errors import (
    AdminRequiredError,
    AlreadyCreatedError,
    AppError,
    ForbiddenError,
    IdempotencyKeyExistsError,
    InsufficientScopeError,
    NotFoundError,
    PayloadTooLargeError,
    PlanRequiredError,
    RateLimitedError,
    UnavailableError,
    ValidationError,
)
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.limits import KEY_CALLS, Limit, RateLimitStatus
from chalicelib.core.operations import Entry, Operation
from chalicelib.core.plans import PLANS_WITH_API
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
from chalicelib.core.unit import AuditEvent, IdempotencyRecord
from chalicelib.core.wire import money, parsing
from chalicelib.core.wire.schema import Wire, wire_name
from chalicelib.engine import idempotency, jobs, limits
from chalicelib.engine.events import subscriptions
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.engine.workspace_currency import money_unit_of
from chalicelib.gateways.object_store import object_store

if TYPE_CHECKING:
    from chalicelib.core.own_part import OwnPart  # Few operations have one.

MAX_ANSWER_BYTES = 5_900_000  # of a response of Lambda, headers included (AWS Lambda quotas: 6 MB)
_KNOWN_CALLERS = {
    ApiKeyPrincipal,
    OAuthPrincipal,
    SessionPrincipal,
    VisitorPrincipal,
    OperatorPrincipal,
}


class Reply(NamedTuple):
    """The response to a call."""

    body: bytes  # the envelope as UTF-8 JSON
    replayed: bool = False  # a stored response of an idempotency key
    # The state of the limit that counted the call, if any.
    rate_limit: RateLimitStatus | None = None
    status: int = 200


def invoke(  # noqa: PLR0913  the parts of a call
    operation: Operation,
    principal: Principal,
    read: Callable[[], Mapping[str, Any]],
    *,
    request_id: str,
    idempotency_key: str | None = None,
    naming: Naming = insert_routes,
    check: Callable[[], None] | None = None,
    is_strict: bool = False,
) -> Reply:
    """Run an operation: access, limit, input, idempotency, handler, one commit, envelope.

    ``read`` returns the input under wire names, after the access checks, so that a body is not
    parsed for a caller who may not send it. ``naming`` rewrites the names of operations in messages
    for the caller. ``check`` is called before each attempt to commit what the handler has staged,
    and refuses it by an error. With ``is_strict``, unknown input is refused and not ignored. An
    AppError, any failure that a client can see, changes nothing.
    """
    notes: list[CallWarning] = []
    tenant: str | None = None
    try:
        authorize(operation, principal)
        own_status = _count_for_key(principal)
        limit = operation.limit if principal.limited else None
        limit_check: Future[RateLimitStatus | None] | None = None
        with deadline.side_by_side() as start:
            try:
                if limit is not None and not limit.needs_input:
                    # The counter is in DynamoDB. Counting while the body is parsed hides the round
                    # trip.
                    limit_check = start(partial(limits.take_share, limit, principal.share_subjects))
                raw = read()
                if is_strict:
                    parsing.check_known(operation.input, raw)
                list_name = partial(call_name, operation, naming)
                filtered_list = list_name if operation.returns_list else None
                notes = parsing.unknown_fields(operation.input, raw, filtered_list=filtered_list)
                with money.counted_in(partial(money_unit_of, principal.workspace_id)):
                    args = parsing.parse(
                        operation.input, raw, drop_empty=operation.drops_empty_texts
                    )
                args = _bind(operation, principal, args)
                # Most calls of a weighed limit take no unit of it, and need no thread.
                if limit is not None and limit.needs_input and (units := _units(limit, args)):
                    limit_check = start(partial(_count, limit, principal, args, units))
                tenant = _tenant(operation, principal, args)
            except ValidationError:
                if limit_check is None:
                    # A limit that needs the input has not counted this call. A caller over the
                    # limit still gets 429.
                    _check_used_up(limit, principal)
                raise
            finally:  # If the limit is reached, that is the error of the call.
                status = _counted(operation, limit_check, tenant) if limit_check else None
        call = _Call(operation, principal, args, tenant, request_id, notes, naming, check)
        # A dry run commits nothing, so its response must not be replayed for a real call.
        # Repeating a call of an operation that accepts no key changes nothing.
        if idempotency_key is None or not operation.accepts_idempotency_key or call.dry_run:
            reply = call.run(None)
        else:
            reply = call.run_once(idempotency_keys.check(idempotency_key))
        counts = [count for count in (status, own_status) if count is not None]
        if not counts:
            return reply
        return reply._replace(rate_limit=min(counts, key=lambda count: count.remaining))
    except AppError as error:
        error.reword(naming)
        if notes:  # an ignored field may be the reason for the failure
            error.details |= _warning_fields(notes)
        raise


def _count_for_key(principal: Principal) -> RateLimitStatus | None:
    most = principal.calls_per_minute if isinstance(principal, ApiKeyPrincipal) else None
    if most is None:
        return None
    # Before the operation's own limit, which then does not count what this one refuses.
    return limits.take(replace(KEY_CALLS, max_requests=most), principal.rate_limit_key)


def _counted(
    operation: Operation, count: Future[RateLimitStatus | None], tenant: str | None
) -> RateLimitStatus | None:
    """Return the result of counting a call. ``tenant`` is None if the input does not say it."""
    try:
        return count.result()
    except RateLimitedError as error:
        if operation.when_limited is None or tenant is None:
            raise
        raise operation.when_limited(error, tenant) from None


def _units(limit: Limit, args: Wire) -> int:
    return 1 if limit.weigh is None else limit.weigh(args)


def _count(limit: Limit, principal: Principal, args: Wire, units: int) -> RateLimitStatus | None:
    within = "" if limit.within is None else f"#{limit.within(args)}"
    subjects = [f"{subject}{within}" for subject in principal.share_subjects]
    return limits.take_share(limit, subjects, units)


def authorize(operation: Operation, principal: Principal) -> None:
    """Check the audience, role in the workspace, plan, scope and account role, in this order.

    Raises ForbiddenError, or RateLimitedError for a key that has used up the operation's limit.
    Refused calls are not counted.
    """
    # The exact type counts: a new subclass must be added to the set, or it may call nothing.
    if type(principal) not in _KNOWN_CALLERS or principal.audience not in operation.audience:
        raise ForbiddenError("This kind of caller cannot use this operation.", key="wrong_caller")
    if isinstance(principal, SessionPrincipal):
        require_role(operation, principal.membership)
        scope = operation.scope
        if scope is not None and scope.admin_only and principal.role != "admin":
            raise AdminRequiredError("This call is for ADMIN accounts; yours is not one.")
    if not isinstance(principal, ApiKeyPrincipal):
        return
    try:
        _check_key(operation, principal)
    except ForbiddenError:
        _check_used_up(operation.limit, principal)
        raise


def _own_part(operation: Operation, principal: Principal) -> "tuple[OwnPart | None, str]":
    """Return what bounds a call by a member of the staff, and the member's resource."""
    if isinstance(principal, SessionPrincipal) and principal.membership is Role.STAFF:
        # Operations for any account have no part. They are not about the workspace.
        return operation.own, principal.resource_id
    return None, ""


def _bind(operation: Operation, principal: Principal, args: Wire) -> Wire:
    own_part, own_id = _own_part(operation, principal)
    return args if own_part is None else own_part.bind(args, own_id)


def _check_used_up(limit: Limit | None, principal: Principal) -> None:
    if limit is not None and limit.within is None and principal.limited:
        # The call is refused anyway. A failure of the database must not replace the reason.
        with suppress(UnavailableError):
            for counter in limits.visitor_limits(limit, principal.share_subjects):
                limits.check(*counter)


def _check_key(operation: Operation, principal: ApiKeyPrincipal) -> None:
    require_plan(principal.plan)
    if may_use(operation, principal):
        return
    scope = operation.scope
    if scope not in principal.scopes:
        raise InsufficientScopeError(_missing_scope(principal, scope), details={"scope": scope})
    msg = (
        f"Expected a key of an ADMIN account, which the scope {scope} requires. The account of "
        "this key is not an ADMIN account."
    )
    raise AdminRequiredError(msg)


def _missing_scope(principal: ApiKeyPrincipal, scope: Scope | None) -> str:
    if isinstance(principal, OAuthPrincipal):
        how = "Connect the app again with it, or allow it in the console under Connected apps."
        if scope is not None and scope.admin_only and principal.role != "admin":
            how = "Only an ADMIN account can allow it."
        return f"This connection does not have the scope {scope}. {how}"
    return f"This key does not have the scope {scope}. Create a key with this scope in the console."


def require_role(entry: Entry, membership: Role) -> None:
    """Raise ForbiddenError, naming both roles, if a member's role is lower than required."""
    if may_in_console(entry, membership):
        return
    if membership is Role.ACCOUNT:
        raise ForbiddenError(
            "Only members of the workspace can use this operation.", key="not_member"
        )
    msg = (
        f"{entry.title}: expected the role {entry.role} in the workspace, but your role is "
        f"{membership}. Ask the owner or a manager."
    )
    raise ForbiddenError(msg, key="role_required", details={"role": entry.role})


def may_in_console(entry: Entry, membership: Role) -> bool:
    """Whether a member with a role may call an operation in the console."""
    if membership is Role.STAFF and entry.for_staff:
        return True
    return entry.role is not None and membership.includes(entry.role)


def may_use(entry: Entry, principal: ApiKeyPrincipal) -> bool:
    """Whether a key's scopes and role admit an operation."""
    return allows(principal.scopes, principal.role, entry)


def allows(scopes: Collection[Scope], role: str, entry: Entry) -> bool:
    """Whether a key with these scopes, of an account with this role, may call an operation."""
    scope = entry.scope
    if Audience.KEY not in entry.audience:
        return False
    return scope is None or (scope in scopes and (role == "admin" or not scope.admin_only))


def require_plan(plan: str) -> None:
    """Refuse to use or create keys in workspaces below the Business plan, or that are halted."""
    if plan == "suspended":
        msg = "This workspace is suspended, so its keys and connected apps do not work."
        raise PlanRequiredError(msg, key="workspace_suspended")
    if plan == "closed":
        msg = "This workspace is closed, so its keys and connected apps do not work."
        raise PlanRequiredError(msg, key="workspace_closed")
    if plan not in PLANS_WITH_API:
        msg = (
            "The API requires the Business plan or a higher one, but this workspace has the "
            f"plan {plan}. Upgrade the plan."
        )
        raise PlanRequiredError(msg, key="plan")


def _tenant(operation: Operation, principal: Principal, args: Wire) -> str:
    # Operations of the platform use its tenant. In other operations, keys and sessions always use
    # their own workspace, regardless of the input. The exception is a user who joins a workspace:
    # an operation for any account may find the workspace by a secret of the input.
    if operation.platform:
        return PLATFORM
    joins = principal.audience is Audience.SESSION and operation.role is Role.ACCOUNT
    free = joins or principal.audience in {Audience.PUBLIC, Audience.OPERATOR}
    if operation.resolve is not None and free:
        return operation.resolve(args)
    return principal.workspace_id


class _Call(NamedTuple):
    operation: Operation
    principal: Principal
    args: Wire
    tenant: str
    request_id: str
    notes: list[CallWarning]
    naming: Naming
    check: Callable[[], None] | None

    @property
    def dry_run(self) -> bool:
        # Of a field that a model does not have, pydantic asks in three places.
        return "dry_run" in type(self.args).__pydantic_fields__ and bool(self.args.dry_run)  # type: ignore[attr-defined]

    def run(self, record: IdempotencyRecord | None) -> Reply:
        def stage(unit: UnitOfWork) -> Reply:
            # Each attempt starts without the warnings of abandoned attempts.
            ctx = Context(self.principal, unit, self.request_id, list(self.notes), self.naming)
            if self.operation.confirm is not None:
                self.operation.confirm(ctx, self.args, self.operation.name)
            if self.operation.open_world:  # An outside effect cannot be taken back.
                self._require_open()
            # Afterwards, because most handlers read the workspace, which then needs no request.
            own_part, own_id = _own_part(self.operation, self.principal)
            try:
                if own_part is not None:
                    own_part.check_record(unit, self.args, own_id)
                result = self.operation.handler(ctx, self.args)
                if own_part is not None:
                    own_part.check_writes(unit, own_id)
                    result = own_part.cut(result, own_id)
            except AppError:
                self._require_open()
                raise
            self._require_open()
            if self.check is not None:
                self.check()
            body = _envelope(result, ctx.warnings)
            accepted = self.operation.accepted
            status = 202 if accepted is not None and isinstance(result, accepted) else 200
            if record is not None:
                answered = replace(record, status=status)
                unit.keep(self._record_with_answer(unit, answered, result, body))
            return Reply(body, status=status)

        return run_unit(
            self.tenant,
            self._event(),
            stage,
            record=record,
            request_id=self.request_id,
            dry_run=self.operation.read_only or self.dry_run,
        )

    def _require_open(self) -> None:
        # Visitors see a workspace that is suspended or closed like one that does not exist.
        is_visitor = self.principal.audience is Audience.PUBLIC
        if not is_visitor or self.operation.while_halted or self.tenant == PLATFORM:
            return
        if subscriptions.halt_of(self.tenant) is not None:
            raise NotFoundError("This does not exist. Check the link.", key="workspace")

    def run_once(self, key: str) -> Reply:
        # The response is committed with the writes, under the condition that the key is unused. Of
        # several concurrent calls, one commits and the others find its response. The common first
        # call therefore costs no extra read. A failed call looks for a stored response and only
        # then reports its failure. The response may be its own, if the reply to its commit was
        # lost. A repeated call may also fail because of the changes that the first call made.
        # Operations with outside effects mark the key before they start, because such effects must
        # not happen twice.
        scope = f"{self.principal.rate_limit_key}#{self.operation.name}"
        record = IdempotencyRecord(scope, key, idempotency_keys.fingerprint(self.args))
        tenant = self.tenant
        marks = self.operation.open_world
        try:
            # An outside effect must not happen twice, so the key is marked before the effect
            # begins.
            if marks and not idempotency.mark_in_progress(tenant, record, owner=self.request_id):
                raise IdempotencyKeyExistsError  # noqa: TRY301  as the commit would
            return self.run(record)
        except IdempotencyKeyExistsError:
            return self._replay(record, idempotency.find(tenant, record))
        except Exception:
            # The response may be this call's own, if the reply to its commit was lost. A repeated
            # call may also fail because of the changes that the first call made.
            stored_record = idempotency.find(tenant, record)
            if stored_record is None or stored_record.is_pending:
                if marks:
                    # The effect is not stored, so the caller may retry before the mark expires.
                    idempotency.clear_in_progress(tenant, record, owner=self.request_id)
                raise
            return self._replay(record, stored_record)

    def _replay(self, record: IdempotencyRecord, stored_record: IdempotencyRecord | None) -> Reply:
        complete_record = record.require_answer(stored_record)
        body = complete_record.body
        if (
            complete_record.object_key is not None
            and (body := object_store().get(complete_record.object_key)) is None
        ):
            # The object outlives its record, so a missing object is a fault of the store.
            raise UnavailableError
        if self.operation.secret is not None:
            details = from_json(body or b"{}")["data"]
            for name in ("status", self.operation.secret):  # the secret's field is empty
                details.pop(name)
            msg = (
                "The first call with this idempotency key returned the secret, which is shown "
                "only once. If the secret is lost, revoke the created record, and create "
                "another one with a new idempotency key."
            )
            raise AlreadyCreatedError(msg, details=details)
        return Reply(body or b"", replayed=True, status=complete_record.status)

    def _record_with_answer(
        self, unit: UnitOfWork, record: IdempotencyRecord, result: Wire, body: bytes
    ) -> IdempotencyRecord:
        # A large response becomes an object.
        if self.operation.secret is not None:
            public = result.model_copy(update={self.operation.secret: None})
            return replace(record, body=_envelope(public, []))
        if len(body) <= idempotency.MAX_INLINE_BYTES:
            return replace(record, body=body)
        key, store = f"{unit.tenant}/answers/{self.request_id}.json", object_store()
        # The deletion is registered first, because a write that fails may still have stored the
        # object.
        unit.on_failure(lambda: store.delete(key))
        store.put(key, body, "application/json")
        # A replay in the last minute of the record must still find the object.
        expiry = clock.now() + idempotency.RETENTION + timedelta(hours=1)
        unit.create(jobs.row(idempotency.ANSWER_EXPIRED, unit.tenant, {"key": key}, expiry))
        return replace(record, object_key=key)

    def _event(self) -> AuditEvent | None:
        # A read stages nothing, so it has nothing to record.
        if self.operation.read_only or not self.operation.audit:
            return None
        names = tuple(wire_name(type(self.args), name) for name in self.args.provided("id"))
        caller = self.principal
        return AuditEvent(
            operation=self.operation.name,
            actor=caller.audit_actor,
            fields=names,
            key_id=caller.key_id if isinstance(caller, ApiKeyPrincipal) else "",
            client_ip=caller.client_ip,
            request_id=self.request_id,
            workspace_id=caller.workspace_id if self.operation.platform else "",
        )


@job_handler(idempotency.ANSWER_EXPIRED)
def remove_answer(job: Job) -> None:
    """Remove the object of a stored response that can no longer be replayed."""
    object_store().delete(job.payload["key"])


def _warning_fields(warnings: list[CallWarning]) -> dict[str, list[Any]]:
    return {
        "warnings": [warning.message for warning in warnings],
        "warningDetails": [warning.detail() for warning in warnings],
    }


def _envelope(result: Wire, warnings: list[CallWarning]) -> bytes:
    # AI clients may cut a long response at its end, so warnings come first.
    parts = [b'"status":true', to_json(_warning_fields(warnings))[1:-1] if warnings else b""]
    # Without the braces, the warnings and the result form one object, and no part is serialized
    # twice.
    # ``model_dump_json`` would decode the bytes.
    parts.append(result.__pydantic_serializer__.to_json(result, by_alias=True)[1:-1])
    body = b'{"data":{%b}}' % b",".join(filter(None, parts))
    if (size := _size_at_most(body)) > MAX_ANSWER_BYTES:
        msg = (
            f"The response would have {size:,} bytes, but the maximum is {MAX_ANSWER_BYTES:,}. "
            "Request a smaller page or part."
        )
        raise PayloadTooLargeError(msg, key="response")
    return body


_GROWTH = 4  # A quote becomes four bytes when text is quoted twice.


def _size_at_most(body: bytes) -> int:
    # A tool's result contains the response as a string, which a JSON response quotes again.
    # Most responses are small enough at four times their size, and need no exact measurement.
    if len(body) * _GROWTH <= MAX_ANSWER_BYTES:
        return len(body)
    return len(to_json(to_json(body.decode()).decode()))
