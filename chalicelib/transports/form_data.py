"""Bodies of HTML forms: ``multipart/form-data`` (RFC 7578) and the urlencoded ones."""

import base64
import logging
from urllib.parse import parse_qsl

from chalicelib.core.errors import ValidationError
from chalicelib.transports.http import HttpRequest, media_type

MULTIPART = "multipart/form-data"
URLENCODED = "application/x-www-form-urlencoded"
TYPES = frozenset({MULTIPART, URLENCODED})
MAX_FIELDS = 100
MAX_FIELD_BYTES = 10_000

Fields = list[tuple[str, str]]

# A malformed body is told to who sent it, not logged.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


def read_fields(request: HttpRequest) -> dict[str, list[str]]:
    """Return the values of a form without files, by field and in their order.

    Raises:
        ValidationError: a malformed body, a file, or beyond the limits.
    """
    if media_type(request) == URLENCODED:
        fields = _urlencoded(request.body)
    else:
        fields, files = _multipart(request)
        if files:
            raise ValidationError("This form takes no files. Send its other fields alone.")
    values: dict[str, list[str]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(value)
    return values


def read_file(request: HttpRequest, file_field: str) -> dict[str, str]:
    """Return a multipart form's texts, and its one file in base64 as ``file_field``.

    The file part may have any name; its file name is the default of the field ``name``.

    Raises:
        ValidationError: a malformed body, no file, more than one, or beyond the limits.
    """
    fields, files = _multipart(request)
    if len(files) != 1:
        message = f'expected one file in the form, as filename="…", received {len(files)}'
        raise ValidationError.of(file_field, message)
    name, content = files[0]
    return {"name": name, **dict(fields), file_field: base64.b64encode(content).decode()}


def _urlencoded(body: bytes) -> Fields:
    text, fields = body.decode(errors="replace"), Fields()
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise _too_large() from None
    for name, value in pairs:
        _add(fields, name, value)
    return fields


def _multipart(request: HttpRequest) -> tuple[Fields, list[tuple[str, bytes]]]:
    from python_multipart.exceptions import FormParserError  # noqa: PLC0415  only uploads pay it
    from python_multipart.multipart import Field, File, create_form_parser  # noqa: PLC0415

    fields: Fields = []
    files: list[tuple[str, bytes]] = []

    def on_field(field: Field) -> None:
        name, value = field.field_name or b"", field.value or b""
        _add(fields, name.decode(errors="replace"), value.decode(errors="replace"))

    def on_file(file: File) -> None:
        file.file_object.seek(0)
        files.append(((file.file_name or b"").decode(errors="replace"), file.file_object.read()))
        file.close()

    try:
        parser = create_form_parser(
            {"Content-Type": request.headers["content-type"].encode("latin-1", "replace")},
            on_field,
            on_file,
            {"MAX_MEMORY_FILE_SIZE": len(request.body) + 1},  # nothing goes to the disk
        )
        parser.write(request.body)
        parser.finalize()
    except (FormParserError, ValueError) as error:
        msg = f"The multipart/form-data body is malformed: {error}. Send it again, whole."
        raise ValidationError(msg) from None
    return fields, files


def _add(fields: Fields, name: str, value: str) -> None:
    if len(fields) == MAX_FIELDS or len(name.encode()) + len(value.encode()) > MAX_FIELD_BYTES:
        raise _too_large()
    fields.append((name, value))


def _too_large() -> ValidationError:
    return ValidationError(
        f"A form takes {MAX_FIELDS} values beside its file, of {MAX_FIELD_BYTES:,} bytes each. "
        "Send fewer or shorter ones."
    )
