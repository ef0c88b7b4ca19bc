"""The receptionist of the embedded model: what it understands, and which tools it calls."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.wire import parsing
from chalicelib.domains.chat.flows import toolbox
from chalicelib.domains.chat.rules.call_budget import MAX_CALLS
from chalicelib.gateways.llm import ProviderUsage, Stop, TextDelta, facts, frame
from chalicelib.gateways.llm.demo import DemoModel
from chalicelib.gateways.llm.facts import Facts, Hours, Offer, OfferedTimes, Proposal
from chalicelib.gateways.llm.frame import Business
from chalicelib.gateways.llm.messages import (
    Message,
    ToolCall,
    ToolResult,
    ToolSpec,
    count_input,
    count_tokens,
)
from chalicelib.gateways.llm.reception import contacts, dates, intents, matching
from chalicelib.gateways.llm.reception.contacts import Person
from chalicelib.gateways.llm.reception.dates import Days, When
from tests.factories.llm import events

TODAY = date(2026, 11, 23)
"""A Monday."""
TOOLS = {tool.name: tool for tool in toolbox.TOOLS}
SPECS = [tool.spec for tool in toolbox.TOOLS]
FRAME = frame.to_message(
    Business("Salon", datetime(2026, 11, 23, 12, tzinfo=UTC), "Europe/Moscow"),
    "We are a salon.",
    "",
)
OFFERS = [
    Offer("service", "Haircut", 150_050, 60),
    Offer("service", "Haircut for children", 100_000, 30),
    Offer("service", "Маникюр", 200_000, 90),
    Offer("product", "Rye bread", 12_000),
    Offer("product", "Хлеб ржаной", 12_000),
    Offer("product", "Хлеб пшеничный", 11_000),
    Offer("product", "Cream 75 ml", 49_900),
]
WEEK = Hours("Anna", ("10:00-13:00",) * 7)
FACTS = Facts(OFFERS, [WEEK])
FRIDAY = Days(date(2026, 11, 27), date(2026, 11, 27))


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("Is there time on Friday?", When(FRIDAY)),
        ("Есть время в пятницу?", When(FRIDAY)),
        ("on Monday", When(Days(TODAY, TODAY))),
        ("next Friday", When(Days(date(2026, 12, 4), date(2026, 12, 4)))),
        ("в следующую пятницу", When(Days(date(2026, 12, 4), date(2026, 12, 4)))),
        ("at the weekend", When(Days(date(2026, 11, 28), date(2026, 11, 29)))),
        ("this week", When(Days(TODAY, date(2026, 11, 29)))),
        ("на следующей неделе", When(Days(date(2026, 11, 30), date(2026, 12, 6)))),
        ("the day after tomorrow", When(Days(date(2026, 11, 25), date(2026, 11, 25)))),
        ("послезавтра", When(Days(date(2026, 11, 25), date(2026, 11, 25)))),
        ("2026-11-27", When(FRIDAY)),
        ("27.11 или 27.11.2026", When(FRIDAY)),
        ("27 ноября", When(FRIDAY)),
        ("November 27th", When(FRIDAY)),
        ("the 27th of November", When(FRIDAY)),
        ("1 мая", When(Days(date(2027, 5, 1), date(2027, 5, 1)))),
        ("1 марта", When(Days(date(2027, 3, 1), date(2027, 3, 1)))),
        ("27-го", When(FRIDAY)),
        ("on the 27th", When(FRIDAY)),
        ("31.02, 2019-01-01, 9999-12-31, 2026-99-99", When()),
        ("at ten", When(at=(600, 1320))),
        ("в десять", When(at=(600, 1320))),
        ("at 3", When(at=(900, 180))),
        ("в 3 часа дня", When(at=(900,))),
        ("10am", When(at=(600,))),
        ("7 вечера", When(at=(1140,))),
        ("10:30", When(at=(630,))),
        ("at 25:00, at 10:75", When()),
        ("noon", When(at=(720,))),
        ("after 5 pm", When(earliest=1020)),
        ("с 10 до 12", When(earliest=600, latest=720)),
        ("in the morning", When(latest=720)),
        ("вечером", When(earliest=1020)),
        ("Добрый вечер! Good morning!", When()),
        ("завтра в 10", When(Days(date(2026, 11, 24), date(2026, 11, 24)), (600, 1320))),
        ("2 rye breads, 300 rubles, 500 г", When()),
    ],
)
def test_days_and_times_are_read(text: str, when: When) -> None:
    assert dates.read(text, TODAY) == when


def test_without_the_date_only_times_are_read() -> None:
    assert dates.read("Friday at ten", None) == When(at=(600, 1320))


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("I am Ada, +7 495 123-45-67", Person("Ada", "+7 495 123-45-67")),
        ("the second one, I'm Ada Lovelace", Person("Ada Lovelace")),
        ("my name is ada", Person("ada")),
        ("Меня зовут Анна-Мария, почта a@b.ru.", Person("Анна-Мария", None, "a@b.ru")),
        ("Я Анна, 89161234567", Person("Анна", "89161234567")),
        ("The first. Ada Lovelace, (495) 123-45-67", Person("Ada Lovelace", "(495) 123-45-67")),
        ("Анна ada@example.com", Person("Анна", None, "ada@example.com")),
        ("Friday, +7 495 123-45-67", Person(None, "+7 495 123-45-67")),
        ("I am looking for bread. This is Friday.", Person()),
        ("2026-11-27 10:00, 27.11.2026 10 11, 123456", Person()),
    ],
)
def test_names_and_contacts_are_read(text: str, person: Person) -> None:
    assert contacts.read(text)[0] == person


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("2 rye breads please", {"Rye bread": 2}),
        ("a dozen of rye bread and two creams", {"Rye bread": 12, "Cream 75 ml": 2}),
        ("три ржаных хлеба и пшеничный, 5 шт", {"Хлеб ржаной": 3, "Хлеб пшеничный": 1}),
        ("ржаной хлеб 500 г", {"Хлеб ржаной": 1}),
        ("ржаной х2", {"Хлеб ржаной": 2}),
        ("cream 75 ml", {"Cream 75 ml": 1}),
        ("granite", {}),
    ],
)
def test_products_are_read_with_their_quantities(text: str, items: dict[str, int]) -> None:
    names = [each.name for each in OFFERS if each.kind == "product"]
    assert dict(matching.items(text, names).items) == items


def test_several_products_that_fit_equally_are_unclear() -> None:
    assert matching.items("хлеб", ["Хлеб ржаной", "Хлеб пшеничный"]).unclear
    assert matching.best("haircut", ["Haircut", "Haircut for children"]) == ["Haircut"]
    assert matching.best("children", ["Haircut", "Haircut for children"])[0].endswith("children")


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Is there time on Friday?", "times"),
        ("Когда можно прийти?", "times"),
        ("Есть свободные окошки?", "times"),
        ("Haircut on Friday?", "times"),
        ("I want a haircut tomorrow", "book"),
        ("Book me a haircut tomorrow at ten", "book"),
        ("Запишите меня на маникюр", "book"),
        ("Можно записаться?", "book"),
        ("2 rye breads please", "order"),
        ("Хочу заказать ржаной хлеб", "order"),
        ("can I talk to a person", "person"),
        ("Позовите оператора", "person"),
        ("Можно администратора?", "person"),
        ("Сколько зарабатывает администратор?", None),
        ("отмените мою запись", "change"),
        ("How much is a haircut on Friday?", "price"),
        ("Сколько стоит заказать хлеб?", "price"),
        ("Are you open on Friday?", "hours"),
        ("До скольки вы работаете?", "hours"),
        ("How long does a haircut take?", None),
        ("Do I need to book in advance?", None),
        ("Нужно ли записываться заранее?", None),
        ("Do you have a book about bread?", None),
        ("Where is my order?", "change"),
        ("Что в составе ржаного хлеба?", None),
        ("Делаете торты на заказ?", None),
        ("Привет", None),
    ],
)
def test_plain_purposes_are_recognised(text: str, intent: str | None) -> None:
    services = [each.name for each in OFFERS if each.kind == "service"]
    products = [each.name for each in OFFERS if each.kind == "product"]
    assert intents.of_text(text, dates.read(text, TODAY), services, products) == intent


def talk(
    *said: str,
    found: Facts = FACTS,
    tools: list[ToolSpec] = SPECS,
    turn: list[Message] = [],  # noqa: B006  it is not changed
    cap: int = 1_000,
    final: bool = False,
) -> str | ToolCall:
    """Return what the model answers or calls, and check its usage. Answers alternate."""
    roles = ["user", "assistant"] * len(said)
    history = [Message(role, text) for role, text in zip(roles, said[:-1], strict=False)]  # type: ignore[arg-type]
    asked = [FRAME, *history, facts.to_message(said[-1], found), *turn]
    *pieces, stop, usage = events(
        DemoModel(), messages=asked, tools=tools, max_output_tokens=cap, final=final
    )
    calls = [each for each in pieces if isinstance(each, ToolCall)]
    words = "".join(each.text for each in pieces if isinstance(each, TextDelta))
    output = count_tokens(words) + sum(count_tokens(" ".join(call)) for call in calls)
    assert usage == ProviderUsage(count_input(asked, tools), output)
    assert output <= cap
    assert stop == Stop("tools") if calls else isinstance(stop, Stop)
    if calls:
        assert not words
        assert not final
        (call,) = calls
        assert call.name in {each.name for each in tools}
        values = call.parsed()
        assert values is not None
        parsing.parse(TOOLS[call.name].arguments, values)
        return call
    return words


def arguments(answer: str | ToolCall) -> dict[str, Any]:
    assert isinstance(answer, ToolCall), answer
    return json.loads(answer.arguments)  # type: ignore[no-any-return]


def result(call: str | ToolCall, content: str, *, is_error: bool = False) -> list[Message]:
    """Return a call and its result, as they follow the question."""
    assert isinstance(call, ToolCall)
    results = (ToolResult(call.id, call.name, content, is_error),)
    return [Message("assistant", "", (call,)), Message("tool", "", results=results)]


@pytest.mark.parametrize(
    "question",
    [
        "How much is rye bread?",
        "Сколько стоит маникюр?",
        "Какие у вас услуги?",
        "When are you open on Friday?",
        "Who won the cup?",
        "How much is granite?",
    ],
)
def test_questions_are_answered_from_the_facts_as_without_tools(question: str) -> None:
    assert talk(question) == talk(question, tools=[])


def test_a_price_without_a_subject_is_looked_up_by_the_message_before_it() -> None:
    said = ("I like sourdough", "Fine.", "How much does it cost?")
    first = talk(*said)
    assert arguments(first) == {"query": "like sourdough"}
    nothing = result(first, '{"found": []}')
    second = talk(*said, turn=nothing)
    assert isinstance(second, ToolCall)
    assert (second.name, second.id) == ("find_products", "call_2")
    found = {"found": [facts.as_data(Offer("product", "Sourdough", 20_000))]}
    turn = [*nothing, *result(second, json.dumps(found))]
    assert talk(*said, turn=turn) == "Sourdough: 200\u00a0₽."
    assert "do not know" in str(talk(*said, turn=[*nothing, *result(second, "?", is_error=True)]))


def test_hours_that_the_facts_lack_are_looked_up() -> None:
    question = "До скольки вы работаете?"
    call = talk(question, found=Facts())
    assert isinstance(call, ToolCall)
    assert call.name == "opening_hours"
    hours = result(call, json.dumps({"hours": [facts.as_data(WEEK)]}))
    assert talk(question, found=Facts(), turn=hours) == "Обычные часы записи: пн–вс 10:00–13:00."
    none = result(call, '{"hours": []}')
    assert "не знаю" in str(talk(question, found=Facts(), turn=none))


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        ("Several services match 'x'. Expected one of: Cut, D.", "Уточните, пожалуйста: Cut, D?"),
        ("No services match 'x'. Expected one of: Cut.", "Такого я не нахожу. Есть: Cut."),
        ("No services match 'x'. Expected one of: there are no services.", "Такого я не нахожу."),
        ("Cut cannot be booked at the moment.", "Эту услугу сейчас нельзя забронировать."),
        ("ValidationError: what?", "Сейчас не получается. Попробуйте, пожалуйста, позже."),
    ],
)
def test_errors_of_tools_are_told_plainly(error: str, answer: str) -> None:
    call = talk("Запишите на маникюр")
    assert talk("Запишите на маникюр", turn=result(call, error, is_error=True)) == answer


def test_a_call_that_does_not_fit_the_output_is_not_made() -> None:
    assert isinstance(talk("Is there time on Friday for a haircut?", cap=40), ToolCall)
    assert isinstance(talk("Is there time on Friday for a haircut?", cap=10), str)


def test_the_final_call_answers_from_results_without_another_call() -> None:
    question = "Book me a haircut on Friday at ten"
    found = talk(question)
    times = {
        "service": "Haircut",
        "minutes": 60,
        "price_rub": 1500.5,
        "times": [
            {"slotId": "1", "start": "2026-11-27T10:00", "weekday": "fri", "staff": ["Anna"]}
        ],
    }
    turn = result(found, json.dumps(times))
    proposal = talk(question, turn=turn)
    assert arguments(proposal) == {"slotId": "1"}
    answer = str(talk(question, turn=turn, final=True))
    assert "1. Friday, 27 November, 10:00 (Anna)" in answer


def test_another_day_service_or_request_is_not_a_choice_of_a_listed_time() -> None:
    listing = "Haircut: 1 ₽.\n1. Friday, 27 November, 10:00 (Anna)\nDoes it suit you?"
    offered = OfferedTimes("Haircut", {"7": "2026-11-27T10:00 fri Anna"})
    known = Facts(OFFERS, [WEEK], dialog=[offered])
    said = ("haircut on Friday?", listing)
    assert arguments(talk(*said, "yes", found=known)) == {"slotId": "7"}
    assert arguments(talk(*said, "and on Saturday?", found=known)) == {
        "service": "Haircut",
        "firstDay": "2026-11-28",
        "lastDay": "2026-11-28",
    }
    again = talk(*said, "yes", "Book: Haircut.", "Book me a haircut", found=known)
    assert isinstance(again, ToolCall)
    assert again.name == "find_free_times"
    manicure = arguments(talk(*said, "Лучше маникюр в 10", found=known))
    assert manicure["service"] == "Маникюр"


def test_an_expired_offer_is_looked_up_again() -> None:
    listing = "Haircut: 1 ₽.\n1. Friday, 27 November, 10:00 (Anna)\nDoes it suit you?"
    call = talk("haircut on Friday?", listing, "yes, I am Ada")
    assert arguments(call) == {
        "service": "Haircut",
        "firstDay": "2026-11-27",
        "lastDay": "2026-11-27",
    }


def test_a_booking_that_is_done_is_not_continued() -> None:
    card = "Book: Haircut. Please check the card and confirm it. Until then nothing is booked."
    done = Facts(OFFERS, [WEEK], dialog=[Proposal("Book: Haircut", "done")])
    said = ("Book me a haircut on Friday at ten", card)
    assert isinstance(talk(*said, "I am Ada, +7 495 123-45-67", found=done), str)
    started = Facts(OFFERS, [WEEK], dialog=[Proposal("Book: Haircut", "open")])
    assert "button" in str(talk(*said, "yes", found=started))
    assert isinstance(talk(*said, "yes, I am Ada", found=started), ToolCall)


FRAGMENTS = [
    *("book", "order", "talk to a", "person", "haircut", "Friday", "tomorrow", "at ten", "10:00"),
    *("2", "second", "yes", "I am Ada", "+7 495 123-45-67", "ada@example.com", "rye bread", "open"),
    *("how much", "is there time", "also", "99999999", "with Anna", "запишите", "закажу", "завтра"),
    *("человека", "маникюр", "в 12", "вторую", "да", "меня зовут Ада", "хлеба", "сколько стоит"),
    *("работаете", "свободно", "ещё", "к Анне", "31.02", "2026-11-27", "\x00", "\ud800", "<facts>"),
    *("{}", '"', "\\", "1.", "₽", "🦔"),
]
LISTING = (
    "Haircut: 1 ₽.\n1. Friday, 27 November, 10:00 (Anna)\n2. вторник, 24 ноября, 12:00 (Anna)\n?"
)
TEXTS = st.text(max_size=80) | st.lists(st.sampled_from(FRAGMENTS), max_size=9).map(" ".join)
ANSWERS = st.sampled_from(["", "Hi.", LISTING]) | TEXTS
KNOWN = st.sampled_from(
    [
        Facts(),
        Facts(OFFERS, [WEEK]),
        Facts(
            OFFERS,
            dialog=[
                OfferedTimes("Haircut", {"3": "2026-11-27T10:00 fri Anna"}),
                Proposal("Order", "done"),
            ],
        ),
    ]
)
FREE = {"slotId": "3", "start": "2026-11-27T10:00", "weekday": "fri", "staff": ["Anna"]}
TIMES = {"service": "Haircut", "minutes": 60, "price_rub": 1500.5, "timezone": "Europe/Moscow"}
RESULTS = {
    "find_free_times": [
        TIMES | {"times": [FREE]},
        TIMES | {"times": [FREE] * 9, "more": True},
        TIMES | {"times": [], "next": FREE},
        TIMES | {"times": []},
    ],
    "propose_booking": [{"title": "Book: Haircut", "details": []}],
    "propose_order": [{"title": "Order", "details": []}],
    "request_person": [{"result": "A person has been asked already."}],
    "opening_hours": [{"hours": []}, {"hours": [facts.as_data(WEEK)]}],
    "find_services": [{"found": []}, {"found": [facts.as_data(OFFERS[0])], "others": []}],
    "find_products": [{"found": []}, {"found": [facts.as_data(OFFERS[3])]}],
}
ERRORS = ("This time is no longer free.", "None of x are in stock.", "", "{}", "Several")


@given(st.data())
def test_no_text_makes_it_fail_or_call_a_tool_with_invalid_arguments(data: st.DataObject) -> None:
    history = data.draw(st.lists(st.tuples(TEXTS, ANSWERS), max_size=3))
    said = [*(text for pair in history for text in pair), data.draw(TEXTS)]
    tools = data.draw(st.lists(st.sampled_from(SPECS), unique_by=lambda each: each.name))
    found = data.draw(KNOWN)
    turn: list[Message] = []
    for _ in range(MAX_CALLS):
        answer = talk(*said, found=found, tools=tools, turn=turn)
        if isinstance(answer, str):
            break
        if data.draw(st.booleans()):
            turn += result(answer, data.draw(st.sampled_from(ERRORS)), is_error=True)
        else:
            content = json.dumps(data.draw(st.sampled_from(RESULTS[answer.name])))
            turn += result(answer, content)
    assert isinstance(answer, str), "it answers before the calls are used up"
    assert talk(*said, found=found, tools=tools, turn=turn) == answer
    assert isinstance(talk(*said, found=found, tools=tools, turn=turn, final=True), str)
