"""Count the segments of an SMS, by which it is charged (3GPP TS 23.038 and 23.040).

A text whose characters are all in the GSM-7 alphabet has 160 units in one segment, or 153 in each
of several. Any other text is sent as UCS-2, with 70 or 67 units of UTF-16.
"""

from typing import Final, NamedTuple

# The default alphabet (TS 23.038, 6.2.1), without the escape to the extension table.
_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
# The extension table (6.2.1.1). Each of these takes an escape and a character.
_EXTENDED: Final = frozenset("\f^{}\\[~]|€")


class _Alphabet(NamedTuple):
    alone: int  # units of a text of one segment
    joined: int  # units of each segment of a longer text, beside the header that joins them


_GSM_7, _UCS_2 = _Alphabet(160, 153), _Alphabet(70, 67)


def is_gsm_7(text: str) -> bool:
    """Whether all characters of a text are in the GSM-7 alphabet with its extension table."""
    return all(character in _BASIC or character in _EXTENDED for character in text)


def count(text: str) -> int:
    """Return the number of segments of a text.

    >>> count("a" * 160), count("a" * 161), count("ж" * 70), count("ж" * 71)
    (1, 2, 1, 2)
    """
    alphabet, sizes = _units(text)
    if sum(sizes) <= alphabet.alone:
        return 1
    segments, room = 1, alphabet.joined
    for size in sizes:
        # Neither an escape and its character nor a pair of surrogates is divided.
        if size > room:
            segments, room = segments + 1, alphabet.joined
        room -= size
    return segments


def _units(text: str) -> tuple[_Alphabet, list[int]]:
    if is_gsm_7(text):
        return _GSM_7, [2 if character in _EXTENDED else 1 for character in text]
    return _UCS_2, [2 if character > "\uffff" else 1 for character in text]
