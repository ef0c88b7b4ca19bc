"""Read translated strings from gettext's PO files, without a compile step."""

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

# A translation, or its plural forms in the order of the file's ``Plural-Forms``.
Text = str | tuple[str, ...]

# Comments, ``msgid``, ``msgid_plural`` and ``msgstr``, but no contexts (``msgctxt``). Reading 300
# strings takes 2 ms, once per process.
_FIELD = re.compile(r'^(msgid|msgid_plural|msgstr)(?:\[\d\])? ((?:".*"\n?)+)', re.MULTILINE)
_PLURAL_RULE = re.compile(r"Plural-Forms: nplurals=\d+; plural=([^;\n]+)")


class Catalogue:
    """The translations of one language, by key."""

    def __init__(self, texts: Mapping[str, Text], plural_rule: str) -> None:
        self.texts = texts
        # C expression of ``n``. Its value is the index of a plural form.
        self.plural_rule = plural_rule

    @cached_property
    def plural_index(self) -> Callable[[int], int]:
        from gettext import c2py

        return c2py(self.plural_rule)


def read(folder: Path, language: str, *names: str) -> Catalogue:
    """Return the translations of all files ``<folder>/<language>/LC_MESSAGES/<name>.po``."""
    texts: dict[str, Text] = {}
    for name in names:
        path = folder / language / "LC_MESSAGES" / f"{name}.po"
        texts |= _parse(path.read_text(encoding="utf-8"))
    (plural_rule,) = _PLURAL_RULE.findall(str(texts.pop("")))
    return Catalogue(texts, plural_rule)


def _parse(content: str) -> dict[str, Text]:
    # The empty key has the header of the file.
    texts: dict[str, Text] = {}
    key = ""
    for field, lines in _FIELD.findall(content):
        value = "".join(map(json.loads, lines.splitlines()))
        if field == "msgid":
            key = value
        elif field == "msgid_plural":
            texts[key] = ()
        else:
            forms = texts.get(key)
            texts[key] = (*forms, value) if isinstance(forms, tuple) else value
    return texts
