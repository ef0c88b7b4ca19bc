"""What the events of a calendar feed are called, without contacts and other words of names."""

import unicodedata

_IN_NAMES = "'\N{RIGHT SINGLE QUOTATION MARK}-."  # O'Neil, Anne-Marie, J.


def summary(service: str, client: str | None, staff: str | None) -> str:
    """Return the title of an event.

    >>> summary("Haircut", "Ada Lovelace", None)
    'Haircut · Ada'
    >>> summary("Haircut", None, "Maria")
    'Haircut (Maria)'
    """
    name = first_name(client or "")
    title = f"{service} \N{MIDDLE DOT} {name}" if name else service
    return f"{title} ({staff})" if staff else title


def first_name(name: str) -> str:
    """Return the first name of a client, or an empty string if there is none.

    A name is one field, so this is its first word, or the second one if a comma follows the first.
    People type contacts there, too. A word that is not made of letters is none.

    >>> first_name("Ada Lovelace"), first_name("Lovelace, Ada")
    ('Ada', 'Ada')
    >>> first_name("+7 495 123-45-67"), first_name("ada@example.com")
    ('', '')
    """
    words = name.split()
    if words[1:] and words[0].endswith(","):
        words = words[1:]
    word = words[0].rstrip(",") if words else ""
    return word if _is_name(word) else ""


def _is_name(word: str) -> bool:
    # Letters and their marks. An address such as ``ada.example`` has no dot inside a name.
    has_letter = any(map(str.isalpha, word))
    has_dot_inside = "." in word[:-1]
    return has_letter and not has_dot_inside and all(map(_is_of_name, word))


def _is_of_name(character: str) -> bool:
    return character in _IN_NAMES or unicodedata.category(character)[0] in "LM"
