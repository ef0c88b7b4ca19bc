"""The languages of the pages."""

from chalicelib.lib.localized import LANGUAGES, Language

__all__ = ["LANGUAGES", "Language"]
