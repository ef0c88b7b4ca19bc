"""Bring contacts of a client or visitor into normal form."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from chalicelib.core.errors import ValidationError
from chalicelib.domains.clients.store.clients import EMAIL, PHONE
from chalicelib.lib import emails, phones
from chalicelib.lib.contact_fields import MAX_NAME


class Contact(NamedTuple):
    name: str | None
    email: str | None
    phone: str | None  # in normal form, or None if no valid number was entered
    phone_entered: str | None = None  # as the visitor entered it, with the words around the number

    @classmethod
    def create(
        cls,
        *,
        name: str | None,
        email: str | None,
        phone: str | None,
        country: str,
        required_phone: str | None = None,
    ) -> Self:
        """Return the normal form of entered values, or raise ValidationError for the phone."""
        # An invalid e-mail address is left out, and so is a phone that is no valid number; it stays
        # in ``phone_entered``. ``required_phone`` is the name of the field if the phone is the only
        # contact, and must be valid then.
        number = phones.find_phone(phone, country=country) if phone else None
        if phone and required_phone and number is None:
            raise wrong_phone(required_phone, phone, country=country)
        return cls(
            name[:MAX_NAME] if name else None,
            emails.find_email(email) if email else None,
            number,
            phone and phone[: phones.MAX_CHARACTERS],
        )

    @property
    def identity(self) -> dict[str, str | None]:
        # The contacts that identify the client. Former leads have a phone that is no number.
        return {EMAIL: self.email, PHONE: self.phone if phones.is_number(self.phone) else None}


def contacts_in(texts: Iterable[str], country: str) -> list[str]:
    """Return the e-mail addresses in strings, and the phone numbers in their normal form."""
    contact_values = (
        contact
        for text in texts
        for contact in (*emails.emails_in(text), *phones.possible_phones_in(text, country=country))
    )
    return list(dict.fromkeys(contact_values))


def wrong_phone(field: str, text: str, *, country: str) -> ValidationError:
    """Return the error for a phone that is no valid number, with an example of the country."""
    message = (
        f"expected a number of {country} or one with its country code, such as "
        f'{phones.example(country)}, received "{text}"'
    )
    return ValidationError.of(field, message=message, key="phone")


NOTHING = Contact(None, None, None)
