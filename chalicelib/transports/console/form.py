"""Forms of records, which merge the typed values with the stored ones.

A form carries a mark of each value that it was opened with. A save sends what the user changed, so
other users' changes to other fields are kept. If both changed a field, nothing is stored: the page
shows both values, and the next save replaces the shown ones.
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
from chalicelib.lib import currencies
from chalicelib.transports.console.choices import is_search
from chalicelib.transports.console.console_request import SEEN, ConsoleRequest, Problem
from chalicelib.transports.console.form_controls import KEPT, Field, Record, Typed
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import control_limits, texts
from chalicelib.transports.web.control_limits import ControlLimits

TRIES = 3  # Attempts to save what somebody else changes at the same moment.
_MARKS = re.compile(r"(?:[\w.-]{1,60}=[0-9a-f]{16}(?: |$))*", re.ASCII)


class ChangedMeanwhileError(ConflictError):
    """A field was changed after the form was compared with the record."""


class State(NamedTuple):
    """The state of a form, with a failure and the typed values, or only with stored values."""

    status: int = 200
    problem: Problem | None = None
    conflicts: Sequence[tuple[str, str, str]] = ()
    form_values: Typed | None = None
    notice: str = ""  # Catalogue key of the notice about the last success.
    details: Mapping[str, Any] = {}  # Details of the failure.


class Merged(NamedTuple):
    """What became of a save: the result of the operation, or a state of the form with a problem."""

    record: Any  # as it was read before the change
    answer: dict[str, Any]  # ``{}`` if nothing was changed
    refused: State | None = None


class _Compared(NamedTuple):
    # What the user and others changed to the same value counts as changed by nobody.
    field: Field
    form_values: Typed
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
Arguments = dict[str, Any]
Problems = Callable[[ConsoleRequest, AppError], Problem | None]


class Save(NamedTuple):
    """How the form of a record is saved."""

    find: Callable[[ConsoleRequest], Any]  # returns the record of a page
    page: Page
    # Catalogue key of the confirmation, or a function that returns the response after a change. The
    # result of a form that changes nothing is ``{}``.
    on_success: str | Callable[[ConsoleRequest, Any, dict[str, Any]], HttpResponse]
    key: str = "id"  # argument with the record's id, if any
    # Returns the operation's other arguments, from the record and the changes.
    arguments: Callable[[Any, dict[str, Any]], dict[str, Any]] = lambda _, changes: changes
    # The operation replaces the record: unchanged fields must be as they were read, too.
    replaces: bool = False


class Form:
    """The fields of a form, and the operations that create and change its record.

    ``problems`` returns the messages of failures that are its own. ``prepare`` creates the records
    that the operation's arguments name, and returns the arguments.
    """

    def __init__(
        self,
        *fields: Field,
        creates: str = "",
        changes: str = "",
        problems: Problems = lambda *_: None,
        prepare: Callable[[ConsoleRequest, Arguments], Arguments] = lambda _, arguments: arguments,
    ) -> None:
        self.fields = fields
        self._creates, self._changes = creates, changes
        self._problems = problems
        self._prepare = prepare

    def page_values(
        self,
        request: ConsoleRequest,
        record: Record | None,
        state: State,
        new: Record | None = None,
    ) -> dict[str, Any]:
        """Return the arguments of a page with this form. ``new`` has values of a new record."""
        form_values, fields = state.form_values, state.problem.fields if state.problem else {}
        if form_values is None:
            form_values = {SEEN: "" if record is None else self.seen(record)}
            for field in self.fields:
                form_values |= field.fill_controls(request, record or new or {})
        notice = {"done": request.translate(f"done_{state.notice}")} if state.notice else {}
        return notice | {
            "status": state.status,
            "problem": state.problem,
            "conflicts": state.conflicts,
            "typed": form_values,
            "limits": partial(self.limits, is_new=record is None),
            "own_fields": [
                field
                for field in self.fields
                if field.drawn_as and not (field.later and record is None)
            ],
            "opened": any(field.rare and field.name in fields for field in self.fields),
        }

    def read_form(self, request: ConsoleRequest) -> Typed:
        form_values = {SEEN: request.form_value(SEEN)}
        for field in self.fields:
            form_values |= field.read_form(request)
        return form_values

    def seen(self, record: Record) -> str:
        return " ".join(
            f"{field.name}={_mark(field.stored_value(record))}" for field in self.fields
        )

    def limits(
        self, of: str | ControlLimits = "", control: str = "", *, is_new: bool = False
    ) -> ControlLimits:
        """Return what a control refuses: a field of the form, or a control of its own argument."""
        field = next((field for field in self.fields if field.name == control), None)
        if of or not field:
            return control_limits.of(of, control)
        return field.limits(self._creates if is_new else self._changes)

    def creation(
        self,
        page: Page,
        on_success: Callable[[ConsoleRequest, dict[str, Any]], HttpResponse],
    ) -> tuple[View, View]:
        """Return the functions that show a form of a new record and create it.

        A form that is sent twice creates one record. Empty fields are left out.
        """

        def new(request: ConsoleRequest) -> HttpResponse:
            return page(request, None, STORED)

        def create(request: ConsoleRequest) -> HttpResponse:
            if is_search(request):
                return page(request, None, self._typed_state(request))
            try:
                arguments = self._prepare(request, self.arguments(request))
                response = request.call_once(
                    self._creates, **{k: v for k, v in arguments.items() if v != ""}
                )
            except AlreadyCreatedError:  # Its secret is shown only in the first response.
                raise
            except AppError as error:
                return page(request, None, self.refused_state(request, error))
            return on_success(request, response)

        return new, create

    def arguments(self, request: ConsoleRequest) -> dict[str, Any]:
        """Return the arguments that create a record.

        Raises:
            ValidationError: the error names each field that cannot be read.
        """
        return _arguments([_read(field, request) for field in self.fields if not field.later])

    def editing(self, *parts: Any, **options: Any) -> tuple[View, View]:  # noqa: ANN401  of Save
        """Return the functions that show the form of a record and save it. See ``Save``."""
        how = Save(*parts, **options)

        def show(request: ConsoleRequest) -> HttpResponse:
            return how.page(request, how.find(request), STORED)

        def save(request: ConsoleRequest) -> HttpResponse:
            return self.save(request, how)

        return show, save

    def save(self, request: ConsoleRequest, how: Save) -> HttpResponse:
        """Change the fields of a record that the user has changed, unless others have, too."""
        if is_search(request):
            return how.page(request, how.find(request), self._typed_state(request))
        merged = self.merge(request, how)
        if merged.refused:
            return how.page(request, merged.record, merged.refused)
        if isinstance(how.on_success, str):
            return redirect(f"{request.path}?done={how.on_success}")
        return how.on_success(request, merged.record, merged.answer)

    def is_touched(self, request: ConsoleRequest) -> bool:
        """Return whether a value differs from the one that the form was opened with."""
        marks = _marks(request)
        return any(
            comparison.errors or _mark(comparison.value) != marks.get(comparison.field.name)
            for comparison in (_read(field, request) for field in self.fields)
        )

    def merge(self, request: ConsoleRequest, how: Save) -> Merged:
        """Change the fields that the user has changed, and return what became of it.

        Raises:
            NotFoundError: the record does not exist any more.
        """
        # A record with a version is saved at this version. Others are read again before the commit,
        # and compared.
        for attempt in range(TRIES):
            # A conflict means that the record has changed, so each attempt reads the record again.
            record = how.find(request)
            compared = self._compared(request, record)
            if any(comparison.is_conflict for comparison in compared):
                return Merged(record, {}, self._conflict(request, record, compared))
            changes = [comparison for comparison in compared if comparison.by_person]
            answer = dict[str, Any]()
            try:
                if arguments := _arguments(changes):
                    arguments = self._prepare(request, how.arguments(record, arguments))
                    arguments |= {how.key: record["id"]} if how.key else {}
                    check = None
                    if "version" in record:
                        arguments["ifVersion"] = record["version"]
                    else:
                        check = partial(
                            _require_same,
                            compared if how.replaces else changes,
                            record,
                            how.find,
                            request,
                        )
                    answer = request.call_if(check, self._changes, **arguments)
            except (ChangedMeanwhileError, VersionConflictError) as error:
                if attempt + 1 == TRIES:
                    return Merged(record, {}, self.refused_state(request, error))
            except AppError as error:
                record = how.find(request)  # raises NotFoundError if it is the record that is gone
                return Merged(record, {}, self.refused_state(request, error))
            else:
                return Merged(record, answer)
        raise AssertionError

    def _typed_state(self, request: ConsoleRequest) -> State:
        return State(form_values=self.read_form(request))

    def refused_state(self, request: ConsoleRequest, error: AppError) -> State:
        problem = self._problems(request, error) or self.problem(request, error)
        return State(
            error.status, problem, form_values=self.read_form(request), details=error.details
        )

    def problem(self, request: ConsoleRequest, error: AppError) -> Problem:
        """Return the messages of a failure. One field shows the errors of all its items."""
        if isinstance(error, NotFoundError):  # of a record that the form refers to
            return Problem(request.translate("choice_gone"))
        texts_by_field = {field.name: field.wrong for field in self.fields if field.wrong}
        return problem_at_fields(request, error, texts_by_field)

    def _compared(self, request: ConsoleRequest, record: Record) -> list[_Compared]:
        marks, comparisons = _marks(request), []
        for comparison in (_read(field, request) for field in self.fields):
            mine = (
                None if comparison.errors or comparison.value is KEPT else _mark(comparison.value)
            )
            stored_value = comparison.field.stored_value(record)
            opened = marks.get(comparison.field.name)
            now = opened if stored_value is KEPT else _mark(stored_value)
            by_person = mine not in {opened, now} and comparison.value is not KEPT
            by_others = now not in {opened, mine}
            comparisons.append(comparison._replace(by_person=by_person, by_others=by_others))
        return comparisons

    def _conflict(
        self, request: ConsoleRequest, record: Record, compared: list[_Compared]
    ) -> State:
        # The form keeps what the user typed.
        rows, form_values = [], {SEEN: self.seen(record)}
        for comparison in compared:
            field = comparison.field
            form_values |= (
                comparison.form_values
                if comparison.by_person
                else field.fill_controls(request, record)
            )
            if comparison.by_others:
                yours = request.translate("not_changed_by_you")
                if comparison.by_person:
                    yours = field.words(request, comparison.form_values)
                label = request.translate(field.label or field.name)
                rows.append((label, field.words_of(request, record), yours))
        return State(ConflictError.status, None, rows, form_values)


def problem_at_fields(
    request: ConsoleRequest, error: AppError, texts_by_field: Mapping[str, str] | None = None
) -> Problem:
    """Return the messages of a failure. One field shows the errors of all its items.

    ``texts_by_field`` has the catalogue key for fields whose key is not ``wrong_`` and the name.
    """
    problem = request.problem(error)
    fields: dict[str, str] = {}
    for field_error in error.errors:
        field = field_error.field.partition(".")[0]
        key = (texts_by_field or {}).get(field, f"wrong_{field}")
        # Amounts have examples with the decimals of the currency.
        by_digits = f"{key}_{currencies.DIGITS[request.currency]}"
        key = by_digits if texts.has(request.language, by_digits) else key
        has_text = texts.has(request.language, key)
        fields.setdefault(
            field, request.translate(key) if has_text else problem.fields[field_error.field]
        )
    return problem._replace(fields=fields)


def _read(field: Field, request: ConsoleRequest) -> _Compared:
    form_values = field.read_form(request)
    try:
        return _Compared(field, form_values, field.value(form_values))
    except ValidationError as error:
        return _Compared(field, form_values, errors=error.errors)


def _arguments(changes: Sequence[_Compared]) -> dict[str, Any]:
    if wrong := [error for change in changes for error in change.errors]:
        raise ValidationError("Some fields cannot be read.", errors=wrong)
    arguments: dict[str, Any] = {}
    for change in changes:
        if change.value is not KEPT:
            arguments |= change.field.argument(change.value)
    return arguments


def _require_same(
    changes: Sequence[_Compared],
    old_record: Record,
    find: Callable[[ConsoleRequest], Record],
    request: ConsoleRequest,
) -> None:
    now = find(request)
    if any(
        change.field.stored_value(old_record) != change.field.stored_value(now)
        for change in changes
    ):
        raise ChangedMeanwhileError(
            "A field was changed at the same moment.", key="changed_meanwhile"
        )


def _marks(request: ConsoleRequest) -> dict[str, str]:
    seen = request.form_value(SEEN)
    # The field comes from the browser, so its format is checked first.
    if not _MARKS.fullmatch(seen):
        raise ValidationError.of(
            SEEN, message="expected the hidden fields with which the form was opened"
        )
    return dict(pair.split("=") for pair in seen.split())


def _mark(value: Any) -> str:  # noqa: ANN401  any JSON
    # A mark does not depend on the language of the page.
    # The marks only detect changes, so eight bytes are enough.
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()
