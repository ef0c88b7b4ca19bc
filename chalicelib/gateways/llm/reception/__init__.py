"""The receptionist: how the embedded model answers a visitor, with and without tools.

Each call reads the whole dialog. A message with a plain purpose (``intents``) leads to the tools
for it: free times and bookings, orders, or a person. The results of tools are in the messages of
the next call, which continues from them. Any other message is answered with facts.
"""

import json
from collections.abc import Sequence

from chalicelib.gateways.llm import facts
from chalicelib.gateways.llm.messages import Message, ToolCall, ToolSpec
from chalicelib.gateways.llm.reception import booking, intents, matching, ordering, quoting, wording
from chalicelib.gateways.llm.reception.dates import When
from chalicelib.gateways.llm.reception.dialog import Dialog
from chalicelib.gateways.llm.reception.intents import Intent

HOURS, PERSON = "opening_hours", "request_person"
SEARCHES = ("find_services", "find_products")
MAX_REASON = 500
MAX_QUERY = 200
"""Characters that the tools accept."""
_TOOL_OF: dict[Intent, str] = {
    "person": PERSON,
    "change": PERSON,
    "book": booking.FIND,
    "times": booking.FIND,
    "order": ordering.PROPOSE,
}
"""The tool without which an intent is answered with facts."""


def respond(
    messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, final: bool = False
) -> str | ToolCall:
    """Return the answer to the visitor's last message, or the tool call that it needs."""
    dialog = Dialog(messages, {each.name for each in tools}, final)
    return (_act(dialog) if dialog.tools else None) or _quote(dialog)


def _quote(dialog: Dialog) -> str | ToolCall:
    """Return an answer from facts, the call that finds them, or that the model does not know."""
    return (
        quoting.answer(dialog.messages, dialog.facts, dialog.question)
        or (_look_up(dialog) if dialog.tools else None)
        or quoting.courtesy(dialog.question)
    )


def _act(dialog: Dialog) -> str | ToolCall | None:
    """Return the next step of what the visitor wants to be done, or None for a question."""
    if dialog.proposal == "open" and not dialog.calls and _only_agrees(dialog):
        return dialog.sentence("press")
    match _purpose(dialog):
        case "book" | "times":
            return booking.answer(dialog)
        case "order":
            return ordering.answer(dialog)
        case "person":
            return _request_person(dialog)
        case "change":
            return " ".join(dialog.sentence(key) for key in ("cannot_change", "person_can"))
    return None


def _only_agrees(dialog: Dialog) -> bool:
    """Return whether the question is a yes and adds nothing to what the visitor wants."""
    question = dialog.current[-1]
    return (
        intents.is_yes(question.text)
        and question.when == When()
        and not any(question.person)
        and intents.choice(question.text, booking.MAX_NAMED) is None
        and not matching.best(question.text, [*dialog.services, *dialog.products])
    )


def _purpose(dialog: Dialog) -> Intent | None:
    """Return what the question is for: its own purpose, or that of the messages it continues."""
    *earlier, question = dialog.current
    own = question.intent
    if own is None:
        own = next((each.intent for each in reversed(earlier) if each.intent in _TOOL_OF), None)
        if own is None or not _continues(dialog, own):
            return None
        own = "person" if own == "change" else own
    return own if _TOOL_OF.get(own) in dialog.tools else None


def _continues(dialog: Dialog, purpose: Intent) -> bool:
    """Return whether the question adds something to what the visitor wants."""
    question = dialog.current[-1]
    names_person = any(question.person)
    match purpose:
        case "person" | "change":
            return names_person and dialog.current[-2].intent == purpose
        case "order":
            named = matching.best(question.text, dialog.products)
            return names_person or bool(named or matching.quantity(question.text))
        case _:
            lines = dialog.listing.lines
            return (
                names_person
                or question.when != When()
                or intents.choice(question.text, len(lines)) is not None
                or bool(matching.best(question.text, dialog.services))
            )


def _request_person(dialog: Dialog) -> str | ToolCall | None:
    """Return the call that requests a person, or what came of it."""
    if result := dialog.result(PERSON):
        if result.is_error:
            return wording.error_sentence(dialog.language, result.content)
        was_before = "already" in result.content
        return dialog.sentence("person_asked_before" if was_before else "person_asked")
    if not dialog.can_call(PERSON):
        return None
    wanted = (each for each in reversed(dialog.current) if each.intent in {"person", "change"})
    reason = next(wanted, dialog.current[-1]).message[:MAX_REASON].strip()
    return dialog.call(PERSON, reason=reason or "-")


def _look_up(dialog: Dialog) -> str | ToolCall | None:
    """Return the call that may answer a question about hours or prices, or its answer."""
    in_russian = dialog.language == "ru"
    if result := dialog.result(HOURS):
        found = [] if result.is_error else json.loads(result.content)["hours"]
        hours = [facts.hours_of(each) for each in found]
        return "\n".join(facts.format_hours(hours, in_russian=in_russian)) if hours else None
    for tool in SEARCHES:
        result = dialog.result(tool)
        if result and not result.is_error and (found := json.loads(result.content)["found"]):
            offers = [facts.offer_of(each) for each in found]
            return "\n".join(quoting.format_offers(offers, in_russian=in_russian))
    purpose = dialog.current[-1].intent
    if purpose == "hours" and not dialog.facts.hours and dialog.can_call(HOURS):
        return dialog.call(HOURS)
    if purpose == "price" and (query := _earlier_subject(dialog)):
        for tool in SEARCHES:
            if dialog.can_call(tool) and dialog.result(tool) is None:
                return dialog.call(tool, query=query)
    return None


def _earlier_subject(dialog: Dialog) -> str:
    """Return the words that may name an offer in the newest message before "How much is it?".

    A question with such words of its own needs no search: the facts were found with them.
    """
    *earlier, question = dialog.current
    if quoting.subject(question.text):
        return ""
    subjects = (quoting.subject(each.text) for each in reversed(earlier))
    return next(filter(None, subjects), "")[:MAX_QUERY]
