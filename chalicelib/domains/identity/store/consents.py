"""What people have agreed to. A row outlives the account's data, as evidence."""

from datetime import datetime

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.domains.identity.rules.consent_texts import VERSIONS, Consent
from chalicelib.engine.tables import IdentityRow


class ConsentRow(IdentityRow):
    """An agreement of an account to a text. The sort key is the text and its version."""

    version = UnicodeAttribute()
    # The hash under which the address is claimed, so that the row says who has agreed without the
    # address.
    address_hash = UnicodeAttribute()
    at = UTCDateTimeAttribute()

    @property
    def consent(self) -> str:
        return self.sk.partition("#")[0]


def row(account_id: str, consent: Consent, *, address_hash: str, at: datetime) -> ConsentRow:
    """Return the row of an agreement to the present version of a text, for the caller to stage."""
    version = VERSIONS[consent]
    return ConsentRow(
        _partition(account_id),
        f"{consent}#{version}",
        version=version,
        address_hash=address_hash,
        at=at,
    )


def read(account_id: str) -> list[ConsentRow]:
    """Return what an account has agreed to."""
    return list(ConsentRow.partition(_partition(account_id)))


def _partition(account_id: str) -> str:
    return f"ACCOUNT#{account_id}#CONSENTS"
