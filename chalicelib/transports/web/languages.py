"""The languages of the pages."""

from typing import Final, get_args

from chalicelib.lib.localized import Language

__all__ = ["LANGUAGES", "Language"]

LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
