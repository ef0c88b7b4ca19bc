"""Bodies of ``multipart/form-data`` (RFC 7578), read as the JSON that they stand for."""

import base64
import logging

from chalicelib.core.errors import ValidationError
from chalicelib.transports.http import HttpRequest

MULTIPART = "multipart/form-data"
MAX_FIELDS = 20
MAX_FIELD_BYTES = 10_000

# A malformed body is told to who sent it, not logged.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


def read(request: HttpRequest, file_field: str) -> dict[str, str]:
    """Return a form's texts, and its one file in base64 as ``file_field``.

    The file part may have any name; its file name is the default of the field ``name``.

    Raises:
        ValidationError: a malformed body, no file, more than one, or beyond the limits.
    """
    from python_multipart.exceptions import FormParserError  # noqa: PLC0415  only uploads pay it
    from python_multipart.multipart import Field, File, create_form_parser  # noqa: PLC0415

    texts: dict[str, str] = {}
    files: list[tuple[str, bytes]] = []

    def on_field(field: Field) -> None:
        name, value = field.field_name or b"", field.value or b""
        if len(texts) == MAX_FIELDS or len(name) + len(value) > MAX_FIELD_BYTES:
            msg = (
                f"A form takes {MAX_FIELDS} fields beside its file, of {MAX_FIELD_BYTES:,} bytes "
                "each. Send fewer or shorter ones."
            )
            raise ValidationError(msg)
        texts[name.decode(errors="replace")] = value.decode(errors="replace")

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
    if len(files) != 1:
        message = f'expected one file in the form, as filename="…", received {len(files)}'
        raise ValidationError.of(file_field, message)
    name, content = files[0]
    return {"name": name, **texts, file_field: base64.b64encode(content).decode()}
