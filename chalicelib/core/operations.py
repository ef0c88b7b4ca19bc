"""One declaration per operation, one registry of them.

``@operation`` is all there is to say about an operation: its REST route, MCP tool, audience, scope,
limit, schemas, reference entry and sweep tests come from it. ``application.invoke`` is the only way
to run one, whoever calls.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from inspect import cleandoc
from pkgutil import walk_packages
from typing import Any, TypeVar, get_type_hints

from chalicelib.core.errors import AppError
from chalicelib.core.limits import Limit
from chalicelib.core.manifest import PackedEntry, manifest
from chalicelib.core.principals import Audience
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Partial, Wire

READ, CALL = "READ", "CALL"
"""The methods of operations without a route: one that only reads, and any other."""


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
"""The order of the operations of one path."""


@dataclass(frozen=True)
class Entry:
    """What is known of an operation before its module is imported: how it is found, and by whom."""

    name: str
    title: str
    module: str
    tool: str | None
    method: str
    path: str
    scope: Scope | None
    audience: frozenset[Audience]

    @property
    def read_only(self) -> bool:
        """Reads are GET, and only reads; one without a route says that it is one."""
        return self.method in {"GET", READ}

    @property
    def returns_list(self) -> bool:
        """Whether it returns records that its arguments select; handlers are named for that."""
        return self.read_only and self.name.startswith(("list_", "find_", "search_"))

    @property
    def position(self) -> tuple[bool, str, int, str]:
        """The place among all operations: by path and method; those without a path come last."""
        method = METHODS.index(self.method) if self.path else 0
        return not self.path, self.path, method, self.name

    def packed(self) -> PackedEntry:
        """Return the entry as the manifest keeps it, in plain values."""
        return PackedEntry(
            name=self.name,
            title=self.title,
            module=self.module,
            tool=self.tool,
            method=self.method,
            path=self.path,
            scope=self.scope and str(self.scope),
            audience=tuple(sorted(map(str, self.audience))),
        )

    @staticmethod
    def unpacked(packed: PackedEntry) -> "Entry":
        """Return the entry that the manifest keeps."""
        values = packed._asdict()
        values["scope"] = packed.scope and Scope(packed.scope)
        values["audience"] = frozenset(map(Audience, packed.audience))
        return Entry(**values)


class ServedAs(StrEnum):
    """How visitors call an operation that does not take and answer JSON as all others do."""

    HTML_FORM = "html-form"
    """The input is an HTML form, also of a page without script, which is answered with pages."""
    CALENDAR_FILE = "calendar-file"
    """The ``content`` of the result is answered as a calendar file."""
    PAGE_HIT = "page-hit"
    """The call reports that a page was opened. Crawlers are not counted."""
    WITHOUT_KEY = "without-key"
    """Calls with an API key are refused."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a declaration says that its operation keeps as it is."""

    limit: Limit | None = None
    """How often a caller may call, counted in the database."""
    resolve: Callable[[Any], str] | None = None
    """Finds the workspace from the input, for visitors and the operator. Keys and sessions work in
    their own."""
    destructive: bool = False
    """Whether a call may remove or overwrite what was there."""
    open_world: bool = False
    """Whether a call reaches outside, so that its idempotency key is marked beforehand."""
    file_field: str | None = None
    """The input, bytes in base64, that may also come as the file of a ``multipart/form-data``
    body."""
    form: bool = False
    """Whether the whole input may also come as an HTML form without files."""
    served_as: ServedAs | None = None
    """How visitors call it, if not with JSON."""
    if_too_large: str | None = None
    """What to do with a body over the limit, if not to send less at once."""
    secret: str | None = None
    """The output field that is shown once and never stored. A repeated call under the same
    idempotency key is refused instead of replayed."""
    audit: bool = True
    """Whether the audit log keeps the changes. Calls of visitors that are only counted, such as
    visits, are not kept."""
    platform: bool = False
    """Whether the operation works with what is the platform's own, such as the blog, whoever calls.
    The audit log of the caller's workspace keeps the changes."""
    example: Mapping[str, Any] | None = field(default=None, compare=False)
    """A valid call, as the reference shows it and the tests send it: what REST takes as query, path
    and body. Words in capitals such as ``PRODUCT_ID`` stand for what a workspace has."""


@dataclass(frozen=True, kw_only=True)
class Operation(Options, Entry):
    """An operation's declaration. Made by ``@operation`` only."""

    description: str
    input: type[Wire]
    output: type[Wire]
    handler: Callable[[Any, Any], Wire]
    idempotent: bool
    accepts_idempotency_key: bool
    errors: tuple[type[AppError], ...]

    @property
    def reads_query(self) -> bool:
        """Whether its REST input is the query string rather than a body."""
        return self.method in {"GET", "DELETE"}

    @property
    def drops_empty_texts(self) -> bool:
        """Whether an empty text in an optional field that refuses it is an omission.

        That holds for the reads and creates of API keys, whose clients may fill every field. An
        update says how to clear a field, and a destructive call never guesses. Nor does what people
        call: an expiry that was left empty by mistake must not make a key that lives for ever.
        """
        if Audience.KEY not in self.audience:
            return False
        return self.read_only or not (self.destructive or issubclass(self.input, Partial))

    @cached_property
    def path_parameters(self) -> tuple[str, ...]:
        """Names of the path's variables."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the input."""
        from chalicelib.core.wire.json_schema import json_schema  # noqa: PLC0415  seldom asked for

        return json_schema(self.input)


