"""What a field holds by its name: an e-mail address, a phone, a name or a message."""

import re
import unicodedata

EMAIL, PHONE, NAME, MESSAGE = "email", "phone", "name", "message"
_WORDS = {
    EMAIL: "email emailaddress mail replyto почта электроннаяпочта эпочта емейл имейл email1"
    " адресэлектроннойпочты",
    PHONE: "phone phonenumber phone1 tel telephone telephonenumber mobile mobilephone mobilenumber"
    " cell cellphone whatsapp телефон номертелефона контактныйтелефон мобильный мобильныйтелефон"
    " телефондлясвязи",
    NAME: "name fullname contactname clientname customername personname fio имя фио полноеимя"
    " имяифамилия фамилияиимя каквасзовут контактноелицо",
    MESSAGE: "message msg comment comments text textarea question note notes сообщение комментарий"
    " комментарии вопрос текст текстсообщения пожелания",
}
# What a field is by its name or label, as ``plain`` returns it.
ROLES = {word: role for role, words in _WORDS.items() for word in words.split()}
_PREFIX = re.compile(r"(?:q[0-9]+_|input_|field_|form_fields_|wpforms_|field:)+")
_YOUR = re.compile(r"(?:your|contact|ваша|ваше|ваш)(?=.)")


def role_of(name: str) -> str | None:
    """Return what a value is by its name: e-mail, phone, name, message, or None for others."""
    return ROLES.get(plain(name))


def plain(name: str) -> str:
    """Return a name without case, spaces, punctuation and what programs put before it."""
    folded = unicodedata.normalize("NFKC", name).casefold().replace("ё", "е")  # noqa: RUF001  Russian
    folded = _PREFIX.sub("", folded, count=1)
    letters = "".join(character for character in folded if character.isalnum())
    return _YOUR.sub("", letters, count=1) if letters not in ROLES else letters
