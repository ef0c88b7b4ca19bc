"""The languages that pages speak, and what a text of the catalogue is."""

from collections.abc import Mapping
from typing import Final, Literal, get_args

Language = Literal["ru", "en"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)

Text = str | Mapping[str, str]
"""A text; or one for each plural form of the number ``n`` (CLDR)."""
