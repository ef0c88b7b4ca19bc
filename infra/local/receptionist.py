"""Let the demo model of ``make dev`` answer by a table of intents, and by facts otherwise.

An intent is a plain request in English or Russian, recognised by its words. It leads to one tool of
the bot. A listed time that the visitor chooses becomes a proposal. A question of the model ends
with a question mark, and the visitor's next message continues the request. Nothing else is
remembered, because each call reads the whole dialog.
"""

# ruff: noqa: RUF001  Cyrillic letters are intended

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from chalicelib.core.text import fold
from chalicelib.gateways.llm import demo, facts, frame
from chalicelib.gateways.llm.facts import Facts, Hours, Offer, OfferedTimes, Proposal
from chalicelib.gateways.llm.messages import Message, ToolCall, ToolResult, ToolSpec
from chalicelib.lib import emails, extracts, localized, po_files
from chalicelib.lib.currencies import RUB
from chalicelib.lib.localized import Language

LOCALE = Path(__file__).parent / "locale"
LANGUAGES: tuple[Language, ...] = ("en", "ru")
MAX_CHARACTERS = 1_000  # that are read of a message
MAX_TIMES = 3  # free times that one answer names
MAX_SENTENCES = 3
MAX_OFFERS = 10  # in one answer
MAX_ITEMS = 20
MAX_AHEAD = timedelta(days=366)  # Later days are not understood.
# Characters that the tools accept of an offer's name and of a handover's reason.
MAX_NAME, MAX_REASON = 200, 500

T = TypeVar("T")


class Dialog(NamedTuple):
    """A dialog up to the visitor's question. No tool is called for an answer that ``is_final``."""

    messages: Sequence[str]  # the visitor's, newest first
    request: Sequence[str]  # those that the question continues
    answer: str  # the bot's last one
    facts: Facts
    today: date | None
    results: Sequence[ToolResult]  # of later tool calls
    tools: Collection[str]
    is_final: bool

    @property
    def language(self) -> Language:
        """The language of the visitor's last message with letters, apart from e-mail addresses."""
        texts = (re.sub(r"(?<!\S)\S+@\S+", "", text) for text in self.messages)
        return localized.language_of_message(
            next((text for text in texts if any(map(str.isalpha, text))), "")
        )

    def say(self, *keys: str, **values: object) -> str:
        """Return sentences in the visitor's language, with values in their placeholders."""
        texts = _catalogue(self.language).texts
        return " ".join(str(texts[key]).format(**values) for key in keys)

    def can_call(self, tool: str) -> bool:
        return tool in self.tools and not self.is_final

    def call(self, tool: str, **arguments: object) -> ToolCall:
        """Return a call to a tool, without arguments whose value is None."""
        provided = {name: value for name, value in arguments.items() if value is not None}
        text = json.dumps(provided, ensure_ascii=False).encode(errors="replace").decode()
        return ToolCall(f"call_{len(self.results) + 1}", tool, text)

    def newest(
        self, read: Callable[[str], T | None], texts: Sequence[str] | None = None
    ) -> T | None:
        """Return what the newest message states of what ``read`` returns."""
        return next(filter(None, map(read, self.request if texts is None else texts)), None)

    def find_names(self, kind: str, *, text: str) -> list[str]:
        """Return the services or products in the facts that a message names, the best match."""
        # Words match by their first four letters without vowels at the end, which inflected Russian
        # words share. Several names are returned if the message does not decide between them.
        question_words = _beginnings(text)
        scores: dict[str, tuple[int, bool]] = {}
        for offer in self.facts.offers:
            words = _beginnings(offer.name) if offer.kind == kind else set[str]()
            if shared := words & question_words:
                scores[offer.name] = len(shared), shared == words
        return [name for name, score in scores.items() if score == max(scores.values())]


def _beginnings(text: str) -> set[str]:
    return {fold(word)[:4].rstrip("аеиоуыяь") for word in extracts.words(text)}


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "receptionist")


def install() -> None:
    """Let the demo model of this process answer in chats as ``respond`` does."""
    demo.respond = respond


