"""The endpoint at which OAuth clients register."""

from typing import Any

import pytest

from tests.factories.console import FORM
from tests.factories.oauth import REDIRECT_URI
from tests.factories.oauth_http import (
    CLIENT,
    content,
    error_of,
    register,
)


class TestRegistration:
    def test_a_client_gets_an_id(self) -> None:
        answer = register({"redirect_uris": [REDIRECT_URI], "client_name": "Claude"})
        assert answer.status == 201
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert content(answer)["client_id"] == CLIENT
        assert content(answer)["token_endpoint_auth_method"] == "none"

    @pytest.mark.parametrize(
        ("metadata", "status", "error"),
        [
            (b"{", 400, "invalid_client_metadata"),
            (b"[]", 400, "invalid_client_metadata"),
            (b'{"a": "' + b"x" * 40_000 + b'"}', 413, "invalid_client_metadata"),
            ({}, 400, "invalid_redirect_uri"),
            ({"redirect_uris": ["http://evil.example/"]}, 400, "invalid_redirect_uri"),
            (
                {"redirect_uris": [REDIRECT_URI], "grant_types": ["x"]},
                400,
                "invalid_client_metadata",
            ),
        ],
    )
    def test_metadata_that_cannot_be_used_is_refused(
        self, metadata: Any, status: int, error: str
    ) -> None:
        answer = register(metadata)
        assert (answer.status, error_of(answer)) == (status, error)

    def test_a_form_is_no_metadata(self) -> None:
        answer = register(b"a=1", **{"Content-Type": FORM})
        assert (answer.status, error_of(answer)) == (415, "invalid_client_metadata")
