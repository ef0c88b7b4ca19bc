"""A list, select or page that lacks records says how many there are, and leads to the others.

The workspace has more records of each noun than any page shows. Their names are without digits, so
a number of records in a text is what the page says.
"""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from chalicelib.engine.listing.registry import listing_of
from chalicelib.engine.unit import run_unit
from chalicelib.transports.console.routes import ROUTES
from tests.conftest import call_console
from tests.factories.console import World
from tests.support.restoring import Snapshots
from tests.support.sweep import sweep

TOTALS = {
    "SERVICE": 121,
    "RESOURCE": 113,
    "FORM": 107,
    "SITE": 103,
    "PAGE": 109,
    "PRODUCT": 127,
    "CLIENT": 131,
    "LEAD": 137,
    "BOOKING": 139,
    "DIALOG": 149,
    "FILE": 151,
    "AGENT": 100,
    "KNOWLEDGE": 100,
    "CATEGORY": 157,
}
"""Records of each noun, or the maximum that a workspace may have."""
PLACES = {"AGENT": "bot", "KNOWLEDGE": "source", "RESOURCE": "staff"}
"""Fields of ``Place`` with the record that is copied, if they are not the noun's name."""
LISTED = 5
"""More names than this are a list, and not a mention."""
BATCH = 20
SAID = re.compile(r"(?:\b(?:and|another) )?\b(\d+) (?:more|others)\b")


def name_of(noun: str, number: int) -> str:
    """Return the name of a record, such as ``Serviceab``."""
    return noun.title() + "".join(chr(ord("a") + digit) for digit in divmod(number, 26))


def seed(world: World) -> None:
    """Copy the world's record of each noun until there are as many as ``TOTALS`` says."""
    here = world.here
    call_console(here.workspace_id, "create_category", name="Categoryzz")
    for noun, total in TOTALS.items():
        listing = listing_of(noun)
        (entry, *_) = listing.entries(here.workspace_id)
        known = getattr(here, PLACES.get(noun, noun.lower()), entry.id)
        (original,) = listing.fetch(here.workspace_id, [known])
        have = len(listing.entries(here.workspace_id))
        copies = [copy_of(world, listing, original, number) for number in range(total - have)]
        while copies:
            batch, copies = copies[:BATCH], copies[BATCH:]

            def stage(unit: Any, batch: Any = batch) -> None:
                for copy in batch:
                    unit.create(copy)

            run_unit(here.workspace_id, None, stage)


def copy_of(world: World, listing: Any, original: Any, number: int) -> Any:
    values = original.copied_values("resource_ids", "client_id", "named_contacts", "deletion_id")
    name = name_of(listing.noun, number)
    for attribute in ("name", "title", "words", "client_name"):
        if attribute in values or hasattr(type(original), attribute):
            values[attribute] = name
    for attribute in ("slug", "sku"):
        if attribute in values:
            values[attribute] = name.lower()
    if "phone" in values:
        values |= {"phone": None, "email": f"{name.lower()}@example.com"}
    return listing.new(world.here.workspace_id, **values)


NAMES = {noun: {name_of(noun, number) for number in range(total)} for noun, total in TOTALS.items()}
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
    snapshots.once("long lists", lambda: seed(world))
    return world


PAGES = [route for route, page in ROUTES.items() if page.get and "{workspace}" in route]
VIEWS = {"bookings": ("", "?view=week", "?view=list"), "knowledge": ("", "?add=file")}
"""Queries of the pages that show other lists then, by the last part of the path."""
FINDER = re.compile(r'<input id="(find-(\w+))"')
FORM, ACTION = re.compile("<form ([^>]*)"), re.compile('action="([^"]*)"')
OFFERED = {
    **dict.fromkeys(("service", "serviceIds"), "SERVICE"),
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
