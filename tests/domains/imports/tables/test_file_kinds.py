"""Files that are no tables of text are named, with what to do."""

import io
import zipfile

import pytest

from chalicelib.domains.imports.rules.tables.product_table import read
from chalicelib.domains.imports.rules.tables.table_errors import TableError


def zipped(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return buffer.getvalue()


XLSX = zipped(xl__workbook_dot_xml="<workbook/>", xl__worksheets__sheet1_dot_xml="<sheet/>")
ODS = zipped(mimetype="application/vnd.oasis.opendocument.spreadsheet", content_dot_xml="<x/>")
YML = '<?xml version="1.0" encoding="{0}"?>\n<yml_catalog date="2026-11-28"><shop/></yml_catalog>'
COMMERCE_ML = '<?xml version="1.0"?>\n<КоммерческаяИнформация ВерсияСхемы="2.08"/>'
GOOGLE = '<?xml version="1.0"?>\n<rss xmlns:g="http://base.google.com/ns/1.0" version="2.0"/>'
EXCEL_2003 = (
    '<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?>\n'
    '<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"/>'
)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (XLSX, "Excel workbook"),
        (zipped(xl__workbook_dot_bin="x"), "XLSB"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "XLS"),
        (ODS, "ODS"),
        (zipped(Index__Document_dot_iwa="x"), "Numbers"),
        (zipped(goods_dot_csv="sku;name"), "archive"),
        (b"\x1f\x8b\x08" + bytes(20), "archive"),
        (b"Rar!\x1a\x07\x01\x00" + bytes(20), "archive"),
        (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
        (b"<html><body><table><tr><td>sku</td></tr></table></body></html>", "HTML"),
        (b"\xef\xbb\xbf  <table border=1><tr><td>sku</td></tr></table>", "HTML"),
        (YML.format("UTF-8").encode(), "Yandex Market"),
        (YML.format("windows-1251").encode("cp1251"), "Yandex Market"),
        (YML.format("UTF-16").encode("utf-16"), "Yandex Market"),
        (b"<yml_catalog date='x'><shop/></yml_catalog>", "Yandex Market"),
        (GOOGLE.encode(), "Google Merchant"),
        (COMMERCE_ML.encode(), "CommerceML"),
        (COMMERCE_ML.encode("cp1251"), "CommerceML"),
        (EXCEL_2003.encode(), "Excel table"),
        (b"<?xml version='1.0'?><goods><sku>1</sku></goods>", "XML"),
        (b'{"products": [{"sku": "A"}]}', "JSON"),
        (b'[{"sku": "A"}]', "JSON"),
        (b"{\\rtf1\\ansi sku}", "RTF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "no table"),
        (b"", "empty"),
        (b"\xef\xbb\xbf\r\n", "empty"),
    ],
)
def test_another_file_is_named(raw: bytes, name: str) -> None:
    with pytest.raises(TableError) as caught:
        read(raw, "rubles")
    message = str(caught.value)
    assert name in message
    assert message.endswith(".")
    assert message.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "BMW;sku;name\nx;A;a",
        "ID3 tag;sku;name\nx;A;a",
        "PKU;sku;name\nx;A;a",
        "[x];sku;name\n1;A;a",
        "sku;name\nA;<b>a</b>",
        "sku;name\nA;a\vb",
    ],
)
def test_text_that_begins_like_another_file_is_a_table(text: str) -> None:
    assert [row.sku for row in read(text.encode(), "rubles").rows] == ["A"]
