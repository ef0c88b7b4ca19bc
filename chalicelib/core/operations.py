"""The declaration of operations, and their registry.

``@operation`` declares everything about an operation: its REST route, MCP tool, audience, scope,
limit, schemas, reference entry and sweep tests. Only ``application.invoke`` runs operations, for
every kind of caller.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache, cached_property
from importlib import import_module
from inspect import cleandoc
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from chalicelib.core.errors import AppError
from chalicelib.core.limits import Limit
from chalicelib.core.manifest import Declarations, PackedEntry, manifest
from chalicelib.core.principals import Audience, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Partial, Wire

if TYPE_CHECKING:
    from chalicelib.core.own_part import OwnPart  # Few operations have one.

# The methods of operations without a route: for those that only read, and for the others.
READ, CALL = "READ", "CALL"

LISTING = ("list_", "find_", "search_")
# The beginnings of handler names that list records, and of names that read records.
READING = ("get_", *LISTING)
# The order of operations that share a path.
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class Entry:
    """What routes a call and checks its audience, known before the operation is imported."""

    name: str
    title: str
    module: str
    tool: str | None
    method: str
    path: str
    scope: Scope | None
    audience: frozenset[Audience]
    role: Role | None
    for_staff: bool = False  # Members with the role *staff* may call their own part of it, too.

    @property
    def word(self) -> str:
        """What stands for it in messages (``errors.call``) and listings: its tool, or its name."""
        return self.tool or self.name

    @property
    def read_only(self) -> bool:
        return self.method in {"GET", READ}

    @property
    def returns_list(self) -> bool:
        """Whether the result has selected records, which the handler's name decides."""
        return self.read_only and self.name.startswith(LISTING)

    @property
    def position(self) -> tuple[bool, str, int, str]:
        """The sort key (path, method), which puts operations without a path last."""
        method = METHODS.index(self.method) if self.path else 0
        return not self.path, self.path, method, self.name

    def packed(self) -> PackedEntry:
        return PackedEntry(
            name=self.name,
            title=self.title,
            module=self.module,
            tool=self.tool,
            method=self.method,
            path=self.path,
            scope=self.scope and str(self.scope),
            audience=tuple(sorted(map(str, self.audience))),
            role=self.role and str(self.role),
            for_staff=self.for_staff,
        )

    @staticmethod
    def unpacked(packed: PackedEntry) -> "Entry":
        values = packed._asdict()
        values["scope"] = packed.scope and Scope(packed.scope)
        values["audience"] = frozenset(map(Audience, packed.audience))
        values["role"] = packed.role and Role(packed.role)
        return Entry(**values)


