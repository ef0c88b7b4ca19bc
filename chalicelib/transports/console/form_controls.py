"""Controls of forms, which show, read and compare fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.errors import ValidationError
from chalicelib.lib.currencies import RUB
from chalicelib.transports.console import typed_values
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.uploads import store_files
from chalicelib.transports.web import texts
from chalicelib.transports.web.control_limits import ControlLimits, control_limits

Record = Mapping[str, Any]
# Values of a form's controls by name: strings, ticks, and lists of ticked values.
Typed = dict[str, Any]
KEPT = object()  # The value of a field that cannot show what is stored, if nothing was typed.


@dataclass(frozen=True)
class Field:
    """A string field."""

    name: str
    label: str = ""  # catalogue key of the name
    read: Callable[[str, str], Any] = lambda _, text: text.strip() or None
    show: Callable[[texts.Language, Any], str] = lambda _, value: str(value)
    empty: Any = None  # value of an empty field
    new: Any = None  # value of a new record
    rare: bool = False  # in a part of the form that is closed at first
    # Type of the input that ``own_controls`` of ``console/parts.html`` draws, such as "date". The
    # template draws the control of a field without it.
    drawn_as: str = ""
    required: str = ""  # message for an empty field
    wrong: str = ""  # catalogue key of the error
    later: bool = False  # not in the form of a new record
    may_be_empty: bool = False  # although no change can clear it
    # names of values that are ids or codes
    names: Callable[[ConsoleRequest], Mapping[str, str]] = lambda _: {}

    def read_form(self, request: ConsoleRequest) -> Typed:
        # Browsers send line breaks as CR LF.
        return {self.name: request.form_value(self.name).replace("\r\n", "\n")}

    def fill_controls(self, request: ConsoleRequest, record: Record, /) -> Typed:
        """Return the values of the controls for a record, as a user would type them."""
        value = record.get(self.name, self.new)
        return {self.name: "" if value is None else self.show(request.language, value)}

    def stored_value(self, record: Record) -> Any:  # noqa: ANN401  any JSON
        """Return what a record has, as ``value`` reads it."""
        value = record.get(self.name, self.new)
        if isinstance(value, str):
            value = value.replace("\r\n", "\n").strip() or None
        return self.empty if value is None else value

    def value(self, form_values: Typed) -> Any:  # noqa: ANN401  any JSON
        """Return the value of what was typed, or raise ValidationError if unreadable or missing."""
        value = self.read(self.name, form_values[self.name])
        if value is None and self.required:
            raise ValidationError.of(self.name, message=self.required)
        return self.empty if value is None else value

    def argument(self, value: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
        """Return the arguments of the operation that stores a value."""
        return {self.name: value}

    def limits(self, operation: str) -> ControlLimits:
        """Return what the control refuses, by the argument of the operation that stores it.

        A text that is read into something else, such as an amount or a list, has no length.
        """
        limits = control_limits(operation, self.name)
        needs_value = limits.required and self.empty in (None, "") and not self.may_be_empty
        return limits._replace(required=needs_value or bool(self.required))

    def words(self, request: ConsoleRequest, form_values: Typed, /) -> str:
        """Return what was typed, in the form that a conflict shows."""
        text: str = form_values[self.name]
        return self.names(request).get(text, text)

    def words_of(self, request: ConsoleRequest, record: Record, /) -> str:
        """Return what a record has, in the form that a conflict shows."""
        return self.words(request, self.fill_controls(request, record))


@dataclass(frozen=True)
class Switch(Field):
    """A tick. A field with ``states`` has one of two values instead of a bool."""

    field: str = ""
    states: tuple[Any, Any] = (True, False)

    def read_form(self, request: ConsoleRequest) -> Typed:
        return {self.name: bool(request.form_value(self.name))}

    def fill_controls(self, _: ConsoleRequest, record: Record, /) -> Typed:
        return {self.name: self.stored_value(record)}

    def stored_value(self, record: Record) -> bool:
        return bool(record.get(self.field or self.name, self.new) == self.states[0])

    def value(self, form_values: Typed) -> bool:
        return bool(form_values[self.name])

    def argument(self, value: Any) -> dict[str, Any]:  # noqa: ANN401  as Field
        return {self.field or self.name: self.states[0 if value else 1]}

    def words(self, request: ConsoleRequest, form_values: Typed, /) -> str:
        return request.translate("yes" if form_values[self.name] else "no")


@dataclass(frozen=True)
class Ticks(Field):
    """Ticked values, such as ids of records. Their order has no meaning."""

    def read_form(self, request: ConsoleRequest) -> Typed:
        return {self.name: request.form.get(self.name, [])}

    def fill_controls(self, _: ConsoleRequest, record: Record, /) -> Typed:
        return {self.name: self.stored_value(record)}

    def stored_value(self, record: Record) -> list[str]:
        return sorted(record.get(self.name) or [])

    def value(self, form_values: Typed) -> list[str]:
        return sorted(set(form_values[self.name]))

    def words(self, request: ConsoleRequest, form_values: Typed, /) -> str:
        names = self.names(request)
        return ", ".join(names.get(choice, choice) for choice in form_values[self.name])


@dataclass(frozen=True)
class FileField(Field):
    """A field with a control for new images (macro ``file_control`` of ``console/parts.html``)."""

    @property
    def control(self) -> str:
        """Name of the file control, and of the hidden fields with ids of uploaded files."""
        return f"{self.name}File"

    def read_form(self, request: ConsoleRequest) -> Typed:
        uploads = store_files(request, self.control)
        return {self.control: uploads.ids, f"{self.control}Problem": uploads.problem}

    def uploaded_ids(self, form_values: Typed) -> list[str]:
        """Return the ids of the uploaded files, or raise ValidationError if one was refused."""
        if form_values[f"{self.control}Problem"]:
            raise ValidationError.of(self.control, message=form_values[f"{self.control}Problem"])
        return list(form_values[self.control])

    def _no_uploads(self) -> Typed:
        return {self.control: [], f"{self.control}Problem": ""}


@dataclass(frozen=True)
class Images(FileField):
    """Images, with ticks for existing ones, files, and URLs for new ones."""

    def read_form(self, request: ConsoleRequest) -> Typed:
        kept_images, new = request.form.get("keptImages", []), request.form_value("newImages")
        return super().read_form(request) | {"keptImages": kept_images, "newImages": new}

    def fill_controls(self, _: ConsoleRequest, record: Record, /) -> Typed:
        return self._no_uploads() | {"keptImages": self.stored_value(record), "newImages": ""}

    def stored_value(self, record: Record) -> list[str]:
        return [image["fileId"] for image in record.get(self.name) or []]

    def value(self, form_values: Typed) -> list[str | dict[str, str]]:
        return [
            *form_values["keptImages"],
            *self.uploaded_ids(form_values),
            *({"url": url} for url in form_values["newImages"].split()),
        ]

    def argument(self, value: Any) -> dict[str, Any]:  # noqa: ANN401  as Field
        images = [{"fileId": image} if isinstance(image, str) else image for image in value]
        return {self.name: images}

    def words(self, _: ConsoleRequest, form_values: Typed, /) -> str:
        names = ("keptImages", self.control)
        ids = [image for name in names for image in form_values[name]]
        return ", ".join([*ids, *form_values["newImages"].split()])


@dataclass(frozen=True)
class Photo(FileField):
    """An image, which a file or a URL replaces and a tick removes."""

    def read_form(self, request: ConsoleRequest) -> Typed:
        is_removed = bool(request.form_value("removePhoto"))
        form_values = {self.name: request.form_value(self.name), "removePhoto": is_removed}
        return super().read_form(request) | form_values

    def fill_controls(self, _: ConsoleRequest, __: Record, /) -> Typed:
        return self._no_uploads() | {self.name: "", "removePhoto": False}

    def stored_value(self, record: Record) -> Any:  # noqa: ANN401  as Field
        return (record.get(self.name) or {}).get("fileId")

    def value(self, form_values: Typed) -> Any:  # noqa: ANN401  as Field
        if uploaded_ids := self.uploaded_ids(form_values):
            return uploaded_ids[-1]
        url = form_values[self.name].strip()
        return {"url": url} if url else None if form_values["removePhoto"] else KEPT

    def argument(self, value: Any) -> dict[str, Any]:  # noqa: ANN401  as Field
        return {self.name: {"fileId": value} if isinstance(value, str) else value}

    def limits(self, operation: str) -> ControlLimits:
        return control_limits(operation, f"{self.name}.url").optional

    def words(self, request: ConsoleRequest, form_values: Typed, /) -> str:
        uploaded = request.translate("new_photo") if form_values[self.control] else ""
        return uploaded or str(form_values[self.name])

    def words_of(self, _: ConsoleRequest, record: Record, /) -> str:
        return str((record.get(self.name) or {}).get("url") or "")


@dataclass(frozen=True)
class Price(Field):
    """An amount in the currency of the workspace."""

    def read_form(self, request: ConsoleRequest) -> Typed:
        return super().read_form(request) | {self._currency: request.currency}

    def fill_controls(self, request: ConsoleRequest, record: Record, /) -> Typed:
        typed = typed_values.plain_amount(record.get(self.name, self.new), request.currency)
        return {self.name: typed, self._currency: request.currency}

    def value(self, form_values: Typed) -> Any:  # noqa: ANN401  as Field
        text, currency = form_values[self.name], form_values[self._currency]
        value = typed_values.amount(self.name, text, currency)
        if value is None and self.required:
            raise ValidationError.of(self.name, message=self.required)
        return self.empty if value is None else value

    @property
    def _currency(self) -> str:
        return f"{self.name}Currency"


def status_switch(label: str, **options: Any) -> Field:  # noqa: ANN401  of a field
    """Return a tick that makes a record active or inactive."""
    return Switch("active", label, field="status", states=("active", "inactive"), **options)


def tags(name: str, *, label: str = "", **options: Any) -> Field:  # noqa: ANN401  of a field
    """Return a field of strings that are separated by commas."""

    def read(_: str, text: str) -> list[str]:
        return [tag for tag_text in text.split(",") if (tag := tag_text.strip())]

    return Field(name, label, read, lambda _, value: ", ".join(value), [], **options)


def lines(name: str, *, label: str, **options: Any) -> Field:  # noqa: ANN401  of a field
    """Return a field of words that are one a line."""
    return Field(
        name,
        label,
        lambda _, text: text.split(),
        lambda _, strings: "\n".join(strings),
        [],
        **options,
    )


def length(name: str, *, label: str, **options: Any) -> Field:  # noqa: ANN401  of a field
    """Return a field of a length of time."""
    return Field(name, label, typed_values.minutes, typed_values.length, **options)


def lengths(name: str, *, label: str, **options: Any) -> Field:  # noqa: ANN401  of a field
    """Return a field of lengths of time that are separated by commas, the longest first."""

    def read(field: str, text: str) -> list[int]:
        return sorted(typed_values.list_of_minutes(field, text=text), reverse=True)

    def show(language: texts.Language, value: list[int]) -> str:
        return ", ".join(typed_values.length(language, minutes) for minutes in value)

    return Field(name, label, read, show, [], **options)


def number(name: str, *, label: str, **options: Any) -> Field:  # noqa: ANN401  of a field
    """Return a field of a whole number."""
    return Field(name, label, typed_values.number, **options)


def rubles(name: str, *, label: str, **options: Any) -> Field:  # noqa: ANN401  of a field
    """Return a field of an amount that the platform charges."""
    show = typed_values.plain_amount
    return Field(name, label, typed_values.kopecks, lambda _, value: show(value, RUB), **options)


def names_of(
    operation: str,
    *,
    list_name: str,
    label_field: str = "name",
    **arguments: Any,  # noqa: ANN401  of the operation
) -> Callable[[ConsoleRequest], Mapping[str, str]]:
    """Return a function that lists records and returns what each is called, by id."""

    def names(request: ConsoleRequest) -> Mapping[str, str]:
        records = request.call(operation, **arguments)[list_name]
        return {record["id"]: record[label_field] for record in records}

    return names
