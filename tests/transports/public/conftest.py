"""Checks that tests of the public endpoints share."""

from tests.conftest import Answer


def is_readable_from_any_origin(answer: Answer) -> bool:
    """Whether any origin may read a response, but without a visitor's cookies."""
    return (
        answer.headers["Access-Control-Allow-Origin"] == "*"
        and "Access-Control-Allow-Credentials" not in answer.headers
    )
