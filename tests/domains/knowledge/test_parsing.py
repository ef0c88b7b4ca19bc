"""Files become plain text, in the process of the test."""

import io

import pypdf
import pytest
from pypdf.errors import DependencyError, PdfReadError

from chalicelib.domains.knowledge.rules import parsing
from chalicelib.domains.knowledge.rules.parsing import UnreadableError, parser_for, read_text
from tests.factories.pdf import pdf


def encrypt_with_empty_password(body: bytes) -> bytes:
    """Return a PDF that opens without a password, but that only its owner may change."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(body))
    writer.encrypt("", "owner", algorithm="RC4-128")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("parser", "body", "charset", "text"),
    [
        ("text", b" Rye  bread \r\n", None, "Rye bread"),
        ("text", "Хлеб".encode("koi8-r"), "koi8-r", "Хлеб"),
        ("html", b"<title>T</title><p>Rye<br>bread<ul><li>Cake</ul>", None, "Rye\nbread\n\n• Cake"),
        ("html", "<p>Хлеб".encode("koi8-r"), "koi8-r", "Хлеб"),
        ("pdf", pdf("Rye bread", "Cake"), None, "Rye bread\n\nCake"),
        ("pdf", encrypt_with_empty_password(pdf("Rye bread")), None, "Rye bread"),
        ("pdf", pdf(*["x"] * parsing.MAX_PAGES), None, "\n\n".join("x" * parsing.MAX_PAGES)),
    ],
)
def test_a_file_becomes_text_in_its_normal_form(
    parser: str, body: bytes, charset: str | None, text: str
) -> None:
    assert read_text(parser, body, charset) == text


@pytest.mark.parametrize(
    ("parser", "body", "problem"),
    [
        ("text", b" \n", parsing.NO_TEXT),
        ("html", b"<script>render()</script>", parsing.NO_TEXT),
        ("pdf", pdf("", ""), parsing.NO_TEXT_IN_PDF),
        ("pdf", pdf("Secret", encrypted=True), parsing.ENCRYPTED),
        ("pdf", b"%PDF-1.4\nnothing", parsing.BROKEN_PDF),
        (
            "pdf",
            pdf(*["x"] * 201),
            "The PDF has 201 pages, but the maximum is 200. Divide the PDF.",
        ),
    ],
)
def test_a_file_without_text_is_refused_with_the_reason(
    parser: str, body: bytes, problem: str
) -> None:
    with pytest.raises(UnreadableError) as raised:
        read_text(parser, body)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (DependencyError, parsing.ENCRYPTED),
        *((error, parsing.BROKEN_PDF) for error in (PdfReadError, ValueError, KeyError, TypeError)),
        *((error, parsing.BROKEN_PDF) for error in (AttributeError, IndexError)),
    ],
)
def test_error_of_the_pdf_library_becomes_a_reason(
    error: type[Exception], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise error("broken")

    monkeypatch.setattr(pypdf, "PdfReader", fail)
    with pytest.raises(UnreadableError) as raised:
        read_text("pdf", pdf("Bread"))
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("mime_type", "parser"),
    [
        ("application/xml", "html"),
        ("text/html", "html"),
        ("text/csv", "text"),
        ("application/pdf", "pdf"),
        ("image/png", None),
    ],
)
def test_the_parser_follows_from_the_type(mime_type: str, parser: str | None) -> None:
    assert parser_for(mime_type) == parser