class Registry:
    """Every operation, by path and method; names, tools and routes are unique.

    Of those that the manifest knows, the modules are imported when the operations are asked for.
    """

    def __init__(self, known: Iterable[Entry] = ()) -> None:
        self._entries = {entry.name: entry for entry in known}

    def entries(self) -> list[Entry]:
        """Return what is known of every operation; no module is imported."""
        return sorted(self._entries.values(), key=lambda entry: entry.position)

    def __iter__(self) -> Iterator[Operation]:
        """Iterate over the operations; all are imported."""
        return iter([self[entry.name] for entry in self.entries()])

    def __len__(self) -> int:
        """Return how many operations there are."""
        return len(self._entries)

    def __getitem__(self, name: str) -> Operation:
        """Return the operation whose handler has this name; its module is imported."""
        entry = self._entries[name]
        if not isinstance(entry, Operation):
            import_module(entry.module)
            entry = self._entries[name]
        if not isinstance(entry, Operation):
            msg = f"{entry.module} does not declare {name}, as the manifest says"
            raise TypeError(msg)
        return entry

    def of(self, *audiences: Audience) -> list[Operation]:
        """Return the operations for some kinds of callers."""
        return [each for each in self if each.audience & set(audiences)]

    def add(self, operation: Operation) -> None:
        """Add an operation; a clash with an earlier one is a programming error."""
        known = self._entries.get(operation.name)
        if type(known) is not Entry or known.packed() != operation.packed():
            self._refuse_clash(operation)
        self._entries[operation.name] = operation

    def _refuse_clash(self, operation: Operation) -> None:
        for other in self._entries.values():
            if operation.name == other.name or (operation.tool and operation.tool == other.tool):
                msg = f"{operation.name} ({operation.tool}) is declared twice"
                raise ValueError(msg)
            if operation.path and (operation.method, operation.path) == (other.method, other.path):
                msg = f"{operation.method} {operation.path} is declared twice"
                raise ValueError(msg)


REGISTRY = Registry(map(Entry.unpacked, manifest().operations))


def load_all() -> None:
    """Import all modules that declare operations, listings or handlers of jobs."""
    packages = ("chalicelib.engine", "chalicelib.application", "chalicelib.domains")
    for package in map(import_module, packages):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


W = TypeVar("W", bound=Wire)
R = TypeVar("R", bound=Wire)
C = TypeVar("C")

KEYS = (Audience.KEY,)
KEYS_AND_PEOPLE = (Audience.KEY, Audience.SESSION)
"""What the console shows, or changes, by the operation that keys have for it."""


@dataclass(frozen=True, kw_only=True)
class Declaration(Options):
    """Declares a handler ``(ctx, args) -> result`` as an operation: ``@operation(…)``.

    Input and output models come from the hints of the handler, the public description from its
    docstring.
    """

    title: str
    """The name in the reference and in tool lists."""
    tool: str | None = None
    """The name of the MCP tool, if AI clients may call the operation."""
    rest: str | None = None
    """The REST route, such as ``GET /api/pages/{id}``. The console and the command line call
    operations without one."""
    reads: bool = False
    """Whether an operation without a route only reads. One with a route does if it is a GET."""
    scope: Scope | None = None
    """The right that a key needs. Without one, any valid key may call."""
    audience: Iterable[Audience] = KEYS
    """Who may call."""
    idempotent: bool | None = None
    """Whether repeating a call changes nothing more. By default, reads are, writes are not."""
    accepts_idempotency_key: bool | None = None
    """Whether a call takes an idempotency key. By default, writes that are not idempotent do.
    Others say so if a part of them is not, such as an addition."""
    errors: Iterable[type[AppError]] = ()
    """What a call may fail with beyond what every operation of its kind may."""
    registry: Registry = REGISTRY

    def __call__(self, handler: Callable[[C, W], R]) -> Callable[[C, W], R]:
        """Add the operation of a handler to the registry, and return the handler."""
        method, _, path = (self.rest or f"{READ if self.reads else CALL} ").partition(" ")
        read_only = method in {"GET", READ}
        idempotent = read_only if self.idempotent is None else self.idempotent
        takes_key = self.accepts_idempotency_key
        hints = get_type_hints(handler)
        self.registry.add(
            Operation(
                **{option.name: getattr(self, option.name) for option in fields(Options)},
                name=handler.__name__,
                title=self.title,
                module=handler.__module__,
                tool=self.tool,
                method=method,
                path=path,
                scope=self.scope,
                audience=frozenset(self.audience),
                description=cleandoc(handler.__doc__ or ""),
                input=hints["args"],
                output=hints["return"],
                handler=handler,
                idempotent=idempotent,
                accepts_idempotency_key=not read_only
                and (not idempotent if takes_key is None else takes_key),
                errors=tuple(self.errors),
            )
        )
        return handler


operation = Declaration
