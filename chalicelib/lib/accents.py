"""Colours of a business for its booking page and its e-mails."""

from typing import Literal, get_args

Accent = Literal["indigo", "blue", "teal", "green", "amber", "red", "pink", "graphite"]
ACCENTS = get_args(Accent)
DEFAULT: Accent = "indigo"
# The colour of buttons on light pages, and on dark pages.
# Each has enough contrast (WCAG AA) of buttons and of words, on light and on dark pages. Each has a
# style sheet of booking pages, because the pages allow no inline styles.
COLOURS = {
    "indigo": ("#3f3fbf", "#adb4ff"),
    "blue": ("#0b57d0", "#8ab4f8"),
    "teal": ("#0b6b70", "#7bd3d6"),
    "green": ("#17693a", "#7fd69c"),
    "amber": ("#8a4b00", "#f0b866"),
    "red": ("#ad1f2d", "#ff9c9c"),
    "pink": ("#a8266b", "#ff9fcb"),
    "graphite": ("#3d3a36", "#d3cec5"),
}


def colours(accent: str | None) -> tuple[str, str]:
    """Return the colours of an accent, or of the default one, on light and on dark pages."""
    return COLOURS.get(accent or DEFAULT, COLOURS[DEFAULT])
