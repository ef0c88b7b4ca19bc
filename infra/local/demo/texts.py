"""The languages of the demo, and the files with its strings."""

import tomllib
from pathlib import Path
from typing import Any, Literal, get_args

Language = Literal["en", "ru"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


def read_toml(name: str, language: Language) -> dict[str, Any]:
    """Read a TOML file of this folder, with its strings in one language."""
    data = tomllib.loads(Path(__file__).with_name(name).read_text())
    localized: dict[str, Any] = localize(data, language)
    return localized


def localize(value: Any, language: Language) -> Any:  # noqa: ANN401
    """Replace each table of languages, like ``{"en": "Bread"}``, by its string in one language."""
    if isinstance(value, list):
        return [localize(element, language) for element in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == set(LANGUAGES):
        return value[language]
    return {key: localize(member, language) for key, member in value.items()}
