"""The forms of a noun's name in code, routes and texts, and what a name must be."""

import builtins
import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic.alias_generators import to_camel, to_pascal

from chalicelib.core.areas import AREAS, Area
from chalicelib.core.operations import REGISTRY
from chalicelib.engine.listing.registry import NOUNS

# Names of variables, arguments and fields in the templates.
RESERVED = frozenset(
    (
        *("answer", "args", "changes", "count", "create", "ctx", "delete", "domain", "each"),
        *("example", "field", "icon", "index", "may", "membership", "message", "name", "names"),
        *("number", "owner", "page", "pager", "path", "query", "record", "request", "save"),
        *("search", "self", "show", "size", "state", "status", "total", "typed", "user", "value"),
        *("values", "workspace"),
    )
)
_NAME = re.compile(r"[a-z]+(_[a-z]+)*")
_IRREGULAR = re.compile(r"(s|x|z|ch|sh|f|fe|o|man|child|person|data|media)$")


class WrongNounError(Exception):
    """The noun cannot be written under this name. The message says what to send instead."""


@dataclass(frozen=True)
class Noun:
    """A noun in snake case, such as ``gift_card``, with its plural and its domain."""

    name: str
    plural: str
    domain: str
    area: Area

    def names(self) -> dict[str, str]:
        """Return the values of the placeholders in templates."""
        label, labels = self.name.replace("_", " "), self.plural.replace("_", " ")
        article = "an" if label[0] in "aeio" else "a"  # "a user", "a unit"
        return {
            "noun": self.name,
            "nouns": self.plural,
            "Noun": to_pascal(self.name),
            "NOUN": self.name.upper(),
            "NOUNS": self.plural.upper(),
            "wire": to_camel(self.name),
            "wires": to_camel(self.plural),
            "path": self.plural.replace("_", "-"),
            "label": label,
            "labels": labels,
            "Label": label.capitalize(),
            "Labels": labels.capitalize(),
            "a": article,
            "A": article.capitalize(),
            "domain": self.domain,
            "SCOPE": self.area.name.upper(),
        }


def read_noun(root: Path, name: str, plural: str, domain: str) -> Noun:
    """Return the noun, or raise WrongNounError."""
    _check_identifier("NAME", name)
    if not plural and _IRREGULAR.search(name):
        msg = f'PLURAL: the plural of "{name}" is irregular. Add PLURAL=…, in snake case.'
        raise WrongNounError(msg)
    plural = plural or _regular_plural(name)
    _check_identifier("PLURAL", plural)
    if plural == name:
        msg = f'PLURAL: expected another word than "{name}", because both are names in one module.'
        raise WrongNounError(msg)
    areas = _areas_by_domain(root)
    if domain not in areas:
        expected = ", ".join(sorted(areas))
        msg = (
            f'DOMAIN: expected one of {expected}, received "{domain}". For a domain of its own, '
            "read the end of the recipe in CONTRIBUTING.md."
        )
        raise WrongNounError(msg)
    _check_new(name, plural)
    return Noun(name, plural, domain, areas[domain])


def _check_identifier(option: str, name: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or keyword.issoftkeyword(name):
        msg = (
            f"{option}: expected an identifier of lower-case Latin letters and single underscores, "
            f'such as gift_card, received "{name}".'
        )
        raise WrongNounError(msg)
    if name in RESERVED or hasattr(builtins, name):
        msg = f'{option}: "{name}" is the name of a variable in the generated code. Send another.'
        raise WrongNounError(msg)


def _check_new(name: str, plural: str) -> None:
    declared = {entry.name for entry in REGISTRY.entries()}
    verbs = ("create", "get", "update", "delete")
    names = {f"{verb}_{name}" for verb in verbs} | {f"list_{plural}"}
    if name.upper() in NOUNS or names & declared:
        there = ", ".join(sorted(names & declared)) or f"the listing of {name.upper()}"
        msg = f'NAME: "{name}" exists already ({there}). Send another name.'
        raise WrongNounError(msg)


def _regular_plural(name: str) -> str:
    return re.sub(r"(?<![aeiou])y$", "ie", name) + "s"


def _areas_by_domain(root: Path) -> dict[str, Area]:
    """Return the area of each domain that has stores and operations, and scopes for all."""
    folder = root / "chalicelib" / "domains"
    return {
        domain: area
        for area in AREAS
        for domain in area.logged
        if area.scoped
        and not area.admin_only
        and all((folder / domain / part).is_dir() for part in ("store", "operations"))
    }
