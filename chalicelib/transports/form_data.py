"""Parse bodies of HTML forms, as ``multipart/form-data`` (RFC 7578) or urlencoded."""

import base64
import logging
import quopri
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

from chalicelib.core.errors import ValidationError
from chalicelib.lib import charsets
from chalicelib.transports.http import HttpRequest, media_type

MULTIPART = "multipart/form-data"
URLENCODED = "application/x-www-form-urlencoded"
TYPES = (URLENCODED, MULTIPART)
NAME_FIELD = "name"  # The input field that gets the file's name, unless the form has this field.
MAX_FIELDS = 100
MAX_FIELD_BYTES = 20_000

CHARSET_FIELD = "_charset_"
_BYTES = "latin-1"  # The encoding that has one character for each byte.
Fields = list[tuple[str, str]]


class SentFile(NamedTuple):
    field: str
    name: str
    content: bytes


_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
# ``filename*=UTF-8''%D0%B0.txt`` (RFC 5987, 3.2).
_EXTENDED_NAME = re.compile(rb";\s*filename\*\s*=\s*\"?([\w-]*)'[^']*'([^;\"\s]+)", re.IGNORECASE)

# Callers receive the error of a malformed body, so the parser does not log it.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


def read_fields(request: HttpRequest) -> dict[str, list[str]]:
    """Return the values of a form without files, by field and in their order.

    Raises:
        ValidationError: the body is malformed, has a file, or exceeds the limits.
    """
    if media_type(request) == URLENCODED:
        fields = _urlencoded(request)
    else:
        fields, files = _multipart(request)
        # A form for JSON fields has no place for a file, which would silently be lost.
        if files:
            raise ValidationError(
                "This form accepts no files. Send the form without files.", key="has_files"
            )
    values: dict[str, list[str]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(value)
    return values


def last_values(request: HttpRequest) -> dict[str, str]:
    """Return the last value of each field, or raise ValidationError as ``read_fields`` does."""
    return {name: values[-1] for name, values in read_fields(request).items()}


def read_file(request: HttpRequest, file_field: str) -> dict[str, str]:
    """Return a multipart form's fields, and its only file in base64 as ``file_field``.

    The file part may have any name; its file name is the default of the field ``name``.

    Raises:
        ValidationError: the body is malformed, has no file or more than one, or exceeds the limits.
    """
    fields, files = _multipart(request)
    if len(files) != 1:
        message = f'expected one file in the form, as filename="…", received {len(files)}'
        raise ValidationError.of(file_field, message=message)
    file = files[0]
    content = base64.b64encode(file.content).decode()
    return {NAME_FIELD: file.name, **dict(fields), file_field: content}


def _urlencoded(request: HttpRequest) -> Fields:
    fields = Fields()
    try:
        # Latin-1 keeps each byte as it is, because the encoding may stand in a field. A small body
        # can have a million empty fields, which would take seconds to store.
        pairs = parse_qsl(
            request.body.decode(_BYTES),
            keep_blank_values=True,
            max_num_fields=MAX_FIELDS,
            encoding=_BYTES,
        )
    except ValueError:
        raise _too_large() from None
    raw_fields = [(name.encode(_BYTES), value.encode(_BYTES)) for name, value in pairs]
    for name, value in _decoded(raw_fields, declared_charset(request)):
        _add(fields, name, value=value)
    return fields


def declared_charset(request: HttpRequest) -> str | None:
    """Return the charset that the request's Content-Type declares, or None."""
    match = _CHARSET.search(request.headers.get("content-type", ""))
    return match and match[1]


def _decoded(raw_fields: Sequence[tuple[bytes, bytes]], charset: str | None) -> Fields:
    # A form may name its encoding in the field ``_charset_`` (HTML, 4.10.21.5).
    named = (value.decode(_BYTES) for name, value in raw_fields if name == CHARSET_FIELD.encode())
    declared = charset or next(named, None)
    encoding = charsets.text_encoding(chain.from_iterable(raw_fields), declared)
    return [
        (charsets.decoded(name, encoding), charsets.decoded(value, encoding))
        for name, value in raw_fields
    ]


class _Part:
    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.content = bytearray()

    @property
    def charset(self) -> str | None:
        # of the part's own Content-Type
        match = _CHARSET.search(self.headers.get(b"content-type", b"").decode(_BYTES))
        return match and match[1]

    def body(self) -> bytes:
        # Raises ValueError if the content does not match its Content-Transfer-Encoding.
        # MIME ignores the case of header names and of encodings (RFC 2045, 6.1).
        match self.headers.get(b"content-transfer-encoding", b"").lower():
            case b"base64":
                return base64.b64decode(b"".join(self.content.split()), validate=True)
            case b"quoted-printable":
                return quopri.decodestring(bytes(self.content))
            case _:
                return bytes(self.content)


def _multipart(request: HttpRequest) -> tuple[Fields, list[SentFile]]:
    parts, files = read_parts(request)
    fields: Fields = []
    for name, value in parts:
        _add(fields, name, value=value)
    return fields, files


def read_parts(request: HttpRequest) -> tuple[Fields, list[SentFile]]:
    """Return the fields and files of a form of any size, or raise ValidationError if malformed."""
    from python_multipart.exceptions import FormParserError

    raw_fields: list[tuple[bytes, bytes]] = []
    files: list[SentFile] = []
    charset = None
    try:
        for part in _parts(request):
            name, file_name = _names(part.headers.get(b"content-disposition", b""))
            # A file field without a choice has an empty file name, and browsers send such a part,
            # too.
            if file_name is None:
                raw_fields.append((name, part.body()))
                charset = charset or part.charset
            elif file_name:
                files.append(SentFile(name.decode(errors="replace"), file_name, part.body()))
    except (FormParserError, ValueError):
        msg = (
            "The multipart/form-data body is malformed or incomplete. Send the whole body, with "
            "the boundary in its Content-Type."
        )
        raise ValidationError(msg, key="malformed_body") from None
    return _decoded(raw_fields, charset or declared_charset(request)), files


def _parts(request: HttpRequest) -> list[_Part]:
    # The parser's own form parser would drop file names in the form of RFC 5987.
    from python_multipart.multipart import MultipartParser, parse_options_header

    parts: list[_Part] = []
    header, is_complete = (bytearray(), bytearray()), False

    def end_header() -> None:
        name, content = (bytes(text) for text in header)
        parts[-1].headers[name.lower()] = content.strip(b" \t")
        for text in header:
            text.clear()

    def end() -> None:
        nonlocal is_complete
        is_complete = True

    def write_to(where: Callable[[], bytearray]) -> Callable[[bytes, int, int], None]:
        return lambda data, start, stop: where().extend(data[start:stop])

    content_type = request.headers.get("content-type", "").encode("latin-1", "replace")
    boundary = parse_options_header(content_type)[1].get(b"boundary")
    if not boundary:
        msg = "its Content-Type has no boundary"
        raise ValueError(msg)
    parser = MultipartParser(
        boundary,
        {
            "on_part_begin": lambda: parts.append(_Part()),
            "on_header_field": write_to(lambda: header[0]),
            "on_header_value": write_to(lambda: header[1]),
            "on_header_end": end_header,
            "on_part_data": write_to(lambda: parts[-1].content),
            "on_end": end,
        },
    )
    parser.write(request.body)
    parser.finalize()
    # A body that is cut off between two parts parses without an error.
    if not is_complete:
        msg = "it ends before its last boundary"
        raise ValueError(msg)
    return parts


def _names(disposition: bytes) -> tuple[bytes, str | None]:
    # File names are UTF-8 (RFC 7578, 5.1), and browsers escape quotes (WHATWG HTML, multipart).
    # Some clients also send ``filename*`` (RFC 5987), which then takes precedence.
    from python_multipart.multipart import parse_options_header

    _, options = parse_options_header(disposition)
    # RFC 7578, 4.2, requires the name of each part.
    if b"name" not in options:
        msg = "a part has no name"
        raise ValueError(msg)
    name = options[b"name"]
    if extended := _EXTENDED_NAME.search(disposition):
        charset, text = extended[1].decode(), unquote_to_bytes(extended[2])
        with suppress(LookupError):
            return name, text.decode(charset or "utf-8", "replace")
    if b"filename" not in options:
        return name, None
    return name, options[b"filename"].decode(errors="replace").replace("%22", '"')


def _add(fields: Fields, name: str, *, value: str) -> None:
    if len(fields) == MAX_FIELDS or len(name.encode()) + len(value.encode()) > MAX_FIELD_BYTES:
        raise _too_large()
    fields.append((name, value))


def _too_large() -> ValidationError:
    return ValidationError(
        f"Expected at most {MAX_FIELDS} form fields of at most {MAX_FIELD_BYTES:,} bytes each, "
        "in addition to the file. Send fewer or shorter fields.",
        key="too_many_fields",
    )
