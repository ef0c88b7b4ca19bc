"""Recognize files that are no tables of text, and say what to do with them."""

import re

from chalicelib.domains.files.rules.file_types import sniff
from chalicelib.domains.imports.rules.reasons import Reason
from chalicelib.domains.imports.rules.tables.table_errors import TableError

SAVE_AS_CSV = "Open it in Excel, LibreOffice or Google Sheets, save the sheet as CSV (UTF-8), and"
_IMPORT_CSV = f"{SAVE_AS_CSV} import that file."
_OF_TYPE = {
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": (
        f"This is an Excel workbook (XLSX). {_IMPORT_CSV}"
    ),
    "application/x-ole-storage": f"This is an Excel workbook from before 2007 (XLS). {_IMPORT_CSV}",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": (
        "This is a Word document. Copy its table into a spreadsheet, and save the sheet as CSV."
    ),
    "application/pdf": (
        "This is a PDF. Export the table as CSV from the program that made the PDF."
    ),
    "application/rtf": (
        "This is a text document (RTF). Copy its table into a spreadsheet, and save it as CSV."
    ),
    "text/html": (
        f"This is a web page (HTML), which some programs save with the ending .xls. {_IMPORT_CSV}"
    ),
    "application/gzip": "This is an archive. Unpack it, and import the table inside.",
}
_OF_TYPE |= dict.fromkeys(
    (
        "application/zip",
        "application/vnd.rar",
        "application/x-7z-compressed",
        "application/x-tar",
    ),
    _OF_TYPE["application/gzip"],
)
_IN_ZIP = (
    (b"vnd.oasis.opendocument.spreadsheet", f"This is a LibreOffice table (ODS). {_IMPORT_CSV}"),
    (b"xl/workbook.bin", f"This is an Excel workbook (XLSB). {_IMPORT_CSV}"),
    (b"Index/Document.iwa", "This is a table of Numbers. Export it as CSV: File, Export To, CSV."),
)
_EXPORT_CSV = "Export a CSV from the shop instead, and import that file."
_IN_XML = (
    ("<yml_catalog", f"This is a feed for Yandex Market (YML, XML). {_EXPORT_CSV}"),
    ("base.google.com/ns", f"This is a feed for Google Merchant Center (XML). {_EXPORT_CSV}"),
    (
        "<КоммерческаяИнформация",
        (
            "This is an exchange file of 1C (CommerceML, XML). Output the list of goods in 1C, and "
            f"save it as a table. {_IMPORT_CSV}"
        ),
    ),
    (
        "urn:schemas-microsoft-com:office:spreadsheet",
        f"This is an Excel table (XML). {_IMPORT_CSV}",
    ),
)
_XML = f"This is XML, not a table. {_EXPORT_CSV}"
_JSON = f"This is JSON, not a table. {_EXPORT_CSV}"
_BINARY = "This file is no table of text. Save the table as CSV (UTF-8), and import that file."
_MARKUP_START = re.compile(r"\s*<(?:\?xml|[a-zа-я][\w:.-]*[\s/>])", re.IGNORECASE)
_JSON_START = re.compile(r'\s*(?:\{\s*"|\[\s*[\[{"])')
_START = 4096
# Share of zero bytes that text never has. Some may be in text that programs have written.
_BINARY_SHARE = 0.02


def is_workbook(raw: bytes) -> bool:
    """Whether a file is a workbook of Excel or LibreOffice, which ``rules.workbooks`` reads."""
    if raw.startswith(b"PK\x03\x04"):
        # Names of parts stand in the zip as they are. OpenDocument begins with its type.
        parts = (b"xl/workbook.xml", b"xl/workbook.bin", b"vnd.oasis.opendocument.spreadsheet")
        return any(part in raw for part in parts)
    return sniff(raw) == "application/x-ole-storage"


def refuse_other_files(raw: bytes) -> None:
    """Raise TableError for a file that is no text with columns, with what it is and what to do."""
    if not raw.removeprefix(b"\xef\xbb\xbf").strip():
        raise TableError.of("empty", "The file is empty.")
    kind = sniff(raw)
    if raw.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        message = next((text for part, text in _IN_ZIP if part in raw), None)
        raise _no_table(message or _OF_TYPE.get(kind, _OF_TYPE["application/zip"]))
    if kind in _OF_TYPE:
        raise _no_table(_OF_TYPE[kind])
    start = _decoded_start(raw)
    if start is None:
        raise _no_table(_BINARY)
    if _MARKUP_START.match(start):
        raise _no_table(next((text for part, text in _IN_XML if part in start), _XML))
    if _JSON_START.match(start):
        raise _no_table(_JSON)


def _no_table(text: str) -> TableError:
    return TableError(Reason("no_table", text))


def utf16_encoding(raw: bytes) -> str | None:
    """Return the encoding of possible UTF-16 text, with or without a byte order mark, else None."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    # Without a mark, each zero byte of UTF-16 stands beside an ASCII letter, always on one side.
    start = raw[:_START]
    odd, even = start[1::2].count(0), start[::2].count(0)
    if bool(odd) == bool(even):
        return None
    return "utf-16-le" if odd else "utf-16-be"


def _decoded_start(raw: bytes) -> str | None:
    start = raw[:_START]
    if encoding := utf16_encoding(raw):
        return start[: len(start) & ~1].decode(encoding, errors="replace").lstrip("\ufeff")
    if start.count(0) > len(start) * _BINARY_SHARE:
        return None
    text = start.decode("utf-8-sig", errors="replace")
    return start.decode("cp1251", errors="replace") if "\ufffd" in text[:-1] else text
