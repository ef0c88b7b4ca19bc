"""Read the cells of a workbook (XLSX, XLSB, ODS, XLS) as text, in a process of its own.

calamine (MIT, Rust) makes a dense table of a sheet: two cells in opposite corners of a sheet take
all memory, and abort the process (calamine#693). So the corners are counted first, while the sheet
is unpacked in pieces, and ``gateways.isolation`` limits time and memory of what calamine does.
"""

import json
import re
import zipfile
from abc import ABC, abstractmethod
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any
from xml.parsers import expat

MEMORY_BYTES = 512 * 2**20  # address space of the process that reads a workbook
MAX_UNPACKED = 150 * 2**20  # bytes of all parts of a workbook
MAX_ROWS = 100_000
MAX_COLUMNS = 2_000
MAX_CELLS = 4_000_000  # of the rectangle around the cells of a sheet
MAX_SHEETS = 20
TOO_LARGE = "too_large"
"""The code of a reason. The others are codes of ``rules.reasons``, too."""
_PIECE = 2**16
_CELL = re.compile("([A-Z]{1,4})([0-9]{1,8})")
_XLSX_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_ODS_SHEETS = "content.xml"


class WorkbookError(Exception):
    """The workbook cannot be read. The arguments are the code of the reason, and a sentence."""


def read_sheets(_: str | None, body: bytes) -> str:
    """Return the visible sheets of a workbook as JSON: pairs of a name and rows of texts.

    Raises:
        WorkbookError: it is too large, protected or broken.
    """
    if body.startswith(b"PK"):
        _check_parts(body)
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetVisibleEnum

    try:
        book = CalamineWorkbook.from_filelike(BytesIO(body))
        names = [
            sheet.name
            for sheet in book.sheets_metadata
            if sheet.visible == SheetVisibleEnum.Visible
        ]
        if len(names) > MAX_SHEETS:
            msg = f"The workbook has {len(names)} sheets, but the maximum is {MAX_SHEETS}."
            raise WorkbookError(TOO_LARGE, msg)
        sheets = [
            (name, [list(map(_text, row)) for row in _rows(book.get_sheet_by_name(name))])
            for name in names
        ]
    except CalamineError as error:
        is_locked = isinstance(error, PasswordError)
        reason = "is protected by a password" if is_locked else "cannot be opened"
        msg = f"The workbook {reason}. Save it as a new workbook, and import that file."
        raise WorkbookError("protected" if is_locked else "no_table", msg) from None
    return json.dumps(sheets)


def _rows(sheet: Any) -> Any:  # noqa: ANN401  of the library
    if sheet.total_height > MAX_ROWS or sheet.total_width > MAX_COLUMNS:
        raise _too_large(sheet.total_height, sheet.total_width)
    return sheet.to_python(skip_empty_area=False)


def _too_large(rows: int, columns: int) -> WorkbookError:
    return WorkbookError(
        TOO_LARGE,
        f"A sheet reaches to row {rows:,} and column {columns:,}, but the maximum is {MAX_ROWS:,} "
        f"rows, {MAX_COLUMNS:,} columns and {MAX_CELLS:,} cells. Delete what stands far from the "
        "table, and import the file again.",
    )


