"""Workbooks as Excel and LibreOffice write them, as small as they can be."""

import io
import zipfile
from collections.abc import Sequence
from html import escape

Cell = str | int | float
_SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{}</worksheet>'
)
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_ODS = "application/vnd.oasis.opendocument.spreadsheet"


def letters(index: int) -> str:
    name = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        name = chr(ord("A") + digit) + name
    return name


def xlsx(*sheets: Sequence[Sequence[Cell]], hidden: Sequence[int] = ()) -> bytes:
    """Return a workbook with these sheets. Strings stand in the cells themselves."""
    return xlsx_of(["".join(map(_row, range(1, len(rows) + 1), rows)) for rows in sheets], hidden)


def _row(number: int, cells: Sequence[Cell]) -> str:
    parts = []
    for index, cell in enumerate(cells):
        place = f"{letters(index)}{number}"
        if isinstance(cell, str):
            text = escape(cell, quote=False)
            parts.append(f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>')
        else:
            parts.append(f'<c r="{place}"><v>{cell}</v></c>')
    return f'<row r="{number}">{"".join(parts)}</row>'


def xlsx_of(sheet_data: Sequence[str], hidden: Sequence[int] = ()) -> bytes:
    """Return a workbook whose sheets have these rows as XML."""
    numbers = range(1, len(sheet_data) + 1)
    state = {number: ' state="hidden"' if number in hidden else "" for number in numbers}
    sheets = "".join(
        f'<sheet name="Sheet{number}" sheetId="{number}"{state[number]} r:id="rId{number}"/>'
        for number in numbers
    )
    relations = "".join(
        f'<Relationship Id="rId{number}" Type="{_RELATIONS}/worksheet" '
        f'Target="worksheets/sheet{number}.xml"/>'
        for number in numbers
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_XLSX}.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": "<workbook xmlns="
        '"http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
        f'xmlns:r="{_RELATIONS}"><sheets>{sheets}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f"{relations}</Relationships>",
    }
    for number, data in zip(numbers, sheet_data, strict=True):
        parts[f"xl/worksheets/sheet{number}.xml"] = _SHEET.format(f"<sheetData>{data}</sheetData>")
    return _zipped(parts)


def ods(rows: Sequence[Sequence[str]], more: str = "") -> bytes:
    """Return a table of LibreOffice, with ``more`` rows as XML at its end."""
    lines = "".join(
        "<table:table-row>"
        + "".join(
            '<table:table-cell office:value-type="string"><text:p>'
            f"{escape(cell, quote=False)}</text:p></table:table-cell>"
            for cell in row
        )
        + "</table:table-row>"
        for row in rows
    )
    namespaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f'<office:document-content {namespaces} office:version="1.2"><office:body>'
        f'<office:spreadsheet><table:table table:name="Sheet1">{lines}{more}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    names = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    manifest = (
        f'<manifest:manifest xmlns:manifest="{names}" manifest:version="1.2">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{_ODS}"/>'
        "</manifest:manifest>"
    )
    parts = {"mimetype": _ODS, "META-INF/manifest.xml": manifest, "content.xml": content}
    return _zipped(parts, stored={"mimetype"})


def _zipped(parts: dict[str, str], stored: set[str] | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            kind = zipfile.ZIP_STORED if name in (stored or ()) else zipfile.ZIP_DEFLATED
            file.writestr(name, text, kind)
    return out.getvalue()
