"""File types by content. The declared type does not count."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.files.rules.file_types import UNKNOWN, charset, file_type, sniff


def zipped(*names: str) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return body.getvalue()


@pytest.mark.parametrize(
    ("body", "mime_type"),
    [
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "image/png"),
        (b"GIF87a\x01\x00", "image/gif"),
        (b"GIF89a=1;alert(1)//", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00", "image/avif"),
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1avifmiaf", "image/avif"),
        (b"\x00\x00\x00\x1cftypheic\x00\x00\x00\x00mif1heic", "image/heic"),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", "video/mp4"),
        (b"\x00\x00\x00\x18ftypM4A \x00\x00\x00\x00M4A isom", "audio/mp4"),
        (b"\x00\x00\x00\x14ftypmp42\x00\x00\x00\x00isomavif", "video/mp4"),
        (b"\x00\x00\x00\x14ftypmp42\x00\x00\x00\x00qt  ", "video/quicktime"),
        (b"\x00\x00\x00\x14ftypqt  \x00\x00\x00\x00qt  ", "video/quicktime"),
        (b"\x1aE\xdf\xa3\x9fB\x82\x84webm", "video/webm"),
        (b"\x1aE\xdf\xa3\x9fB\x82\x88matroska", "video/x-matroska"),
        (b"\x1aE\xdf\xa3" + bytes(57) + b"webm", "video/x-matroska"),
        (b"II*\x00\x08\x00\x00\x00", "image/tiff"),
        (b"BM\x46\x00\x00\x00", "image/bmp"),
        (b"\x00\x00\x01\x00\x01\x00", "image/x-icon"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"ID3\x04\x00", "audio/mpeg"),
        (b"\xff\xfb\x90\x64", "audio/mpeg"),
        (b"\xff\xfb\x10\x64\x00", "audio/mpeg"),
        (b"\xff\xfb\x90", "text/plain"),
        (b"\xff\xfb\xf0\x64", "text/plain"),
        (b"\xff\xfb\x00\x64", UNKNOWN),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio/wav"),
        (zipped("readme.txt"), "application/zip"),
        (zipped(), "application/zip"),
        (
            zipped("[Content_Types].xml", "word/document.xml"),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (
            zipped("[Content_Types].xml", "xl/workbook.xml"),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        (b"\xef\xbb\xbf <?xml version='1.0'?><!-- x --><SVG ></SVG>", "image/svg+xml"),
        (
            b'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "x" [<!ENTITY a "b">]><svg/>',
            "image/svg+xml",
        ),
        ("\ufeff<svg onload='x()'/>".encode("utf-16-le"), "image/svg+xml"),
        (b"<!doctype HTML><p>", "text/html"),
        (b"  \n<!-- a --><html lang=ru>", "text/html"),
        (b"<script>alert(1)</script>", "text/html"),
        (b"<?xml version='1.0'?><!DOCTYPE html><html/>", "text/html"),
        (b"<!-- never closed", "text/html"),
        (b"<?xml version='1.0'?><feed/>", "application/xml"),
        ("Просто текст".encode(), "text/plain"),
        ("Просто текст".encode("cp1251"), "text/plain"),
        ("\ufeffТекст".encode("utf-16-le"), "text/plain"),
        (b"a,b\r\n1,2\r\n", "text/plain"),
        (b"<mydata>1</mydata>", "text/plain"),
        (b"8 bytes WAVE", "text/plain"),
        (b"\x7fELF\x02\x01\x01\x00", UNKNOWN),
        (b"MZ\x90\x00\x03", UNKNOWN),
        (b"", UNKNOWN),
    ],
)
def test_a_file_type_is_recognised_by_its_first_bytes(body: bytes, mime_type: str) -> None:
    assert sniff(body) == mime_type


@pytest.mark.parametrize(
    ("name", "mime_type"),
    [("a.CSV", "text/csv"), ("a.b.md", "text/markdown"), ("csv", "text/csv"), ("a.exe", None)],
)
def test_the_type_of_plain_text_follows_its_extension(name: str, mime_type: str | None) -> None:
    assert file_type(b"a,b", name) == (mime_type or "text/plain")
    assert file_type(b"<html>", name) == "text/html"


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"", "utf-8"),
        ("Просто текст".encode(), "utf-8"),
        ("\ufeffТекст".encode(), "utf-8"),
        ("\ufeffТекст".encode("utf-16-le"), "utf-16le"),
        ("\ufeffТекст".encode("utf-16-be"), "utf-16be"),
        ("Просто текст на русском языке".encode("cp1251"), "windows-1251"),
    ],
)
def test_the_encoding_of_a_text_is_recognised(body: bytes, encoding: str) -> None:
    assert charset(body) == encoding


@given(st.binary(max_size=300))
def test_any_bytes_have_a_type(body: bytes) -> None:
    assert "/" in sniff(body)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1).map(str.encode))
def test_text_that_begins_with_a_letter_is_never_a_program_or_image(body: bytes) -> None:
    assert sniff(b"z" + body) == "text/plain"


def test_megabytes_of_markup_are_recognised_quickly() -> None:
    for piece in (b"<!--", b"<!doctype svg [", b"<?", b" ", b"<!-- -->"):
        assert sniff(piece * 500_000) in {"text/html", "text/plain", "image/svg+xml"}
