"""One declaration per operation, one registry of them, one path to a handler.

``@operation`` is all there is to say about an operation: its REST route, MCP tool, scope, schemas,
reference entry and sweep tests come from it. ``invoke`` is the only way to run one, whoever calls.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import cleandoc
from typing import Any, TypeVar, get_type_hints

from pydantic_core import to_json

from chalicelib.core import parsing
from chalicelib.core.errors import (
    AdminRequiredError,
    IdempotencyKeyExistsError,
    InsufficientScopeError,
    PayloadTooLargeError,
    PlanRequiredError,
    ValidationError,
)
from chalicelib.core.json_schema import json_schema
from chalicelib.core.retry import retry_on_conflict
from chalicelib.core.schema import Wire, wire_name
from chalicelib.core.scopes import PLANS_WITH_API, Scope
from chalicelib.core.unit import AuditEvent, IdempotencyRecord, Unit

MAX_ANSWER_BYTES = 5_900_000
"""Lambda answers at most 6 MB (AWS Lambda quotas), headers included."""


@dataclass(frozen=True, slots=True)
class Context:
    """Who calls, and the unit of work the call writes to.

    Made by the transports from the key record.
    """

    workspace_id: str
    account_id: str
    role: str
    plan: str
    scopes: frozenset[Scope]
    key_id: str
    request_id: str
    client_ip: str
    unit: Unit
    warnings: list[str] = field(default_factory=list)

    def warn(self, message: str) -> None:
        """Add a sentence to ``data.warnings``.

        The call succeeded, but not quite as the caller may think.
        """
        if message not in self.warnings:
            self.warnings.append(message)


@dataclass(frozen=True)
class Operation:
    """An operation's declaration. Made by ``@operation`` only."""

    name: str
    tool: str | None
    method: str
    path: str
    scope: Scope | None
    title: str
    description: str
    input: type[Wire]
    output: type[Wire]
    handler: Callable[[Context, Any], Wire]
    destructive: bool
    idempotent: bool
    open_world: bool
    file_field: str | None = None
    form: bool = False
    adds: bool = False

    @property
    def read_only(self) -> bool:
        """Reads are GET, and only reads."""
        return self.method == "GET"

    @property
    def accepts_idempotency_key(self) -> bool:
        """Whether it takes an idempotency key: every write that is not idempotent by itself.

        Or that has a part which is not, such as an addition.
        """
        return not self.read_only and (self.adds or not self.idempotent)

    @property
    def reads_query(self) -> bool:
        """Whether its REST input is the query string rather than a body."""
        return self.method in {"GET", "DELETE"}

    @cached_property
    def path_parameters(self) -> tuple[str, ...]:
        """Names of the path's variables."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the input."""
        return json_schema(self.input)

    @property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of the fields inside ``data``."""
        return json_schema(self.output, "serialization")


class Registry:
    """Every operation, in the order of declaration; names, tools and routes are unique."""

    def __init__(self) -> None:
        self._operations: dict[str, Operation] = {}

    def __iter__(self) -> Iterator[Operation]:
        """Iterate in the order of declaration."""
        return iter(self._operations.values())

    def __len__(self) -> int:
        """Return how many operations there are."""
        return len(self._operations)

    def __getitem__(self, name: str) -> Operation:
        """Return the operation whose handler has this name."""
        return self._operations[name]

    def add(self, operation: Operation) -> None:
        """Add an operation; a clash with an earlier one is a programming error."""
        for other in self:
            if operation.name == other.name or (operation.tool and operation.tool == other.tool):
                msg = f"{operation.name} ({operation.tool}) is declared twice"
                raise ValueError(msg)
            if (operation.method, operation.path) == (other.method, other.path):
                msg = f"{operation.method} {operation.path} is declared twice"
                raise ValueError(msg)
        self._operations[operation.name] = operation


REGISTRY = Registry()

W = TypeVar("W", bound=Wire)
R = TypeVar("R", bound=Wire)


def operation(  # noqa: PLR0913  the declaration is the point
    *,
    tool: str | None,
    rest: str,
    scope: Scope | None,
    title: str,
    destructive: bool = False,
    idempotent: bool | None = None,
    open_world: bool = False,
    file_field: str | None = None,
    form: bool = False,
    adds: bool = False,
    registry: Registry = REGISTRY,
) -> Callable[[Callable[[Context, W], R]], Callable[[Context, W], R]]:
    """Declare a handler ``(ctx, args) -> result`` as an operation.

    Input and output models come from its hints, the public description from its docstring.
    ``scope=None`` means any valid key, ``tool=None`` that it is for programs only. ``idempotent``
    defaults to true for reads and false for writes. ``file_field`` names the input, bytes in
    base64, that may also come as the file of a ``multipart/form-data`` body; with ``form`` the
    whole input may also come as an HTML form without files. ``adds`` tells that an operation called
    idempotent can add to a value, and so takes an idempotency key all the same.
    """
    method, _, path = rest.partition(" ")

    def declare(handler: Callable[[Context, W], R]) -> Callable[[Context, W], R]:
        hints = get_type_hints(handler)
        registry.add(
            Operation(
                name=handler.__name__,
                tool=tool,
                method=method,
                path=path,
                scope=scope,
                title=title,
                description=cleandoc(handler.__doc__ or ""),
                input=hints["args"],
                output=hints["return"],
                handler=handler,
                destructive=destructive,
                idempotent=method == "GET" if idempotent is None else idempotent,
                open_world=open_world,
                file_field=file_field,
                form=form,
                adds=adds,
            )
        )
        return handler

    return declare


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a call: the envelope as UTF-8 JSON.

    ``replayed`` if an idempotency key found it stored.
    """

    body: bytes
    replayed: bool = False


