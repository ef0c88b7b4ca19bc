"""A list, select or page that lacks records says how many there are, and leads to the others.

The workspace has more records of each noun than any page shows. Their names are without digits, so
a number of records in a text is what the page says.
"""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from chalicelib.transports.console.routes import ROUTES
from tests.factories.console import World
from tests.factories.crowd import NAMES, TOTALS, seed
from tests.support.restoring import Snapshots
from tests.support.sweep import sweep

LISTED = 5
"""More names than this are a list, and not a mention."""
SAID = re.compile(r"(?:\b(?:and|another) )?\b(\d+) (?:more|others)\b")


NAME = re.compile(r"\b(" + "|".join(noun.title() for noun in TOTALS) + r")[a-z]{2}\b")


@dataclass
class Part:
    """A list of a page, or a form, or the whole page, with its text."""

    tag: str
    within: "Part | None"
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text that users read."""
        return " ".join(self.texts)

    @property
    def names(self) -> dict[str, set[str]]:
        """The names of records in the part, by noun."""
        found: dict[str, set[str]] = {noun: set() for noun in TOTALS}
        for match in NAME.finditer(self.text):
            found[match[1].upper()].add(match[0])
        return found

    def says(self, shown: int, total: int) -> bool:
        """Whether the part, or what it is in, says how many records there are."""
        numbers = set(re.findall(r"\b\d+\b", self.text))
        more = {int(number) for number in SAID.findall(self.text)}
        if str(total) in numbers or total - shown in more:
            return True
        return self.within is not None and self.within.says(shown, total)


class Parts(HTMLParser):
    """Reads the lists of a page. A list belongs to the form that it is in, or to the page."""

    LISTS = ("select", "datalist", "fieldset", "ul", "ol", "table")
    SKIPPED = ("script", "style", "head")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.page = Part("page", None)
        self.open = [self.page]
        self.lists: list[Part] = []
        self.skipped = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Open a part."""
        self.skipped += tag in self.SKIPPED
        if tag in (*self.LISTS, "form"):
            forms = [part for part in self.open if part.tag in {"form", "page"}]
            self.open.append(Part(tag, forms[-1]))
            if tag in self.LISTS:
                self.lists.append(self.open[-1])

    def handle_endtag(self, tag: str) -> None:
        """Close a part."""
        self.skipped -= tag in self.SKIPPED
        if tag == self.open[-1].tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        """Add text to all open parts."""
        if not self.skipped:
            for part in self.open:
                part.texts.append(data)


def silent_cuts(html: str) -> list[str]:
    """Return a line for each list that lacks records and does not say so."""
    return [
        f"a {part.tag} has {len(names)} of {TOTALS[noun]} {noun}"
        for part in Parts(html).lists
        for noun, names in part.names.items()
        if LISTED < len(names) < TOTALS[noun] - 1 and not part.says(len(names), TOTALS[noun])
    ]


@pytest.fixture
def crowd(world: World, snapshots: Snapshots) -> World:
    """The world with many records of each noun."""
    snapshots.once("long lists", lambda: seed(world.here))
    return world


PAGES = [route for route, page in ROUTES.items() if page.get and "{workspace}" in route]
VIEWS = {"bookings": ("", "?view=week", "?view=list"), "knowledge": ("", "?add=file")}
"""Queries of the pages that show other lists then, by the last part of the path."""
FINDER = re.compile(r'<input id="(find-(\w+))"')
FORM, ACTION = re.compile("<form ([^>]*)"), re.compile('action="([^"]*)"')
OFFERED = {
    **dict.fromkeys(("service", "serviceId", "serviceIds"), "SERVICE"),
    **dict.fromkeys(("staff", "resource", "resourceIds"), "RESOURCE"),
    **dict.fromkeys(("form", "orderFormId"), "FORM"),
    **dict.fromkeys(("site", "siteId"), "SITE"),
}
"""The noun that a control offers."""


def views(route: str) -> tuple[str, ...]:
    return VIEWS.get(route.rpartition("/")[2], ("",))


@sweep("route", PAGES)
def test_a_list_says_what_it_lacks_and_finds_each_record_by_its_name(
    crowd: World, route: str
) -> None:
    path, boss = crowd.here.path_of(route), crowd.person("boss")
    for query in views(route):
        html = boss.get(path + query).body.decode()
        assert silent_cuts(html) == []
        for field_name, control in FINDER.findall(html):
            noun = OFFERED[control]
            name = min(NAMES[noun] - Parts(html).page.names[noun])
            form = FORM.findall(html.partition(f'id="{field_name}"')[0])[-1]
            if 'method="post"' in form:
                action = ACTION.search(form)
                to = action[1] if action else path
                answer = boss.post(to, {field_name: name, "type": "form"})
            else:
                answer = boss.get(f"{path}?{query[1:]}&{field_name}={name}")
            assert answer.status == 200, control
            lists = Parts(answer.body.decode()).lists
            assert any(name in part.text for part in lists), (control, name)


def test_a_cut_that_says_nothing_is_found() -> None:
    names = sorted(NAMES["SERVICE"])[:50]
    options = "".join(f"<option>{name} \u00b7 60 min</option>" for name in names)
    select = f"<form><select>{options}</select>%s</form><p>12 bookings</p>"
    assert silent_cuts(select % "") == ["a select has 50 of 121 SERVICE"]
    assert silent_cuts(select % "<p>The first 50 of 121</p>") == []
    assert silent_cuts(select % "<p>and 71 more</p>") == []
