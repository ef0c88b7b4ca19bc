"""How the embedded model finds free times and proposes a booking."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

from chalicelib.gateways.llm import facts
from chalicelib.gateways.llm.facts import Offer
from chalicelib.gateways.llm.messages import ToolCall
from chalicelib.gateways.llm.reception import dates, intents, matching, wording
from chalicelib.gateways.llm.reception.dates import Days, When
from chalicelib.gateways.llm.reception.dialog import Dialog, Offered, VisitorMessage

FIND, PROPOSE = "find_free_times", "propose_booking"
MAX_NAMED = 3
"""Free times that one answer names."""
MAX_SERVICE = 200
"""Characters of a service's name that the tool accepts."""
APART = 60
"""Minutes between named times, if there are enough."""

_TAKEN = "no longer free"
"""Part of the error for a time that another visitor has booked meanwhile."""
_STAFF = re.compile(r"\b(?:with|to|by|к|ко|у|с|со)\s+(\w+(?:\s+\w+)?)", re.IGNORECASE)  # noqa: RUF001  Cyrillic, meant


class _Time(NamedTuple):
    """A free time in a result of the tool."""

    id: str
    start: str
    staff: str

    @classmethod
    def of(cls, data: dict[str, Any]) -> "_Time":
        return cls(data["slotId"], data["start"][:16], next(iter(data["staff"]), ""))

    @property
    def minutes(self) -> int:
        """Minutes after midnight."""
        return int(self.start[11:13]) * 60 + int(self.start[14:16])

    @property
    def moment(self) -> int:
        """Minutes since a fixed day."""
        return date.fromisoformat(self.start[:10]).toordinal() * dates.DAY_MINUTES + self.minutes


def answer(dialog: Dialog) -> ToolCall | str | None:
    """Return the next step of a booking, or None if there is nothing to book."""
    proposed, found = dialog.result(PROPOSE), dialog.result(FIND)
    if proposed and not proposed.is_error:
        title = json.loads(proposed.content)["title"]
        return f"{title}. {dialog.sentence('check_booking')}"
    was_taken = proposed is not None and _TAKEN in proposed.content
    if proposed and not (was_taken and (found or dialog.can_call(FIND))):
        return wording.error_sentence(dialog.language, proposed.content)
    if found is None:
        return (None if proposed else _chosen(dialog)) or _search(dialog)
    if found.is_error:
        return wording.error_sentence(dialog.language, found.content)
    return _from_times(dialog, json.loads(found.content), was_taken=was_taken)


def _search(dialog: Dialog) -> ToolCall | str | None:
    """Return the call that finds free times, or a question for the service."""
    if not dialog.can_call(FIND):
        return None
    services = _services(dialog)
    if len(services) > 1:
        key = "which_service" if services == dialog.services else "which_of"
        return dialog.sentence(key, names=", ".join(services))
    if not services:
        return None
    days = _when(dialog).days
    return dialog.call(
        FIND,
        service=services[0][:MAX_SERVICE],
        staff=_staff(dialog),
        firstDay=days and days.first.isoformat(),
        lastDay=days and days.last.isoformat(),
    )


def _services(dialog: Dialog) -> Sequence[str]:
    """Return the service that the visitor wants, several if that is unclear, or none."""
    for each in reversed(dialog.current):
        if named := matching.best(each.text, dialog.services):
            return named
    listed = [
        name for name in dialog.services if dialog.listing.lines and dialog.listing.is_of([name])
    ]
    return [max(listed, key=len)] if listed else dialog.services


def _staff(dialog: Dialog) -> str | None:
    """Return the person or room that the question names."""
    known = [each.name for each in dialog.facts.hours]
    known += [each.staff for each in dialog.offered]
    for match in _STAFF.finditer(dialog.current[-1].text):
        if len(found := matching.best(match[1], list(dict.fromkeys(known)))) == 1:
            return found[0]
    return None


def _when(dialog: Dialog) -> When:
    """Return the days and times that the visitor wants, as far as known.

    What the question leaves out comes from the messages before it. A question that names its
    purpose and a day begins a new search, so only itself counts.
    """
    question = dialog.current[-1]
    when = question.when
    for each in reversed(dialog.current[:-1]):
        if when.days and (when.has_time or question.intent):
            break
        with_time = when if when.has_time else each.when
        when = with_time._replace(days=when.days or each.when.days)
    if when.days or not (listed := _listed_day(dialog)):
        return when
    return when._replace(days=listed)


def _listed_day(dialog: Dialog) -> Days | None:
    """Return the day of the listed time that the question chooses, or of all listed times."""
    lines = dialog.listing.lines
    index = _choice(dialog)
    labels = {lines[index]["label"]} if index is not None else {each["label"] for each in lines}
    now = dialog.now
    days = {dates.read(label, now.date()).days for label in labels} if now else set()
    return days.pop() if len(days) == 1 else None


def _wants_booking(dialog: Dialog) -> bool:
    """Return whether the visitor wants a booking, not only to know the free times."""
    if _choice(dialog) is not None:
        return True
    purposes = [each.intent for each in dialog.current if each.intent in {"book", "times"}]
    return purposes[-1:] == ["book"]


def _choice(dialog: Dialog) -> int | None:
    """Return the index of the listed time that the visitor has chosen since."""
    listing = dialog.listing
    for each in reversed(listing.later):
        services = matching.best(each.text, dialog.services)
        if each.intent == "times" or each.when.days or not listing.is_of(services):
            return None
        index = intents.choice(each.text, len(listing.lines))
        if index is None:
            minutes = [_minutes(line) for line in listing.lines]
            fitting = [number for number, at in enumerate(minutes) if at in each.when.at]
            index = fitting[0] if len(fitting) == 1 else None
        if index is not None or each.intent == "book":
            return index
    return None