def respond(
    messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, final: bool = False
) -> str | ToolCall:
    """Return the answer to the visitor's last message or, unless ``final``, the needed call."""
    dialog = _read(messages, {tool.name for tool in tools}, is_final=final)
    if dialog.results:
        return _report(dialog, dialog.results[-1])
    for text in dialog.request:
        for words, tool, act in _INTENTS:
            if words.search(fold(text)):
                step = act(dialog, text) if act and dialog.can_call(tool) else None
                return step or _quote(dialog)
    return _quote(dialog)


def _read(messages: Sequence[Message], tools: Collection[str], *, is_final: bool) -> Dialog:
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    last = users[-1] if users else len(messages)
    known_facts, question = facts_in(messages[last]) if users else (Facts(), "")
    texts, answers = [question[:MAX_CHARACTERS]], [""]
    for message in reversed(messages[:last]):
        if message.role == "user":
            texts.append(message.content[:MAX_CHARACTERS])
            answers.append("")
        elif message.role == "assistant":
            answers[-1] = answers[-1] or message.content
    begin = next((n for n, answer in enumerate(answers) if not answer.endswith("?")), len(texts))
    clocks = (_local_time(message.content) for message in messages if message.role == "system")
    now = next(clocks, None)
    results = [result for message in messages[last + 1 :] for result in message.results]
    return Dialog(
        texts,
        texts[: begin + 1],
        answers[0],
        known_facts,
        now and now.date(),
        results,
        tools,
        is_final,
    )


def facts_in(message: Message) -> tuple[Facts, str]:
    """Return the facts in a visitor's message, and the question."""
    offers: list[Offer] = []
    hours: list[Hours] = []
    dialog: list[OfferedTimes | Proposal] = []
    known_facts, question = facts.split(message)
    for data in known_facts:
        if "times" in data:
            dialog.append(OfferedTimes(data["service"], data["times"]))
        elif "state" in data:
            dialog.append(Proposal(data["title"], data["state"]))
        elif "of" in data:
            hours.append(_hours_of(data))
        elif "name" in data:
            offers.append(_offer_of(data))
    return Facts(offers, hours, facts.passages_in(message), dialog), question


def _offer_of(data: Mapping[str, Any]) -> Offer:
    price, currency = facts.price_in(data) or (0, RUB)
    return Offer(
        data["source"],
        data["name"],
        price,
        data.get("minutes"),
        data.get("about", ""),
        data.get("in_stock"),
        currency,
    )


def _hours_of(data: Mapping[str, Any]) -> Hours:
    days = tuple(data.get(day, "") for day in facts.DAYS)
    return Hours(data["of"], days, tuple(data.get("changes", ())))


def _local_time(content: str) -> datetime | None:
    """Return the local time of the business in a system message, or None if it has no frame."""
    match = _NOW.search(content.partition(frame.PROMPT)[0])
    try:
        return datetime.fromisoformat(f"{match[1]}T{match[2]}") if match else None
    except ValueError:
        return None


def _request_person(dialog: Dialog, text: str) -> ToolCall:
    return dialog.call(PERSON, reason=text[:MAX_REASON].strip())


def _propose_order(dialog: Dialog, _: str) -> ToolCall | str | None:
    for text in dialog.request:
        items: dict[str, int] = {}
        for part in _SEPARATOR.split(text):
            names = dialog.find_names("product", text=part)
            if len(names) > 1:
                return dialog.say("which_of", names=", ".join(names[:MAX_OFFERS]))
            items |= {name[:MAX_NAME]: _quantity(part) for name in names}
        if items:
            lines = [{"product": name, "quantity": items[name]} for name in items]
            return dialog.call(ORDER, items=lines[:MAX_ITEMS], **_person(dialog))
    return dialog.say("which_product")


def _quantity(text: str) -> int:
    match = _QUANTITY.search(fold(text))
    return 1 if not match else _NUMBERS.get(match[1]) or int(match[1])


