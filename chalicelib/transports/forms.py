"""Bodies of ``multipart/form-data`` (RFC 7578), read as the JSON that they stand for."""

import base64

from chalicelib.core.errors import ValidationError
from chalicelib.transports.http import HttpRequest

MULTIPART = "multipart/form-data"
MAX_FIELDS = 20
MAX_FIELD_BYTES = 10_000


def read(request: HttpRequest, file_field: str) -> dict[str, str]:
    """Return a form's texts, and its one file in base64 as ``file_field``.

    The file part may have any name; its file name is the default of the field ``name``.

    Raises:
        ValidationError: a malformed body, no file, or more than one.
    """
    from python_multipart.exceptions import FormParserError  # noqa: PLC0415  only uploads pay it
    from python_multipart.multipart import Field, File, create_form_parser  # noqa: PLC0415

    texts: dict[str, str] = {}
    files: list[tuple[str, bytes]] = []

    def on_field(field: Field) -> None:
        name = (field.field_name or b"").decode(errors="replace")
        texts[name] = (field.value or b"").decode(errors="replace")

    def on_file(file: File) -> None:
        file.file_object.seek(0)
        files.append(((file.file_name or b"").decode(errors="replace"), file.file_object.read()))
        file.close()

    try:
        parser = create_form_parser(
            {"Content-Type": request.headers["content-type"].encode("latin-1", "replace")},
            on_field,
            on_file,
            {
                "MAX_MEMORY_FILE_SIZE": len(request.body) + 1,
                "MAX_FIELDS": MAX_FIELDS,
                "MAX_FIELD_SIZE": MAX_FIELD_BYTES,
            },
        )
        parser.write(request.body)
        parser.finalize()
    except (FormParserError, ValueError) as error:
        msg = f"The multipart/form-data body is malformed: {error}. Send it again, whole."
        raise ValidationError(msg) from None
    if len(files) != 1:
        message = f"expected one file in the form, received {len(files)}"
        raise ValidationError.of(file_field, message)
    name, content = files[0]
    return {"name": name, **texts, file_field: base64.b64encode(content).decode()}