def invoke(
    operation: Operation,
    ctx: Context,
    read: Callable[[], Mapping[str, Any]],
    idempotency_key: str | None = None,
) -> Reply:
    """Run an operation: access, input, idempotency, handler, one commit, envelope.

    ``read`` returns the input under wire names; it runs after the access checks, so that a body is
    not parsed for a caller who may not send it. An idempotency key has no effect on an operation
    that is not ``accepts_idempotency_key``: repeating it changes nothing anyway.

    Raises:
        AppError: any failure a client can see; nothing was changed then.
    """
    authorize(operation, ctx)
    raw = read()
    args = parsing.parse(operation.input, raw)
    for warning in parsing.unknown_fields(args, raw):
        ctx.warn(warning)
    dry_run = bool(getattr(args, "dry_run", False))
    if idempotency_key is None or not operation.accepts_idempotency_key or dry_run:
        return Reply(_run(operation, ctx, args, None, dry_run=dry_run))
    return _run_once(operation, ctx, args, _check_key(idempotency_key))


def authorize(operation: Operation, ctx: Context) -> None:
    """Check plan, scope and role, in this order (contract, Keys and scopes)."""
    require_plan(ctx)
    if may_use(operation, ctx):
        return
    scope = operation.scope
    if scope not in ctx.scopes:
        msg = f"This key lacks the scope {scope}. Create a key that has it in the settings."
        raise InsufficientScopeError(msg)
    msg = f"The scope {scope} is for keys of ADMIN accounts; this key's account is not one."
    raise AdminRequiredError(msg)


def may_use(operation: Operation, ctx: Context) -> bool:
    """Whether the caller's scopes and role admit an operation."""
    scope = operation.scope
    return scope is None or (scope in ctx.scopes and (ctx.role == "admin" or not scope.admin_only))


def require_plan(ctx: Context) -> None:
    """Refuse workspaces below the Business plan."""
    if ctx.plan not in PLANS_WITH_API:
        msg = f"The API needs the Business plan or above; this workspace is on {ctx.plan}. Upgrade."
        raise PlanRequiredError(msg)


MAX_KEY_LENGTH = 255


def _check_key(key: str) -> str:
    if not 1 <= len(key) <= MAX_KEY_LENGTH:
        message = f"expected 1 to {MAX_KEY_LENGTH} characters, received {len(key)}"
        raise ValidationError.of("idempotencyKey", message)
    return key


