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
from typing import Any, TypeVar, get_args, get_type_hints

from chalicelib.core.errors import AppError
from chalicelib.core.limits import Limit
from chalicelib.core.manifest import Declarations, PackedEntry, manifest
from chalicelib.core.principals import Audience, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Partial, Wire

READ, CALL = "READ", "CALL"
"""The methods of operations without a route: ``READ`` for operations that only read, else ``CALL``.
"""

LISTING = ("list_", "find_", "search_")
READING = ("get_", *LISTING)
"""The beginnings of handler names that list records, and of names that read records."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
"""The sort order of operations that share a path."""


@dataclass(frozen=True)
class Entry:
    """The facts about an operation that are known before its module is imported.

    They are enough to route a call and to check its audience.
    """

    name: str
    title: str
    module: str
    tool: str | None
    method: str
    path: str
    scope: Scope | None
    audience: frozenset[Audience]
    role: Role | None

    @property
    def read_only(self) -> bool:
        """Whether the operation only reads.

        With a route, such an operation has the method GET. Without a route, it has ``READ``.
        """
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
        """Return the entry in plain values, as the manifest stores it."""
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
        )

    @staticmethod
    def unpacked(packed: PackedEntry) -> "Entry":
        """Return the entry from the manifest's plain values."""
        values = packed._asdict()
        values["scope"] = packed.scope and Scope(packed.scope)
        values["audience"] = frozenset(map(Audience, packed.audience))
        values["role"] = packed.role and Role(packed.role)
        return Entry(**values)


class ServedAs(StrEnum):
    """How visitors call an operation that does not take and return JSON."""

    HTML_FORM = "html-form"
    """The input is an HTML form, which also works without JavaScript. The response is a page."""
    CALENDAR_FILE = "calendar-file"
    """The response is the ``content`` of the result, as a calendar file."""
    PAGE_HIT = "page-hit"
    """The call reports a page view. Crawlers are not counted."""
    WITHOUT_KEY = "without-key"
    """Calls with an API key are refused."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Options:
    """The parts of a declaration that its operation keeps unchanged."""

    limit: Limit | None = None
    """The maximum rate of calls per caller, counted in the database."""
    when_limited: Callable[[AppError, str], AppError] | None = None
    """Returns the error of a call over the limit, from the common one and the workspace. It may say
    what a visitor can do instead."""
    resolve: Callable[[Any], str] | None = None
    """Returns the workspace from the input, for visitors and the operator. Keys and sessions use
    their own workspace."""
    destructive: bool = False
    """Whether a call may remove or overwrite existing data."""
    open_world: bool = False
    """Whether a call reaches outside services. Its idempotency key is marked in progress first."""
    file_field: str | None = None
    """The input field, bytes in base64, that callers may also send as the file of a
    ``multipart/form-data`` body."""
    form: bool = False
    """Whether callers may also send the whole input as an HTML form without files."""
    served_as: ServedAs | None = None
    """How visitors call it, if not with JSON."""
    if_too_large: str | None = None
    """Advice for a body over the limit, if a smaller request is not the solution."""
    secret: str | None = None
    """The output field that is shown once and never stored. A repeated call with the same
    idempotency key is refused instead of replayed."""
    audit: bool = True
    """Whether the audit log records the changes. Visitors' calls that are only counted, such as
    page views, are not recorded."""
    platform: bool = False
    """Whether the operation changes data of the platform, such as the blog, for any caller. The
    audit log of the caller's workspace records the changes."""
    confirm: Callable[[Any, Any, str], None] | None = None
    """Refuses a session whose user has not just proved, by a code or the password, to be the owner
    of the account. It gets the context, the input and the operation's name before each run of
    the handler."""
    # An operation is hashable, but a mapping is not, so comparisons leave the example out.
    example: Mapping[str, Any] | None = field(default=None, compare=False)
    """A valid call for the reference and the tests, in the form that REST takes as query, path
    and body. Words in capitals such as ``PRODUCT_ID`` stand for ids of existing records."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Operation(Options, Entry):
    """The declaration of an operation, which only ``@operation`` creates."""

    description: str
    input: type[Wire]
    output: type[Wire]
    accepted: type[Wire] | None
    """The response with status 202 to a call that waits for something else, or None."""
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
        """Whether an empty string counts as an omission in optional fields that refuse it.

        This applies to reads and creates with API keys and of visitors, because their clients may
        fill every field. In an update, the caller states explicitly how to clear a field. A
        destructive call never guesses. Calls from the console are excluded as well: an expiry left
        empty by mistake must not create a key that never expires.
        """
        if not self.audience & {Audience.KEY, Audience.PUBLIC}:
            return False
        return self.read_only or not (self.destructive or issubclass(self.input, Partial))

    @cached_property
    def path_parameters(self) -> tuple[str, ...]:
        """Names of the variables in the path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the input."""
        from chalicelib.core.wire.json_schema import json_schema

        return json_schema(self.input)


class Registry:
    """Every operation, by path and method. A sweep checks that tools and routes are unique.

    The modules of operations in the manifest are imported on first access.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._declared: Declarations[Operation] = Declarations(
            {name: entry.module for name, entry in self._entries.items()}
        )

    def entries(self) -> list[Entry]:
        """Return the entry of every operation, without an import."""
        return sorted(self._entries.values(), key=lambda entry: entry.position)

    def __iter__(self) -> Iterator[Operation]:
        """Iterate over the operations, after an import of all their modules."""
        return iter([self[entry.name] for entry in self.entries()])

    def __len__(self) -> int:
        """Return how many operations there are."""
        return len(self._entries)

    def entry(self, name: str) -> Entry:
        """Return the entry of an operation, without an import if the manifest has it."""
        return self._entries[name]

    def __getitem__(self, name: str) -> Operation:
        """Return the operation whose handler has this name, and import its module if necessary."""
        return self._declared[name]

    def select(self, *audiences: Audience) -> list[Operation]:
        """Return the operations for the given audiences."""
        return [operation for operation in self if operation.audience & set(audiences)]

    def add(self, operation: Operation) -> None:
        """Add an operation.

        Raises:
            ValueError: its name is taken.
        """
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
MANAGED = (Audience.SESSION, Audience.OPERATOR)
"""The audience of operations for members in the console and for the operator."""