class ServedAs(StrEnum):
    """How visitors call an operation that does not take and return JSON."""

    # The input is an HTML form, which also works without JavaScript. The response is a page.
    HTML_FORM = "html-form"
    CALENDAR_FILE = "calendar-file"  # The response is the ``content`` of the result.
    # As above. The result has the ``etag``, too, and no content if the caller's copy has the same.
    CALENDAR_FEED = "calendar-feed"
    PAGE_HIT = "page-hit"  # The call reports a page view. Crawlers are not counted.
    WITHOUT_KEY = "without-key"  # Calls with an API key are refused.

    @property
    def is_calendar(self) -> bool:
        return self in {ServedAs.CALENDAR_FILE, ServedAs.CALENDAR_FEED}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Options:
    """The parts of a declaration that its operation keeps unchanged."""

    limit: Limit | None = None
    """The maximum rate of calls per caller, counted in the database."""
    when_limited: Callable[[AppError, str], AppError] | None = None
    """Returns the error of a call over the limit, from the common one and the workspace. It may say
    what a visitor can do instead."""
    # Returns the workspace from the input, for visitors and the operator. Keys and sessions use
    # their own workspace.
    resolve: Callable[[Any], str] | None = None
    destructive: bool = False  # A call may remove or overwrite existing data.
    # A call reaches outside services. Its idempotency key is marked in progress first.
    open_world: bool = False
    # The input field, bytes in base64, that callers may also send as the file of a
    # ``multipart/form-data`` body.
    file_field: str | None = None
    form: bool = False  # Callers may also send the whole input as an HTML form without files.
    served_as: ServedAs | None = None
    # Caches may keep the response for a minute. It is the same for all callers.
    is_cached: bool = False
    # Advice for a body over the limit, if a smaller request is not the solution.
    if_too_large: str | None = None
    # The output field that is shown once and never stored. A repeated call with the same
    # idempotency key is refused instead of replayed.
    secret: str | None = None
    # The audit log records the changes, but not visitors' calls that are only counted, such as page
    # views.
    audit: bool = True
    # The operation changes data of the platform, such as the blog, for any caller. The audit log of
    # the caller's workspace records the changes.
    platform: bool = False
    # Visitors may call it in a workspace that is suspended or closed, too: to end a booking, or to
    # record money that has moved.
    while_halted: bool = False
    # Refuses a session whose user has not just proved, by a code or the password, to be the owner
    # of the account. It gets the context, the input and the operation's name before each run of the
    # handler.
    confirm: Callable[[Any, Any, str], None] | None = None
    # What of it a member with the role *staff* may do: nothing, unless it is declared.
    own: "OwnPart | None" = None
    # An operation is hashable, but a mapping is not, so comparisons leave the example out.
    # A valid call for the reference and the tests, in the form that REST takes as query, path and
    # body. Words in capitals such as ``PRODUCT_ID`` stand for ids of existing records.
    example: Mapping[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Operation(Options, Entry):
    """The declaration of an operation, which only ``@operation`` creates."""

    description: str
    input: type[Wire]
    output: type[Wire]
    # The response with status 202 to a call that waits for something else.
    accepted: type[Wire] | None
    handler: Callable[[Any, Any], Wire]
    idempotent: bool
    accepts_idempotency_key: bool
    errors: tuple[type[AppError], ...]

    @property
    def reads_query(self) -> bool:
        """Whether the REST input is the query string instead of a body."""
        return self.method in {"GET", "DELETE"}

    @property
    def drops_empty_texts(self) -> bool:
        """Whether an empty string counts as an omission in optional fields that refuse it."""
        # Clients with keys and visitors' clients may fill every field. From the console, an expiry
        # left empty by mistake must not create a key that never expires.
        if not self.audience & {Audience.KEY, Audience.PUBLIC}:
            return False
        # In an update, the caller states explicitly how to clear a field. A destructive call never
        # guesses.
        return self.read_only or not (self.destructive or issubclass(self.input, Partial))

    @cached_property
    def path_parameters(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def input_schema(self) -> dict[str, Any]:
        from chalicelib.core.wire.json_schema import json_schema

        return json_schema(self.input)


class Registry:
    """Every operation, by path and method. Modules in the manifest are imported on first access."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        # A sweep checks that tools and routes are unique.
        self._entries = {entry.name: entry for entry in entries}
        self._declared: Declarations[Operation] = Declarations(
            {name: entry.module for name, entry in self._entries.items()}
        )

    def entries(self) -> list[Entry]:
        """Return the entry of every operation, without an import."""
        return sorted(self._entries.values(), key=lambda entry: entry.position)

    def __iter__(self) -> Iterator[Operation]:
        return iter([self[entry.name] for entry in self.entries()])

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, name: str) -> Entry:
        """Return the entry of an operation, without an import if the manifest has it."""
        return self._entries[name]

    def __getitem__(self, name: str) -> Operation:
        return self._declared[name]

    def select(self, *audiences: Audience) -> list[Operation]:
        return [operation for operation in self if operation.audience & set(audiences)]

    def add(self, operation: Operation) -> None:
        """Add an operation, or raise ValueError if its name is taken."""
        self._declared.declare(operation.name, operation, operation.module)
        self._entries[operation.name] = operation


REGISTRY = Registry(map(Entry.unpacked, manifest().operations))


@cache
def load_all() -> None:
    """Import all modules that declare operations, listings or handlers of jobs."""
    packages = ("chalicelib.engine", "chalicelib.application", "chalicelib.domains")
    for package in map(import_module, packages):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


W = TypeVar("W", bound=Wire)
R = TypeVar("R", bound=Wire)
C = TypeVar("C")
PUBLIC = (Audience.PUBLIC,)
OPERATOR = (Audience.OPERATOR,)
MANAGED = (Audience.SESSION, Audience.OPERATOR)  # members in the console and the operator
KEYS_AND_MANAGED = (Audience.KEY, *MANAGED)


def title_of(name: str) -> str:
    """Return the title of a handler, such as "Get a blog post" for ``get_blog_post``."""
    verb, _, noun = name.replace("_", " ").partition(" ")
    # Nouns that end with s are plural.
    article = "" if noun.endswith("s") else "an " if noun.startswith(tuple("aeiou")) else "a "
    return f"{verb} {article}{noun}".capitalize()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Declaration(Options):
    """The decorator ``@operation(…)`` of a handler ``(ctx, args) -> result``.

    The input and output models come from the handler's type hints, and the public description from
    its docstring. The second of two output models is the model of responses with status 202.
    """

    # The name in the reference and in tool lists, if it is not ``title_of`` the handler's name.
    title: str = ""
    # AI clients may call the operation, as the tool ``svc_`` and the handler's name.
    tool: bool = False
    # The route, such as ``GET /api/pages/{id}``. Without one, only the console and the command line
    # call the operation.
    rest: str | None = None
    # An operation without a route only reads although its name begins with none of ``READING``.
    reads: bool = False
    scope: Scope | None = None  # Without one, any valid key may call.
    # By default keys, if there is a route, and sessions, if there is a role.
    audience: Iterable[Audience] = ()
    # The lowest role in the workspace that a member in the console needs. Operations for sessions
    # must declare a role; other operations must not.
    role: Role | None = None
    # A repeated call changes nothing more. By default true for reads and for handlers named
    # ``delete_…``, which are also destructive.
    idempotent: bool | None = None
    # By default true for writes that are not idempotent. Set it for idempotent operations if a part
    # of the operation is not, such as an addition.
    accepts_idempotency_key: bool | None = None
    # Errors beyond those that every operation of its kind can return.
    errors: Iterable[type[AppError]] = ()
    registry: Registry = REGISTRY

    def __call__(self, handler: Callable[[C, W], R]) -> Callable[[C, W], R]:
        name = handler.__name__
        kind = READ if self.reads or name.startswith(READING) else CALL
        method, _, path = (self.rest or f"{kind} ").partition(" ")
        read_only, deletes = method in {"GET", READ}, name.startswith("delete_")
        idempotent = read_only or deletes if self.idempotent is None else self.idempotent
        takes_key = self.accepts_idempotency_key
        hints = get_type_hints(handler)
        outputs = get_args(hints["return"]) or (hints["return"],)
        inferred = {Audience.KEY: path, Audience.SESSION: self.role}
        audience = frozenset(
            self.audience or (surface for surface in inferred if inferred[surface])
        )
        if not audience or (self.role is None) is (Audience.SESSION in audience):
            msg = f"{name}: declare role= if the audience has sessions, and only then"
            raise TypeError(msg)
        if self.own is not None and self.role is None:
            msg = f"{name}: declare own= only if the audience has sessions"
            raise TypeError(msg)
        self.registry.add(
            Operation(
                **{option.name: getattr(self, option.name) for option in fields(Options)}
                | {"destructive": self.destructive or deletes},
                name=name,
                title=self.title or title_of(name),
                module=handler.__module__,
                tool=f"svc_{name}" if self.tool else None,
                method=method,
                path=path,
                scope=self.scope,
                audience=audience,
                role=self.role,
                for_staff=self.own is not None,
                description=cleandoc(handler.__doc__ or ""),
                input=hints["args"],
                output=outputs[0],
                accepted=outputs[1] if outputs[1:] else None,
                handler=handler,
                idempotent=idempotent,
                accepts_idempotency_key=not read_only
                and (not idempotent if takes_key is None else takes_key),
                errors=tuple(self.errors),
            )
        )
        return handler


operation = Declaration
