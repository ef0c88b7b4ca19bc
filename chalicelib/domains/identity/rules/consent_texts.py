"""The texts to which a person agrees when signing up, with their versions."""

from typing import Literal, get_args

Consent = Literal["terms", "personal_data", "advertising"]
CONSENTS: tuple[Consent, ...] = get_args(Consent)
REQUIRED: frozenset[Consent] = frozenset({"terms", "personal_data"})
# The versions of the texts in ``transports/web/templates/console/consents``. Each agreement is
# stored with the version that was shown, so a changed text gets another version. A test fails if
# it does not.
VERSIONS: dict[Consent, str] = {
    "terms": "2026-11-29",
    "personal_data": "2026-11-29",
    "advertising": "2026-11-29",
}