def _run_once(operation: Operation, ctx: Context, args: Wire, key: str) -> Reply:
    """Run under an idempotency key.

    The result is committed with the writes, under the condition that the key is unused: of any
    number of racing calls one commits, and the rest find its answer. So the common, first call
    costs no extra read. A failed call looks for a stored answer before it reports its failure,
    since a replay may well fail on what the first call did. Operations with outside effects mark
    the key before they start, for those must not happen twice.
    """
    unfinished = IdempotencyRecord(key, _fingerprint(operation, args), None)
    if operation.open_world and not ctx.unit.mark_in_progress(unfinished):
        return _replay(unfinished, ctx.unit.find_idempotency_record(key))
    try:
        return Reply(_run(operation, ctx, args, unfinished, dry_run=False))
    except IdempotencyKeyExistsError:
        return _replay(unfinished, ctx.unit.find_idempotency_record(key))
    except Exception:
        if operation.open_world:
            ctx.unit.clear_in_progress(key)
            raise
        stored = ctx.unit.find_idempotency_record(key)
        if stored is None:
            raise
        return _replay(unfinished, stored)


def _replay(wanted: IdempotencyRecord, stored: IdempotencyRecord | None) -> Reply:
    return Reply(wanted.answer(stored), replayed=True)


def _fingerprint(operation: Operation, args: Wire) -> str:
    given = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return hashlib.sha256(operation.name.encode() + b"\0" + _canonical(given)).hexdigest()


def _canonical(value: Any) -> bytes:  # noqa: ANN401  any JSON value
    """Return JSON bytes that do not depend on the order of keys."""
    if isinstance(value, dict):
        parts = [to_json(key) + b":" + _canonical(value[key]) for key in sorted(value)]
        return b"{" + b",".join(parts) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(_canonical, value)) + b"]"
    return to_json(value)


def _run(
    operation: Operation,
    ctx: Context,
    args: Wire,
    replay: IdempotencyRecord | None,
    *,
    dry_run: bool,
) -> bytes:
    """Run the handler and commit what it staged; after a lost race both happen again."""
    change = _change(operation, ctx, args)

    def attempt() -> bytes:
        ctx.unit.begin(change, replay)
        body = _envelope(operation.handler(ctx, args), ctx.warnings)
        if not operation.read_only and not dry_run:
            kept = replay and IdempotencyRecord(replay.key, replay.fingerprint, body)
            ctx.unit.commit(change, kept)
        return body

    try:
        return retry_on_conflict(attempt)
    except BaseException:
        ctx.unit.fail()
        raise


def _change(operation: Operation, ctx: Context, args: Wire) -> AuditEvent:
    names = (wire_name(type(args), name) for name in args.provided("id"))
    return AuditEvent(
        operation.name, tuple(names), ctx.account_id, ctx.key_id, ctx.client_ip, ctx.request_id
    )


def _envelope(result: Wire, warnings: list[str]) -> bytes:
    """Return the answer's bytes; the result is written once, straight to JSON."""
    parts = [b'"status":true', result.model_dump_json(by_alias=True).encode()[1:-1]]
    if warnings:
        parts.append(b'"warnings":' + to_json(warnings))
    body = b'{"data":{%b}}' % b",".join(filter(None, parts))
    if (size := _size_at_most(body)) > MAX_ANSWER_BYTES:
        msg = (
            f"The answer would be {size:,} bytes; the limit is {MAX_ANSWER_BYTES:,}. "
            "Ask for a smaller page or part."
        )
        raise PayloadTooLargeError(msg)
    return body


_GROWTH = 4
"""How often a byte is repeated at most when text is quoted twice: a quote becomes four bytes."""


def _size_at_most(body: bytes) -> int:
    """Return how large an answer leaves Lambda at most: as text in a tool's result, in a reply."""
    if len(body) * _GROWTH <= MAX_ANSWER_BYTES:
        return len(body)
    return len(to_json(to_json(body.decode()).decode()))