def _chosen(dialog: Dialog) -> ToolCall | str | None:
    """Return the proposal of the listed time that the question chooses, or ask which one."""
    lines, question = dialog.listing.lines, dialog.current[-1]
    if not lines or not dialog.can_call(PROPOSE) or question.intent == "times":
        return None
    index = _choice(dialog)
    if index is None and _adds_only_person(question, dialog):
        if len(lines) > 1:
            return "\n".join([dialog.sentence("which_time"), *(line[0] for line in lines)])
        index = 0
    chosen = None if index is None else _offered(dialog, lines[index])
    return _propose(dialog, chosen.id) if chosen else None


def _adds_only_person(question: VisitorMessage, dialog: Dialog) -> bool:
    """Return whether a message names the visitor, and nothing about the booking."""
    return (
        any(question.person)
        and question.when == When()
        and not matching.best(question.text, dialog.services)
    )


def _minutes(line: re.Match[str]) -> int:
    hour, minute = line["label"][-5:].split(":")
    return int(hour) * 60 + int(minute)


def _offered(dialog: Dialog, line: re.Match[str]) -> Offered | None:
    """Return the free time that a line of an answer names, if the dialog still has it."""
    fitting = [each for each in dialog.offered if each.is_listed_as(line["label"], line["staff"])]
    of_service = [each for each in fitting if dialog.listing.is_of([each.service])]
    return next(reversed(of_service or fitting), None)


def _propose(dialog: Dialog, slot_id: str) -> ToolCall:
    return dialog.call(PROPOSE, slotId=slot_id, **dialog.person._asdict())


def _from_times(dialog: Dialog, data: dict[str, Any], *, was_taken: bool) -> ToolCall | str:
    """Return the proposal of the time that the visitor wants, or name free times."""
    times = [_Time.of(each) for each in data["times"]]
    when = _wanted(dialog)
    fitting = _fitting(times, when)
    exact = fitting if when.at else []
    can_propose = dialog.can_call(PROPOSE) and not was_taken
    if exact and can_propose and _wants_booking(dialog) and len(_days(exact)) == 1:
        return _propose(dialog, exact[0].id)
    if times and was_taken:
        intro = dialog.sentence("taken") + " " + dialog.sentence("times")
    elif fitting or not times:
        intro = dialog.sentence("times") if times else ""
    else:
        wanted = ", ".join(f"{each // 60}:{each % 60:02}" for each in when.at[:1])
        is_sure = wanted and not data.get("more")
        intro = (
            dialog.sentence("other_times", wanted=wanted) if is_sure else dialog.sentence("times")
        )
    named = _spread(fitting) if fitting else _nearest(times, when)
    if not times:
        after = data.get("next")
        intro = dialog.sentence("next_time" if after else "no_times")
        named = [_Time.of(after)] if after else []
    price = round(data["price_rub"] * 100)
    head = Offer("service", data["service"], price, data["minutes"])
    lines = [
        facts.format_offer(head, in_russian=dialog.language == "ru"),
        intro,
        *(_line(number, each, dialog) for number, each in enumerate(named, start=1)),
        _closing(dialog, len(named)),
    ]
    return "\n".join(filter(None, lines))


def _wanted(dialog: Dialog) -> When:
    """Return the time that the visitor wants: that of the listed line that the question chooses."""
    lines = dialog.listing.lines
    index = _choice(dialog)
    when = _when(dialog)
    return when if index is None else when._replace(at=(_minutes(lines[index]),))


def _fitting(times: Sequence[_Time], when: When) -> list[_Time]:
    """Return the times that the visitor wants. Of two meanings of a time the likelier counts."""
    for at in when.at:
        if exact := [each for each in times if each.minutes == at]:
            return exact
    if when.at:
        return []
    return [each for each in times if when.earliest <= each.minutes <= when.latest]


def _days(times: Iterable[_Time]) -> set[str]:
    return {each.start[:10] for each in times}


def _nearest(times: Sequence[_Time], when: When) -> list[_Time]:
    """Return the times that are nearest to the one that the visitor wants, in their order."""
    wanted = when.at[0] if when.at else when.earliest
    nearest = sorted(times, key=lambda each: abs(each.minutes - wanted))[:MAX_NAMED]
    return sorted(nearest, key=lambda each: each.start)


def _spread(times: Sequence[_Time]) -> list[_Time]:
    """Return a few times that are not too close to each other, if there are enough."""
    chosen = list(_apart(times))[:MAX_NAMED]
    others = [each for each in times if each not in chosen]
    return sorted(chosen + others[: MAX_NAMED - len(chosen)], key=lambda each: each.start)


def _apart(times: Iterable[_Time]) -> Iterator[_Time]:
    last = -APART
    for each in times:
        if each.moment - last >= APART:
            last = each.moment
            yield each


def _line(number: int, time: _Time, dialog: Dialog) -> str:
    text = f"{number}. {dates.label(time.start, dialog.language)}"
    return f"{text} ({time.staff})" if time.staff else text


def _closing(dialog: Dialog, count: int) -> str:
    """Return the question after ``count`` named times."""
    if not count:
        return ""
    if PROPOSE not in dialog.tools:
        return dialog.sentence("cannot_book") if _wants_booking(dialog) else ""
    question = dialog.sentence("this_time" if count == 1 else "which_time")
    return question if dialog.person.is_known else f"{question} {dialog.sentence('who')}"