def _find_times(dialog: Dialog, _: str) -> ToolCall | str | None:
    slot_id = _find_choice(dialog)
    if slot_id and dialog.can_call(BOOKING):
        return dialog.call(BOOKING, slotId=slot_id, **_person(dialog))
    services_in_dialog = [
        listing.service for listing in dialog.facts.dialog if isinstance(listing, OfferedTimes)
    ]
    services = (
        dialog.newest(lambda text: dialog.find_names("service", text=text))
        or services_in_dialog
        or [offer.name for offer in dialog.facts.offers if offer.kind == "service"]
    )
    if len(services) > 1:
        return dialog.say("which_of", names=", ".join(services[:MAX_OFFERS]))
    if not services:
        return None
    day = dialog.newest(lambda text: _day(text, dialog.today))
    days = {"firstDay": day.isoformat(), "lastDay": day.isoformat()} if day else {}
    return dialog.call(FIND, service=services[0][:MAX_NAME], **days)


def _find_choice(dialog: Dialog) -> str | None:
    lines, text = _LISTED.findall(dialog.answer), fold(dialog.messages[0])
    matching_lines = [
        line for line, word in zip(lines, _ORDINALS, strict=False) if word.search(text)
    ]
    if not matching_lines and not _day(text, dialog.today):
        matching_lines = [line for line in lines if any(at in line for at in _times(text))]
    if not matching_lines and len(lines) == 1 and _YES.match(text):
        matching_lines = lines
    ids = {
        _label(time[:16], staff=time.split(" ", 2)[-1], language=language): id_
        for listing in dialog.facts.dialog
        if isinstance(listing, OfferedTimes)
        for id_, time in listing.times.items()
        for language in LANGUAGES
    }
    return ids.get(matching_lines[0]) if len(matching_lines) == 1 else None


def _label(start: str, *, staff: str, language: Language) -> str:
    local = datetime.fromisoformat(start)
    return f"{localized.weekday_and_time(language, local)} ({staff})"


def _report(dialog: Dialog, result: ToolResult) -> ToolCall | str:
    if result.is_error:
        errors = ((pattern.search(result.content), key) for pattern, key in _ERRORS)
        match, key = next((error for error in errors if error[0]), (None, "failed"))
        return dialog.say(key, **(match.groupdict() if match else {}))
    data = json.loads(result.content)
    if result.name == FIND:
        return _offer_times(dialog, data)
    if result.name == PERSON:
        return dialog.say("person_asked")
    return f"{data['title']}. {dialog.say(f'check_{result.name}')}"


def _offer_times(dialog: Dialog, data: dict[str, Any]) -> ToolCall | str:
    times, later = data["times"], data.get("next")
    requested_times = dialog.newest(_times) or ()
    exact = [slot for slot in times if slot["start"][11:16] in requested_times]
    if exact and dialog.can_call(BOOKING):
        return dialog.call(BOOKING, slotId=exact[0]["slotId"], **_person(dialog))
    slots = (exact or times)[:MAX_TIMES] or [later] * bool(later)
    # Where they depend on the staff, each time has its own price and length.
    terms = data if "minutes" in data else next(iter(slots), {})
    price, currency = facts.price_in(terms) or (0, RUB)
    service = Offer("service", data["service"], price, terms.get("minutes"), currency=currency)
    lines = [
        _offer_line(dialog, service),
        dialog.say("times" if times else "next_time" if later else "no_times"),
    ]
    for number, slot in enumerate(slots, start=1):
        label = _label(
            slot["start"][:16], staff=next(iter(slot["staff"]), ""), language=dialog.language
        )
        lines.append(f"{number}. {label}")
    if slots and BOOKING not in dialog.tools:
        lines.append(dialog.say("cannot_book"))
    elif slots:
        is_named = {"name"} < _person(dialog).keys()
        lines.append(dialog.say(*([] if is_named else ["who"]), "which_time"))
    return "\n".join(lines)


