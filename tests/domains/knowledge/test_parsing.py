"""Files become plain text, in the process of the test."""

import io

import pypdf
import pytest
from pypdf.errors import DependencyError, PdfReadError

from chalicelib.domains.knowledge.rules import problems
from chalicelib.domains.knowledge.rules.parsing import (
    MAX_PAGES,
    UnreadableError,
    parser_for,
    read_text,
)
from chalicelib.domains.knowledge.rules.problems import Problem
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
        ("pdf", pdf(*["x"] * MAX_PAGES), None, "\n\n".join("x" * MAX_PAGES)),
    ],
)
def test_a_file_becomes_text_in_its_normal_form(
    parser: str, body: bytes, charset: str | None, text: str
) -> None:
    assert read_text(parser, body, charset) == text


@pytest.mark.parametrize(
    ("parser", "body", "problem"),
    [
        ("text", b" \n", problems.NO_TEXT),
        ("html", b"<script>render()</script>", problems.NO_TEXT),
        ("pdf", pdf("", ""), problems.NO_TEXT_IN_PDF),
        ("pdf", pdf("Secret", encrypted=True), problems.ENCRYPTED),
        ("pdf", b"%PDF-1.4\nnothing", problems.BROKEN_PDF),
        (
            "pdf",
            pdf(*["x"] * 201),
            problems.too_many_pages(201, maximum=200),
        ),
    ],
)
def test_a_file_without_text_is_refused_with_the_reason(
    parser: str, body: bytes, problem: Problem
) -> None:
    with pytest.raises(UnreadableError) as raised:
        read_text(parser, body)
    assert raised.value.args == problem


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (DependencyError, problems.ENCRYPTED),
        *(
            (error, problems.BROKEN_PDF)
            for error in (PdfReadError, ValueError, KeyError, TypeError)
        ),
        *((error, problems.BROKEN_PDF) for error in (TypeError, AttributeError, IndexError)),
    ],
)
def test_error_of_the_pdf_library_becomes_a_reason(
    error: type[Exception], problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise error("broken")

    monkeypatch.setattr(pypdf, "PdfReader", fail)
    with pytest.raises(UnreadableError) as raised:
        read_text("pdf", pdf("Bread"))
    assert raised.value.args == problem


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
