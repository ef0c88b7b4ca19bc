"""Names and headers of stored files."""

import pytest

from chalicelib.domains.files.rules.stored_files import (
    base_name,
    file_ids_in,
    headers_for_file,
    url_name,
)


def test_a_text_is_served_with_its_encoding() -> None:
    body = "Просто текст на русском языке".encode("cp1251")
    assert headers_for_file(body, "a.txt")["Content-Type"] == "text/plain; charset=windows-1251"
    assert headers_for_file(b"{}", "a.json")["Content-Type"] == "application/json; charset=utf-8"
    assert headers_for_file(b"%PDF-", "a.pdf")["Content-Type"] == "application/pdf"


@pytest.mark.parametrize(
    ("body", "disposition"), [(b"%PDF-", "attachment"), (b"<html>", "attachment"), (b"a", "inline")]
)
def test_the_headers_of_a_file_prevent_it_from_running(body: bytes, disposition: str) -> None:
    headers = headers_for_file(body, "a")
    assert headers.pop("Content-Type")
    assert headers == {
        "Content-Disposition": disposition,
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Cache-Control": "public, max-age=300",
    }


def test_the_files_in_a_text_are_found_once_in_order() -> None:
    first, second = "01KDVDNA0020K0TWRN1NM70C5X", "01KDVDNA0020K0TWRN1NM70C5Z"
    token = "a-" * 11
    urls = [f"/files/{name}{token}/a.png" for name in (second, first, second)]
    assert file_ids_in(" ".join(urls)) == [second, first]
    assert file_ids_in(f"/files/{first}/a.png") == []


@pytest.mark.parametrize(
    ("name", "mime_type", "expected"),
    [
        ("Прайс-лист 2027.PDF", "application/pdf", "prays-list-2027.pdf"),
        ("photo.of.me.heic", "image/jpeg", "photo-of-me.jpg"),
        ("photo", "image/png", "photo.png"),
        ("(a) b!.txt", "text/plain", "a-b.txt"),
        ("README", "text/plain", "readme"),
        (".txt", "text/plain", "file.txt"),
        ("a.", "text/plain", "a"),
        ("a." + "x" * 11, "text/plain", "a." + "x" * 10),
        ("x" * 81, "text/plain", "x" * 80),
    ],
)
def test_the_name_in_a_url_is_ascii_with_the_extension_of_the_type(
    name: str, mime_type: str, expected: str
) -> None:
    assert url_name(name, mime_type=mime_type) == expected


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.txt", "a.txt"),
        ("/home/me/a.txt ", "a.txt"),
        ("C:\\me/b\\a.txt", "a.txt"),
        ("a/", ""),
        ("a/.", ""),
        ("..", ""),
    ],
)
def test_the_name_of_an_upload_has_no_folders(path: str, name: str) -> None:
    assert base_name(path) == name
