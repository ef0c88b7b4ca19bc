"""Forms of records: what was typed is compared with what is stored, and kept.

A form carries a mark of each value that it was opened with. A save sends what the person changed,
so what somebody else changed meanwhile stays. If both changed a field, nothing is stored: the page
shows both values, and the next save replaces those that it showed.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from chalicelib.core.errors import (
    AlreadyCreatedError,
    AppError,
    ConflictError,
    FieldError,
    NotFoundError,
    ValidationError,
    VersionConflictError,
)
from chalicelib.transports.console.console_request import SEEN, ConsoleRequest, Problem
from chalicelib.transports.console.form_controls import KEPT, Field, Record, Typed
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

TRIES = 3
"""Attempts to save what somebody else changes at the same moment."""
_MARKS = re.compile(r"(?:[\w.-]{1,60}=[0-9a-f]{16}(?: |$))*", re.ASCII)


class ChangedMeanwhileError(ConflictError):
    """A field was changed after the form was compared with it."""


class State(NamedTuple):
    """What a page of a form shows: a failure and what was typed, or only what is stored."""

    status: int = 200
    problem: Problem | None = None
    conflicts: Sequence[tuple[str, str, str]] = ()
    typed: Typed | None = None
    done: str = ""
    """Key of the text about what has just succeeded."""
    details: Mapping[str, Any] = {}
    """Details of the failure."""


class _Compared(NamedTuple):
    """A submitted field: its value or its errors, and who changed it since the form was opened.

    What both changed to the same value counts as changed by nobody.
    """

    field: Field
    typed: Typed
    value: Any = None
    errors: Sequence[FieldError] = ()
    by_person: bool = True
    by_others: bool = False

    @property
    def is_conflict(self) -> bool:
        return self.by_person and self.by_others


STORED = State()
Page = Callable[[ConsoleRequest, Any, State], HttpResponse]
View = Callable[[ConsoleRequest], HttpResponse]
Problems = Callable[[ConsoleRequest, AppError], Problem | None]


class Save(NamedTuple):
    """How the form of a record is saved.

    ``find`` returns the record of a page, ``operation`` changes it, and ``page`` shows it. ``done``
    is the key of the text that confirms it, or a function that returns the answer after a change;
    ``{}`` is the result of a form that changes nothing. ``key`` is the argument with the record's
    id, if there is one. ``arguments`` returns the other ones from the record and the changes.
    """

    find: Callable[[ConsoleRequest], Any]
    operation: str
    page: Page
    done: str | Callable[[ConsoleRequest, Any, dict[str, Any]], HttpResponse]
    key: str = "id"
    arguments: Callable[[Any, dict[str, Any]], dict[str, Any]] = lambda _, changes: changes


class Form:
    """The fields of a form. ``problems`` returns the messages of failures that are its own."""

    def __init__(self, *fields: Field, problems: Problems = lambda *_: None) -> None:
        self.fields = fields
        self._problems = problems

    def shown(
        self,
        request: ConsoleRequest,
        record: Record | None,
        state: State,
        new: Record | None = None,
    ) -> dict[str, Any]:
        """Return the arguments of a page with this form. ``new`` has values of a new record."""
        typed, fields = state.typed, state.problem.fields if state.problem else {}
        if typed is None:
            typed = {SEEN: "" if record is None else self.seen(record)}
            for each in self.fields:
                typed |= each.shown(request, record or new or {})
        done = {"done": request.translate(f"done_{state.done}")} if state.done else {}
        return done | {
            "status": state.status,
            "problem": state.problem,
            "conflicts": state.conflicts,
            "typed": typed,
            "opened": any(each.rare and each.name in fields for each in self.fields),
        }

    def typed(self, request: ConsoleRequest) -> Typed:
        """Return what a submitted form has."""
        typed = {SEEN: request.form_value(SEEN)}
        for each in self.fields:
            typed |= each.typed(request)
        return typed

    def seen(self, record: Record) -> str:
        """Return the marks of what is stored."""
        return " ".join(f"{each.name}={_mark(each.stored(record))}" for each in self.fields)

    def creation(
        self,
        operation: str,
        page: Page,
        done: Callable[[ConsoleRequest, dict[str, Any]], HttpResponse],
    ) -> tuple[View, View]:
        """Return the functions that show a form of a new record and create it.

        A form that is sent twice creates one record. Empty texts are left out.
        """

        def new(request: ConsoleRequest) -> HttpResponse:
            return page(request, None, STORED)

        def create(request: ConsoleRequest) -> HttpResponse:
            try:
                sent = self.arguments(request)
                made = request.call_once(operation, **{k: v for k, v in sent.items() if v != ""})
            except AlreadyCreatedError:  # Only the page knows what it shows instead of the secret.
                raise
            except AppError as error:
                return page(request, None, self.refused(request, error))
            return done(request, made)

        return new, create

    def arguments(self, request: ConsoleRequest) -> dict[str, Any]:
        """Return the arguments of the operation that creates a record.

        Raises:
            ValidationError: some fields cannot be read; it names each of them.
        """
        return _arguments([_read(each, request) for each in self.fields if not each.later])

    def editing(self, *parts: Any, **options: Any) -> tuple[View, View]:  # noqa: ANN401  of Save
        """Return the functions that show the form of a record and save it. See ``Save``."""
        how = Save(*parts, **options)

        def show(request: ConsoleRequest) -> HttpResponse:
            return how.page(request, how.find(request), STORED)

        def save(request: ConsoleRequest) -> HttpResponse:
            return self.save(request, how)

        return show, save

    def save(self, request: ConsoleRequest, how: Save) -> HttpResponse:
        """Change the fields of a record that the person has changed, unless others have, too.

        A record with a version is saved at this version. Others are read again before the commit,
        and compared.
        """
        for attempt in range(TRIES):
            record = how.find(request)
            compared = self._compared(request, record)
            if any(each.is_conflict for each in compared):
                return how.page(request, record, self._conflict(request, record, compared))
            changed, answer = [each for each in compared if each.by_person], dict[str, Any]()
            try:
                if sent := _arguments(changed):
                    sent = how.arguments(record, sent)
                    sent |= {how.key: record["id"]} if how.key else {}
                    check = None
                    if "version" in record:
                        sent["ifVersion"] = record["version"]
                    else:
                        check = partial(_require_same, changed, record, how.find, request)
                    answer = request.call_if(check, how.operation, **sent)
            except (ChangedMeanwhileError, VersionConflictError) as error:
                if attempt + 1 == TRIES:
                    return how.page(request, record, self.refused(request, error))
            except AppError as error:
                record = how.find(request)  # raises NotFoundError if it is the record that is gone
                return how.page(request, record, self.refused(request, error))
            else:
                if isinstance(how.done, str):
                    return redirect(f"{request.path}?done={how.done}")
                return how.done(request, record, answer)
        raise AssertionError

    def refused(self, request: ConsoleRequest, error: AppError) -> State:
        """Return the messages of a failure, with what was typed."""
        problem = self._problems(request, error) or self.problem(request, error)
        return State(error.status, problem, typed=self.typed(request), details=error.details)

    def problem(self, request: ConsoleRequest, error: AppError) -> Problem:
        """Return the messages of a failure. One field shows the errors of all its items."""
        if isinstance(error, NotFoundError):  # of a record that the form refers to
            return Problem(request.translate("choice_gone"))
        own = {each.name: each.wrong for each in self.fields if each.wrong}
        return problem_at_fields(request, error, own)

    def _compared(self, request: ConsoleRequest, record: Record) -> list[_Compared]:
        marks, found = _marks(request), []
        for each in (_read(field, request) for field in self.fields):
            mine = None if each.errors or each.value is KEPT else _mark(each.value)
            stored, opened = each.field.stored(record), marks.get(each.field.name)
            now = opened if stored is KEPT else _mark(stored)
            by_person = mine not in {opened, now} and each.value is not KEPT
            by_others = now not in {opened, mine}
            found.append(each._replace(by_person=by_person, by_others=by_others))
        return found

    def _conflict(
        self, request: ConsoleRequest, record: Record, compared: list[_Compared]
    ) -> State:
        """Return the fields that others changed. What the person typed stays in the form."""
        rows, typed = [], {SEEN: self.seen(record)}
        for each in compared:
            field = each.field
            typed |= each.typed if each.by_person else field.shown(request, record)
            if each.by_others:
                yours = request.translate("not_changed_by_you")
                if each.by_person:
                    yours = field.words(request, each.typed)
                label = request.translate(field.label or field.name)
                rows.append((label, field.words_of(request, record), yours))
        return State(ConflictError.status, None, rows, typed)


def problem_at_fields(
    request: ConsoleRequest, error: AppError, own: Mapping[str, str] | None = None
) -> Problem:
    """Return the messages of a failure. One field shows the errors of all its items.

    ``own`` has the key of the text for fields whose text is not ``wrong_`` and the name.
    """
    problem = request.problem(error)
    fields: dict[str, str] = {}
    for each in error.errors:
        field = each.field.partition(".")[0]
        key = (own or {}).get(field, f"wrong_{field}")
        known = texts.has(request.language, key)
        fields.setdefault(field, request.translate(key) if known else problem.fields[each.field])
    return problem._replace(fields=fields)


def _read(field: Field, request: ConsoleRequest) -> _Compared:
    typed = field.typed(request)
    try:
        return _Compared(field, typed, field.value(typed))
    except ValidationError as error:
        return _Compared(field, typed, errors=error.errors)


def _arguments(changed: Sequence[_Compared]) -> dict[str, Any]:
    """Return the arguments for fields.

    Raises:
        ValidationError: some cannot be read; it names each of them.
    """
    if wrong := [error for each in changed for error in each.errors]:
        raise ValidationError("Some fields cannot be read.", errors=wrong)
    found: dict[str, Any] = {}
    for each in changed:
        if each.value is not KEPT:
            found |= each.field.argument(each.value)
    return found


def _require_same(
    changed: Sequence[_Compared],
    before: Record,
    find: Callable[[ConsoleRequest], Record],
    request: ConsoleRequest,
) -> None:
    now = find(request)
    if any(each.field.stored(before) != each.field.stored(now) for each in changed):
        raise ChangedMeanwhileError("A field was changed at the same moment.")


def _marks(request: ConsoleRequest) -> dict[str, str]:
    """Return the marks of a submitted form, by field.

    Raises:
        ValidationError: they have another format than that of ``Form.seen``.
    """
    seen = request.form_value(SEEN)
    if not _MARKS.fullmatch(seen):
        raise ValidationError.of(SEEN, "expected the marks with which the form was opened")
    return dict(each.split("=") for each in seen.split())


def _mark(value: Any) -> str:  # noqa: ANN401  any JSON
    """Return a mark of a stored value. It does not depend on the language of the page."""
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()
