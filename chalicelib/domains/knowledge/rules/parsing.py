"""Plain text of HTML, text and PDF files, whose parsers may take any time and memory.

So ``read_text`` runs in a process of its own (``gateways.isolation``).
"""

import io

from chalicelib.domains.knowledge.rules import passages, problems
from chalicelib.domains.knowledge.rules.problems import Problem

MAX_BYTES = 10 * 2**20  # of a file that is parsed
MAX_PAGES = 200  # of a PDF that is parsed
HTML, TEXT, PDF = "html", "text", "pdf"
# The parser of each MIME type that is parsed.
PARSED_TYPES = {
    "text/plain": TEXT,
    "text/markdown": TEXT,
    "text/csv": TEXT,
    "text/tab-separated-values": TEXT,
    "text/html": HTML,
    "application/pdf": PDF,
}


def parser_for(mime_type: str) -> str | None:
    """Return the parser for a type that was found in the content of a page, or None."""
    return HTML if mime_type == "application/xml" else PARSED_TYPES.get(mime_type)


class UnreadableError(Exception):
    """A file has no text that can be read. The arguments are those of the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(*problem)


def read_text(parser: str, body: bytes, charset: str | None = None) -> str:
    """Return the text of a file in its normal form, or raise UnreadableError if it has none."""
    match parser:
        case "pdf":
            text, problem = _pdf_text(body), problems.NO_TEXT_IN_PDF
        case "html":
            text, problem = _html_text(body, charset), problems.NO_TEXT
        case _:
            text, problem = _decoded(body, charset), problems.NO_TEXT
    text = passages.normal_form(text)
    if not text:
        raise UnreadableError(problem)
    return text


def _decoded(body: bytes, charset: str | None) -> str:
    from chalicelib.domains.sites.rules.html_import import decode

    return decode(body, charset)[0]


def _html_text(body: bytes, charset: str | None) -> str:
    from turbohtml import PlainText, parse

    return parse(_decoded(body, charset)).to_text(PlainText(bullet="• "))


def _pdf_text(body: bytes) -> str:
    import pypdf  # only this process needs it
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = pypdf.PdfReader(io.BytesIO(body))
        # Many PDFs are encrypted with an empty password, which forbids only to change them.
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError(problems.ENCRYPTED)
        if (count := len(reader.pages)) > MAX_PAGES:
            raise UnreadableError(problems.too_many_pages(count, maximum=MAX_PAGES))
        return "\n\n".join(page.extract_text() for page in reader.pages)
    except DependencyError:  # a cipher that the zip does not carry
        raise UnreadableError(problems.ENCRYPTED) from None
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        # The library's own errors, and errors that broken files cause in the library.
        raise UnreadableError(problems.BROKEN_PDF) from None