def _person(dialog: Dialog) -> dict[str, str]:
    # The tool leaves out what the visitor has not said.
    def matched(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
        return lambda text: match[1] if (match := pattern.search(text)) else None

    details = {
        "name": dialog.newest(matched(_NAME), dialog.messages),
        "phone": dialog.newest(matched(_PHONE), dialog.messages),
        "email": dialog.newest(emails.first_email_in, dialog.messages),
    }
    return {name: value for name, value in details.items() if value}


def _day(text: str, today: date | None) -> date | None:
    if today is None:
        return None
    folded, day = fold(text), None
    try:
        if match := re.search(r"\b\d{4}-\d\d-\d\d\b", folded):
            day = date.fromisoformat(match[0])
        elif match := _DATE.search(folded):
            month = _MONTHS.index(match[2]) % 12 + 1
            day = date(today.year, month, int(match[1]))
            day = day if day >= today else day.replace(year=today.year + 1)
    except ValueError:
        return None
    # A day of the week means the next such day from today on.
    ahead = next((days for pattern, days in _AHEAD if pattern.search(folded)), None)
    if day is None and ahead is not None:
        day = today + timedelta(days=ahead)
    elif day is None and (match := _WEEKDAY.search(folded)):
        weekday = _WEEKDAYS.index(match[1]) % 7
        day = today + timedelta(days=(weekday - today.weekday()) % 7)
    return day if day and today <= day <= today + MAX_AHEAD else None


def _times(text: str) -> list[str]:
    # "at 3" is 03:00 or 15:00.
    times = [f"{int(hour):02}:{minute}" for hour, minute in _TIME.findall(text)]
    hours = [int(hour) for hour in _HOUR.findall(fold(text))]
    return times or [f"{hour_number:02}:00" for hour in hours for hour_number in (hour, hour + 12)]


def _quote(dialog: Dialog) -> str:
    question, known_facts = dialog.messages[0], dialog.facts
    stems = extracts.stems(question)
    sentences = [
        text for passage in known_facts.passages for text in extracts.sentences(passage.text)
    ]
    texts = sentences + [f"{offer.name} {offer.description}" for offer in known_facts.offers]
    relevant = extracts.most_relevant(question, texts)
    lines = [sentences[n] for n in sorted(n for n in relevant if n < len(sentences))]
    lines = lines[:MAX_SENTENCES]
    if known_facts.hours and facts.is_about_hours(question):
        lines += [
            dialog.say("hours"),
            *(_hours_line(dialog, day_hours) for day_hours in known_facts.hours),
        ]
    offers = [known_facts.offers[n - len(sentences)] for n in relevant if n >= len(sentences)]
    if not lines and not offers and stems & _OFFERS:
        kinds = [kind for kind, words in _KINDS.items() if stems & words]
        offers = [offer for offer in known_facts.offers if offer.kind in kinds] or [
            *known_facts.offers
        ]
        lines = [dialog.say("list")] if offers else []
    lines += [_offer_line(dialog, offer) for offer in offers[:MAX_OFFERS]]
    courtesy = next((key for key, words in _COURTESIES if words.search(fold(question))), "unknown")
    return "\n".join(dict.fromkeys(lines)) or dialog.say(courtesy)


def _offer_line(dialog: Dialog, offer: Offer) -> str:
    price = localized.money(dialog.language, offer.price, offer.currency)
    terms = [price if offer.price else dialog.say("free")]
    if "price" in offer.lowest_of_staff:
        terms = [dialog.say("from", value=price)]
    if offer.duration_min:
        minutes = dialog.say("minutes", count=offer.duration_min)
        varies = "minutes" in offer.lowest_of_staff
        terms.append(dialog.say("from", value=minutes) if varies else minutes)
    return f"{offer.name}: {', '.join(terms)}. {offer.description}".rstrip()


def _hours_line(dialog: Dialog, hours: Hours) -> str:
    days = zip(dialog.say("weekdays").split(), hours.days, strict=True)
    return f"{hours.name}: " + "; ".join(f"{day} {open_}" for day, open_ in days if open_)


def _words(beginnings: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{beginnings})")


FIND, BOOKING, ORDER = "find_free_times", "propose_booking", "propose_order"
PERSON = "request_person"

_COURTESIES = (
    (
        "hello",
        _words(
            r"hello|h(?:i|ey)\b|good (?:day|morning|afternoon|evening)"
            r"|привет\b|здравств|добр(?:ый|ое) "
        ),
    ),
    ("welcome", _words("thank|спасибо|благодар")),
)
# Words of a request, the tool that it needs, and the first step. Without a step, facts answer.
_INTENTS: tuple[
    tuple[re.Pattern[str], str, Callable[[Dialog, str], ToolCall | str | None] | None], ...
] = (
    (_words("how (?:much|long)|price|cost|сколько|цен[аыу]|почем|прайс"), "", None),
    (
        _words(
            "person|human|operator|manager|cancel|my (?:order|booking|appointment)"
            "|человек|оператор|менеджер|отмен|перенес|мо(?:й|его|ю) (?:заказ|запис)"
        ),
        PERSON,
        _request_person,
    ),
    (_words(r"order|buy|закаж|заказать|заказ\b|куп(?:ить|лю)"), ORDER, _propose_order),
    (_words("open|hours|close|откры|закры|работае|график|часы"), "", None),
    (
        _words(
            r"book|appointment|reserv|free (?:time|slot)|times?\b|available|when can"
            "|запи[шс]|заброн|свобод|врем|окошк|когда можно"
        ),
        FIND,
        _find_times,
    ),
    *((words, "", None) for _, words in _COURTESIES),
)

# Errors of tools, which are written for models, with the replies for visitors.
_ERRORS = (
    (re.compile(r"Expected one of: (?!there are no)(?P<names>.{1,2000})\.$"), "which_of"),
    (re.compile("in stock"), "sold_out"),
    (re.compile("no longer free"), "taken"),
    (re.compile("has to be paid"), "needs_payment"),
    (re.compile("Ask the visitor for a phone"), "contact_first"),
)

_NOW = re.compile(r'" in a chat\. It is \w+, (\d{4}-\d\d-\d\d), (\d\d:\d\d) \(')
_LISTED = re.compile(r"^\d\. (.+)$", re.MULTILINE)
_ORDINALS = tuple(
    re.compile(rf"\b(?:{words})|^\W*{number}\b(?![:.]\d)")
    for number, words in enumerate(("first|перв", "second|втор[уыо]", "third|трет"), start=1)
)
_YES = re.compile(r"\W*(?:yes|ok|sure|да|хорошо|подходит|давайте)\b")
_NAME = re.compile(
    r"\b(?i:i am|i['’]m|my name is|меня зовут|я)[\s,:–—-]+"
    r"([A-ZА-ЯЁ][^\W\d_]{1,40}(?: [A-ZА-ЯЁ][^\W\d_]{1,40})?)"
)
_PHONE = re.compile(r"([+(]?\d[\d\s().\u2013-]{8,22}\d)")
_SEPARATOR = re.compile(r"[,;.!?]\s|\n|\s(?:and|и)\s")
_NUMBERS = {"two": 2, "два": 2, "две": 2, "three": 3, "три": 3}
_QUANTITY = re.compile(
    rf"(?<![\w.,-])([1-9]\d{{0,2}}|{'|'.join(_NUMBERS)})\s(?!(?:мл|л|г|кг|ml|l|g|kg)\b)"
)
_TIME = re.compile(r"(?<![\d.:])([01]?\d|2[0-3]):([0-5]\d)(?!\d)")
_HOUR = re.compile(r"\b(?:at|в) ([01]?\d|2[0-3])(?![\w:.])")
_WEEKDAYS = (
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    *("понедель", "вторник", "сред", "четверг", "пятниц", "суббот", "воскрес"),
)
_WEEKDAY = re.compile(rf"\b({'|'.join(_WEEKDAYS)})")
_MONTHS = (
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    *("янв", "фев", "мар", "апр", "мая", "июн", "июл", "авг", "сен", "окт", "ноя", "дек"),
)
_DATE = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(_MONTHS)})")
_AHEAD = (
    (_words("day after tomorrow|послезавтра"), 2),
    (_words("tomorrow|завтра"), 1),
    (_words("today|tonight|сегодня"), 0),
)
_KINDS = {
    "service": extracts.stems("service services услуга услуги"),
    "product": extracts.stems("product products goods товар товары"),
}
# Stems of the words of a general question, which lists all offers or the offers of a kind.
_OFFERS = extracts.stems(
    "offer price prices menu catalogue sell предлагаете цена цены прайс меню каталог продаете"
).union(*_KINDS.values())
