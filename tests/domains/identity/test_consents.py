"""A text to which people agree has a version of its own."""

import hashlib
from pathlib import Path

import pytest

from chalicelib.domains.identity.rules.consent_texts import CONSENTS, REQUIRED, VERSIONS, Consent

TEXTS = Path("chalicelib/transports/web/templates/console/consents")
# The hash of the text in both languages, by text and version. Add a line for a changed text.
HASHES = {
    ("advertising", "2026-11-29"): "95568deff75fe314",
    ("personal_data", "2026-11-29"): "cc609809932064f5",
    ("terms", "2026-11-29"): "e9147f4bd841f8ab",
}


@pytest.mark.parametrize("consent", CONSENTS)
def test_a_changed_text_has_another_version(consent: Consent) -> None:
    texts = sorted(TEXTS.glob(f"{consent}.*.html"))
    assert [path.name for path in texts] == [f"{consent}.en.html", f"{consent}.ru.html"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in texts)).hexdigest()
    assert digest.startswith(HASHES[consent, VERSIONS[consent]])


def test_advertising_is_not_required() -> None:
    assert {"terms", "personal_data"} == REQUIRED