def title_of(name: str) -> str:
    """Return the title of a handler, such as "Get a blog post" for ``get_blog_post``.

    Nouns that end with s are plural. A handler without a noun has a title of its own.
    """
    verb, _, noun = name.replace("_", " ").partition(" ")
    article = "" if noun.endswith("s") else "an " if noun.startswith(tuple("aeiou")) else "a "
    return f"{verb} {article}{noun}".capitalize()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Declaration(Options):
    """The decorator ``@operation(…)`` of a handler ``(ctx, args) -> result``.

    The input and output models come from the handler's type hints, and the public description from
    its docstring. The second of two output models is the model of responses with status 202.
    """

    title: str = ""
    """The operation's name in the reference and in tool lists, if it is not ``title_of`` the
    handler's name."""
    tool: bool = False
    """Whether AI clients may call the operation, as the tool ``svc_`` and the handler's name."""
    rest: str | None = None
    """The REST route, such as ``GET /api/pages/{id}``. Without one, only the console and the
    command line call the operation."""
    reads: bool = False
    """Whether an operation without a route only reads, if its name begins with none of
    ``READING``. With a route, GET decides."""
    scope: Scope | None = None
    """The scope that a key needs. Without one, any valid key may call."""
    audience: Iterable[Audience] = ()
    """The kinds of callers that may call. By default keys, if there is a route, and sessions, if
    there is a role."""
    role: Role | None = None
    """The lowest role in the workspace that a member in the console needs.

    Operations for sessions must declare a role; other operations must not.
    """
    idempotent: bool | None = None
    """Whether a repeated call changes nothing more. By default true for reads and for handlers
    named ``delete_…``, which are also destructive."""
    accepts_idempotency_key: bool | None = None
    """Whether a call takes an idempotency key.

    By default true for writes that are not idempotent. Set it for idempotent operations if a part
    of the operation is not, such as an addition.
    """
    errors: Iterable[type[AppError]] = ()
    """The errors of this operation, beyond the errors that every operation of its kind can return.
    """
    registry: Registry = REGISTRY

    def __call__(self, handler: Callable[[C, W], R]) -> Callable[[C, W], R]:
        """Add the handler's operation to the registry, and return the handler."""
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