def _text(value: Any) -> str:  # noqa: ANN401  of a cell
    """Return what a cell says, as a person would type it.

    >>> _text(4601234567893.0), _text(12.1), _text(True)
    ('4601234567893', '12.1', 'true')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        # A workbook has numbers of 15 digits. More show how they are stored.
        return f"{value:.15g}"
    if isinstance(value, datetime):
        return value.isoformat(" ") if value.time() != time() else value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, int | timedelta) else ""


def _check_parts(body: bytes) -> None:
    try:
        with zipfile.ZipFile(BytesIO(body)) as parts:
            infos = parts.infolist()
            if sum(info.file_size for info in infos) > MAX_UNPACKED:
                raise WorkbookError(TOO_LARGE, _BOMB)
            unpacked = 0
            for info in infos:
                count = _counter_of(info.filename)
                with parts.open(info) as part:
                    # The declared size may be false, so what is unpacked is counted.
                    while piece := part.read(_PIECE):
                        unpacked += len(piece)
                        if unpacked > MAX_UNPACKED:
                            raise WorkbookError(TOO_LARGE, _BOMB)
                        if count is not None:
                            count.feed(piece)
                if count is not None:
                    count.close()
    except (zipfile.BadZipFile, expat.ExpatError, NotImplementedError, EOFError, RuntimeError):
        msg = "The workbook is damaged. Save it as a new workbook, and import that file."
        raise WorkbookError("no_table", msg) from None


_BOMB = (
    f"The workbook has more than {MAX_UNPACKED // 2**20} MB when it is unpacked. Save only the "
    "sheet with the table, without pictures."
)


class _Counter(ABC):
    """Finds the corners of the sheets in a part of a workbook while it is unpacked."""

    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._row = self._column = 0
        self._begin()

    def feed(self, piece: bytes) -> None:
        self._parser.Parse(piece, False)  # noqa: FBT003  positional only

    def close(self) -> None:
        self._parser.Parse(b"", True)  # noqa: FBT003  as above
        self._check()

    def _begin(self) -> None:
        self._last_row = self._last_column = 0

    def _fill(self, row: int, column: int) -> None:
        self._last_row = max(self._last_row, row)
        self._last_column = max(self._last_column, column)
        if column > MAX_COLUMNS or row > MAX_ROWS:
            self._check()

    def _check(self) -> None:
        rows, columns = self._last_row, self._last_column
        if rows > MAX_ROWS or columns > MAX_COLUMNS or rows * columns > MAX_CELLS:
            raise _too_large(rows, columns)

    @abstractmethod
    def _start(self, name: str, attributes: dict[str, str]) -> None:
        """Note what an element says of the corners."""


class _XlsxCounter(_Counter):
    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name.rpartition(":")[2]:
            case "dimension":
                # calamine reserves the declared area.
                for letters, digits in _CELL.findall(attributes.get("ref", "")):
                    self._fill(int(digits), _column(letters))
            case "row":
                number = attributes.get("r", "")
                self._row = int(number) if number.isdecimal() else self._row + 1
                self._column = 0
            case "c":
                if place := _CELL.fullmatch(attributes.get("r", "")):
                    self._column = _column(place[1])
                    self._fill(int(place[2]), self._column)
                else:
                    self._column += 1
                    self._fill(self._row, self._column)


class _OdsCounter(_Counter):
    """Counts filled cells, because sheets end with a million empty rows in one element."""

    def __init__(self) -> None:
        super().__init__()
        self._parser.EndElementHandler = self._end
        self._repeated = 1

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "table:table":
                self._check()
                self._row = self._column = 0
                self._begin()
            case "table:table-row":
                self._repeated = _repeats(attributes, "table:number-rows-repeated")
                self._column = 0
            case "table:table-cell" | "table:covered-table-cell":
                self._column += _repeats(attributes, "table:number-columns-repeated")
                if "office:value-type" in attributes or "table:formula" in attributes:
                    self._fill(self._row + self._repeated, self._column)

    def _end(self, name: str) -> None:
        if name == "table:table-row":
            self._row += self._repeated


def _counter_of(name: str) -> _Counter | None:
    if _XLSX_SHEET.fullmatch(name):
        return _XlsxCounter()
    return _OdsCounter() if name == _ODS_SHEETS else None


def _repeats(attributes: dict[str, str], name: str) -> int:
    text = attributes.get(name, "1")
    return int(text) if text.isdecimal() and len(text) < 10 else 1  # noqa: PLR2004  digits


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def sheets_of(text: str) -> list[tuple[str, list[list[str]]]]:
    """Return the sheets that ``read_sheets`` has written."""
    return [(name, rows) for name, rows in json.loads(text)]
