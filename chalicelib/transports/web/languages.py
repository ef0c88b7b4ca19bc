"""The languages of the pages."""

from typing import Final, Literal, get_args

Language = Literal["ru", "en"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
