"""Contacts of a client or visitor, in normal form."""

from collections.abc import Iterable
from typing import NamedTuple, Self

from chalicelib.core.errors import ValidationError
from chalicelib.domains.clients.store.clients import EMAIL, PHONE
from chalicelib.lib import emails, phones
from chalicelib.lib.contact_fields import MAX_NAME


class Contact(NamedTuple):
    """Contacts of a client or visitor.

    ``phone`` is in normal form, or as entered if the number is invalid. ``phone_entered`` is the
    value that the visitor entered, with the words around the number.
    """

    name: str | None
    email: str | None
    phone: str | None
    phone_entered: str | None = None

    @classmethod
    def create(
        cls,
        *,
        name: str | None,
        email: str | None,
        phone: str | None,
        country: str,
        phone_field: str | None = None,
    ) -> Self:
        """Return a contact from values that a visitor entered.

        An invalid e-mail address is left out. A phone that is not a valid number in the country's
        format does not change. If it is the value of ``phone_field``, it is refused.

        Raises:
            ValidationError: the phone is refused.
        """
        if phone and phone_field and phones.find_phone(phone, country=country) is None:
            message = f'expected a phone number such as +74951234567, received "{phone}"'
            raise ValidationError.of(phone_field, message=message)
        return cls(
            name[:MAX_NAME] if name else None,
            emails.find_email(email) if email else None,
            phone_of(phone, country=country) if phone else None,
            phone,
        )

    @property
    def identity(self) -> dict[str, str | None]:
        """Contacts that identify the client."""
        return {EMAIL: self.email, PHONE: self.phone if phones.is_number(self.phone) else None}


def contacts_in(texts: Iterable[str], country: str) -> list[str]:
    """Return the e-mail addresses in strings, and the phone numbers in their normal form."""
    contact_values = (
        contact
        for text in texts
        for contact in (*emails.emails_in(text), *phones.possible_phones_in(text, country=country))
    )
    return list(dict.fromkeys(contact_values))


def phone_of(text: str, *, country: str) -> str:
    """Return a phone number in normal form, or unchanged if it is not a valid number."""
    return phones.find_phone(text, country=country) or text[: phones.MAX_CHARACTERS]


NOTHING = Contact(None, None, None)
