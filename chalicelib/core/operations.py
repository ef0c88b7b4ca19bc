"""One declaration per operation, one registry of them.

``@operation`` is all there is to say about an operation: its REST route, MCP tool, audience, scope,
limit, schemas, reference entry and sweep tests come from it. ``application.invoke`` is the only way
to run one, whoever calls.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from inspect import cleandoc
from pkgutil import walk_packages
from typing import Any, TypeVar, get_type_hints

from chalicelib.core.errors import AppError
from chalicelib.core.limits import Limit
from chalicelib.core.manifest import manifest
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

    def packed(self) -> tuple[Any, ...]:
        """Return the entry as the manifest keeps it, in plain values."""
        scope, audience = self.scope and str(self.scope), tuple(sorted(map(str, self.audience)))
        call = (self.tool, self.method, self.path)
        return (self.name, self.title, self.module, *call, scope, audience)

    @staticmethod
    def unpacked(packed: tuple[Any, ...]) -> "Entry":
        """Return the entry that the manifest keeps."""
        name, title, module, tool, method, path, scope, audience = packed
        whom = frozenset(map(Audience, audience))
        return Entry(name, title, module, tool, method, path, scope and Scope(scope), whom)


@dataclass(frozen=True, kw_only=True)
class Operation(Entry):
    """An operation's declaration. Made by ``@operation`` only."""

    description: str
    input: type[Wire]
    output: type[Wire]
    handler: Callable[[Any, Any], Wire]
    destructive: bool
    idempotent: bool
    open_world: bool
    accepts_idempotency_key: bool
    limit: Limit | None = None
    resolve: Callable[[Any], str] | None = None
    file_field: str | None = None
    secret: str | None = None
    form: bool = False
    if_too_large: str | None = None
    audit: bool = True
    platform: bool = False
    example: Mapping[str, Any] | None = field(default=None, compare=False)
    errors: tuple[type[AppError], ...] = ()

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


def operation(  # noqa: PLR0913  the declaration is the point
    *,
    title: str,
    tool: str | None = None,
    rest: str | None = None,
    reads: bool = False,
    scope: Scope | None = None,
    audience: Iterable[Audience] = KEYS,
    limit: Limit | None = None,
    resolve: Callable[[Any], str] | None = None,
    destructive: bool = False,
    idempotent: bool | None = None,
    open_world: bool = False,
    accepts_idempotency_key: bool | None = None,
    file_field: str | None = None,
    secret: str | None = None,
    form: bool = False,
    if_too_large: str | None = None,
    audit: bool = True,
    platform: bool = False,
    example: Mapping[str, Any] | None = None,
    errors: Iterable[type[AppError]] = (),
    registry: Registry = REGISTRY,
) -> Callable[[Callable[[C, W], R]], Callable[[C, W], R]]:
    """Declare a handler ``(ctx, args) -> result`` as an operation.

    Input and output models come from its hints, the public description from its docstring.

    Args:
        title: what it is called in the reference and in tool lists.
        tool: its MCP tool, if AI clients may call it.
        rest: its REST route, such as ``GET /api/pages/{id}``; without one it is for the console or
            the command line.
        reads: whether one without a route only reads; one with a route does if it is a GET.
        scope: the right that a key needs; None: any valid key.
        audience: for whom it is; keys by default.
        limit: how often a caller may call it, counted in the database.
        resolve: how the operator and the public find the workspace, from the input; a key and a
            session work in their own.
        destructive: whether it may remove or overwrite what was there.
        idempotent: whether repeating it changes nothing more; by default, reads are, writes are
            not.
        open_world: whether it reaches outside, so that its idempotency key is marked beforehand.
        accepts_idempotency_key: whether it takes a key; by default, writes that are not idempotent
            do. Others say so if a part of them is not, such as an addition.
        file_field: the input, bytes in base64, that may also come as the file of a
            ``multipart/form-data`` body.
        form: whether the whole input may also come as an HTML form without files.
        if_too_large: what to do with a body over the limit, if not to send less at once.
        secret: the output field that is shown once and never stored: a repeated call under the same
            idempotency key is refused instead of replayed.
        audit: whether the audit log keeps its changes; not what visitors do by the thousand and
            only counters show, such as visits.
        platform: whether it works with what is the platform's own, such as the blog, whoever calls;
            the audit log of the caller's workspace keeps its changes.
        example: a valid call, as the reference shows and the tests send it: what REST takes as
            query, path and body. Words in capitals such as ``PRODUCT_ID`` stand for what a
            workspace has.
        errors: what it may fail with beyond what every operation of its kind may.
        registry: where it goes.
    """
    method, _, path = (rest or f"{READ if reads else CALL} ").partition(" ")

    def declare(handler: Callable[[C, W], R]) -> Callable[[C, W], R]:
        hints = get_type_hints(handler)
        repeatable = method in {"GET", READ} if idempotent is None else idempotent
        takes_key = not repeatable if accepts_idempotency_key is None else accepts_idempotency_key
        registry.add(
            Operation(
                name=handler.__name__,
                module=handler.__module__,
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
                idempotent=repeatable,
                open_world=open_world,
                accepts_idempotency_key=takes_key and method not in {"GET", READ},
                audience=frozenset(audience),
                limit=limit,
                resolve=resolve,
                file_field=file_field,
                secret=secret,
                form=form,
                if_too_large=if_too_large,
                audit=audit,
                platform=platform,
                example=example,
                errors=tuple(errors),
            )
        )
        return handler

    return declare
