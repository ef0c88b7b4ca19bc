"""Why a source could not be read, with codes that are stable and sentences that are not."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

MAX_FAILURES = 7  # failed reads in a row, after which a page is not read again


class ProblemCode(StrEnum):
    """The codes of problems. The console has a translation for each."""

    NO_TEXT = "no_text"
    NO_TEXT_IN_PDF = "no_text_in_pdf"
    ENCRYPTED = "encrypted"
    BROKEN_PDF = "broken_pdf"
    TOO_MANY_PAGES = "too_many_pages"
    TOO_MUCH_TEXT = "too_much_text"
    WRONG_TYPE = "wrong_type"
    TOO_SLOW = "too_slow"
    NOT_READ = "not_read"
    NOT_FETCHED = "not_fetched"
    OVER_BUDGET = "over_budget"
    MISSING_FILE = "missing_file"
    FILE_DELETED = "file_deleted"
    # After another problem
    STILL_ANSWERS = "still_answers"
    GIVEN_UP = "given_up"


class Problem(NamedTuple):
    """A problem, with a sentence for the owner of the source."""

    code: ProblemCode
    message: str
    facts: Mapping[str, Any] = {}

    def detail(self) -> dict[str, Any]:
        """Return the element of ``errorDetails``."""
        return {"code": self.code, "message": self.message, **self.facts}


NO_TEXT = Problem(ProblemCode.NO_TEXT, "No text was found. Pages that a script fills have none.")
NO_TEXT_IN_PDF = Problem(
    ProblemCode.NO_TEXT_IN_PDF,
    "No text was found in the PDF. It may be scanned: only images of its pages.",
)
ENCRYPTED = Problem(
    ProblemCode.ENCRYPTED, "The PDF is protected with a password. Save it without one."
)
BROKEN_PDF = Problem(ProblemCode.BROKEN_PDF, "The PDF is damaged, so it could not be read.")
TOO_SLOW = Problem(
    ProblemCode.TOO_SLOW, "The file is too complex: it took longer than 20 seconds to read."
)
NOT_READ = Problem(
    ProblemCode.NOT_READ, "The file could not be read. It is damaged, or needs too much memory."
)
OVER_BUDGET = Problem(
    ProblemCode.OVER_BUDGET,
    "The workspace's pages of today are used up. This one is read tomorrow.",
)
MISSING_FILE = Problem(
    ProblemCode.MISSING_FILE,
    "The file is missing. Upload it again, and add it as a new source.",
)
FILE_DELETED = Problem(
    ProblemCode.FILE_DELETED, "The file was deleted. Delete this source, or add another file."
)
STILL_ANSWERS = Problem(
    ProblemCode.STILL_ANSWERS, "The bot still answers from the text that was read before."
)
GIVEN_UP = Problem(
    ProblemCode.GIVEN_UP,
    f"It failed {MAX_FAILURES} times in a row and is not read again: delete this source, or add "
    "it once more.",
)


def not_fetched(reason: str) -> Problem:
    """Return the problem of a page that was not fetched. ``reason`` is a clause of the fetcher."""
    message = f"The page was not read: {reason}."
    return Problem(ProblemCode.NOT_FETCHED, message, {"reason": reason})


def wrong_type(received: str) -> Problem:
    """Return the problem of a page of a MIME type that is not read."""
    message = f"Expected a web page, plain text or a PDF, received {received}."
    return Problem(ProblemCode.WRONG_TYPE, message, {"received": received})


def too_many_pages(count: int, *, maximum: int) -> Problem:
    """Return the problem of a long PDF."""
    message = f"The PDF has {count:,} pages, but the maximum is {maximum}. Divide the PDF."
    return Problem(ProblemCode.TOO_MANY_PAGES, message, {"count": count, "maximum": maximum})


def too_much_text(size: int, *, used: int, maximum: int) -> Problem:
    """Return the problem of a text that exceeds the bot's quota. All numbers are bytes."""
    message = (
        f"The text has {size:,} bytes. The bot's other sources use {used:,} of {maximum:,} bytes."
    )
    facts = {"bytes": size, "used": used, "maximum": maximum}
    return Problem(ProblemCode.TOO_MUCH_TEXT, message, facts)
