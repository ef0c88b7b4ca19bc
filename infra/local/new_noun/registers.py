"""The lines of a noun in files that name every noun."""

import re
from pathlib import Path
from string import Template
from typing import NamedTuple

from infra.local.new_noun.files import console_folder, fill
from infra.local.new_noun.noun import Noun, WrongNounError

CONSOLE = "chalicelib/transports/console"
LOCALE = "chalicelib/transports/web/locale"


class Line(NamedTuple):
    """Lines for a register, and what they stand before. Without ``before``, they come last."""

    path: str
    text: str
    # A regular expression whose end is the place.
    place: str


LINES = (
    Line(
        f"{CONSOLE}/routes.py",
        '_${nouns} = partial(_page, "${folder}.${nouns}")\n',
        r"(?<=\n)(?=\n# Pages by path within a workspace)",
    ),
    Line(
        f"{CONSOLE}/routes.py",
        '    "/${path}": _${nouns}("index", "create", "list_${nouns}", "create_${noun}"),\n'
        '    "/${path}/new": _${nouns}("new_${noun}_page", shows="create_${noun}"),\n'
        '    "/${path}/{${noun}}": _${nouns}("show", "save", "get_${noun}", "update_${noun}"),\n'
        '    "/${path}/{${noun}}/delete":'
        ' _${nouns}("confirm_delete", "delete", "delete_${noun}"),\n',
        r"_OF_WORKSPACES = {\n(?:.*\n)*?(?=}\n)",
    ),
    Line(
        f"{CONSOLE}/menu.py",
        '    Link("/${path}", "tag", "${nouns}"),\n',
        r"BUSINESS = \(\n(?:.*\n)*?(?=\)\n)",
    ),
    Line("infra/local/demo/seed.py", "    ${nouns},\n", r"from infra\.local\.demo import \(\n"),
    Line(
        "infra/local/demo/seed.py",
        "    ${nouns}.make_${nouns},\n",
        r"STEPS = \(\n(?:.*\n)*?(?=\)\n)",
    ),
)
EVENTS = Line(
    "tests/contract/test_events.py",
    '        *("create_${noun}", "update_${noun}", "delete_${noun}"),\n',
    r"    OWN: \(\n",
)
"""The reason why its operations emit no events, which goes when the noun gets its events."""
CATALOGUES = {
    f"{LOCALE}/{language}/LC_MESSAGES/{name}.po": f"{name}.{language}.po"
    for language in ("en", "ru")
    for name in ("console", "changes")
}
"""Templates of translations, by the file at whose end they are added."""


def changed_files(root: Path, noun: Noun) -> dict[str, str]:
    """Return the new contents of the registers by path, or raise WrongNounError."""
    names = noun.names() | {"folder": console_folder(root, noun)}
    contents: dict[str, str] = {}
    for line in (*LINES, *([EVENTS] if _needs_a_reason(root, noun) else [])):
        content = contents.get(line.path) or (root / line.path).read_text()
        found = re.search(line.place, content)
        if found is None:
            msg = f"{line.path}: expected {line.place} in it. Update infra/local/new_noun."
            raise WrongNounError(msg)
        text = Template(line.text).substitute(names)
        contents[line.path] = content[: found.end()] + text + content[found.end() :]
    for path, template in CATALOGUES.items():
        content, added = (root / path).read_text(), fill(template, names)
        _check_keys(path, content, added)
        contents[path] = content + added
    return contents


def _check_keys(path: str, content: str, added: str) -> None:
    keys = [set(re.findall(r'^msgid "(\w+)"', text, re.MULTILINE)) for text in (content, added)]
    if there := sorted(keys[0] & keys[1]):
        msg = f"NAME: {path} has {', '.join(there)} already. Send another name."
        raise WrongNounError(msg)


def _needs_a_reason(root: Path, noun: Noun) -> bool:
    # Domains whose operations all have the same reason are named there.
    register = re.search(r"OWN_DOMAINS = {\n(?:.*\n)*?}", (root / EVENTS.path).read_text())
    return register is None or f'"{noun.domain}"' not in register[0]
