"""Intents that the receptionist of make dev recognises, its tool calls, and its quotes."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.wire import parsing
from chalicelib.domains.chat.flows import chat_tools
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
from tests.factories.llm import events, speak

TOOLS = {tool.name: tool for tool in chat_tools.TOOLS}
SPECS = [tool.spec for tool in chat_tools.TOOLS]
FRAME = frame.to_message(
    Business("Salon", datetime(2026, 11, 23, 12, tzinfo=UTC), "Europe/Moscow"),
    "We are a salon.",
    abilities="",
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


def talk(
    *texts: str,
    known_facts: Facts = FACTS,
    tools: list[ToolSpec] = SPECS,
    turn: list[Message] = [],  # noqa: B006  it is not changed
    cap: int = 1_000,
    final: bool = False,
) -> str | ToolCall:
    """Return what the model answers or calls, and check its usage. Answers alternate."""
    roles = ["user", "assistant"] * len(texts)
    history = [Message(role, text) for role, text in zip(roles, texts[:-1], strict=False)]  # type: ignore[arg-type]
    messages = [FRAME, *history, facts.to_message(texts[-1], known_facts), *turn]
    *pieces, stop, usage = events(
        DemoModel(), messages=messages, tools=tools, max_output_tokens=cap, final=final
    )
    calls = [piece for piece in pieces if isinstance(piece, ToolCall)]
    words = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    output = count_tokens(words) + sum(count_tokens(" ".join(call)) for call in calls)
    assert usage == ProviderUsage(count_input(messages, tools), output)
    assert output <= cap
    assert stop == Stop("tools") if calls else isinstance(stop, Stop)
    if calls:
        assert not words
        assert not final
        (call,) = calls
        assert call.name in {tool.name for tool in tools}
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


WANTED = "Book me a haircut on Friday"
LISTED = "Haircut: 1 ₽.\n1. Friday, 27 November 2026, 10:00 (Anna)\nWhich time suits you?"
OFFERED = Facts(
    OFFERS, [WEEK], dialog=[OfferedTimes("Haircut", {"7": "2026-11-27T10:00 fri Anna"})]
)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("on Friday", "2026-11-27"),
        ("в пятницу", "2026-11-27"),
        ("on Monday", "2026-11-23"),
        ("послезавтра", "2026-11-25"),
        ("tomorrow", "2026-11-24"),
        ("on 2026-11-27", "2026-11-27"),
        ("27 ноября", "2026-11-27"),
        ("пятница, 4 декабря 2026", "2026-12-04"),
        ("on 1 May", "2027-05-01"),
        ("on 31 feb, 9999-12-31, 2026-99-99", None),
    ],
)
def test_days_are_read(text: str, day: str | None) -> None:
    call = arguments(talk(f"Book me a haircut {text}"))
    assert call == {"service": "Haircut"} | ({"firstDay": day, "lastDay": day} if day else {})


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("Is there time for a haircut on Friday?", "find_free_times"),
        ("Есть свободные окошки на маникюр?", "find_free_times"),
        ("Можно записаться на маникюр?", "find_free_times"),
        ("Хочу заказать ржаной хлеб", "propose_order"),
        ("can I talk to a person", "request_person"),
        ("Позовите оператора", "request_person"),
        ("отмените мою запись", "request_person"),
        ("How much is a haircut on Friday?", None),
        ("Сколько стоит заказать хлеб?", None),
        ("Are you open on Friday?", None),
        ("До скольки вы работаете?", None),
        ("How long does a haircut take?", None),
        ("Делаете торты на заказчика?", None),
        ("Привет", None),
    ],
)
def test_plain_intents_are_recognised(text: str, tool: str | None) -> None:
    answer = talk(text)
    assert (answer.name if isinstance(answer, ToolCall) else None) == tool
    assert isinstance(talk(text, tools=[]), str)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Order 2 rye breads please", {"Rye bread": 2}),
        ("I'd like to order rye bread and two creams", {"Rye bread": 1, "Cream 75 ml": 2}),
        ("Закажу три ржаных хлеба и пшеничный", {"Хлеб ржаной": 3, "Хлеб пшеничный": 1}),
        ("order cream 75 ml", {"Cream 75 ml": 1}),
    ],
)
def test_products_are_read_with_their_quantities(text: str, items: dict[str, int]) -> None:
    ordered = arguments(talk(text))["items"]
    assert {ordered_line["product"]: ordered_line["quantity"] for ordered_line in ordered} == items


def test_several_offers_that_fit_equally_are_asked_about() -> None:
    assert talk("Закажу хлеб") == "Уточните, пожалуйста: Хлеб ржаной, Хлеб пшеничный?"
    assert arguments(talk("Book a haircut for children"))["service"] == "Haircut for children"


def test_a_name_and_contacts_are_passed_on() -> None:
    texts = ("I am Ada Lovelace, ada@example.com", "Hello!", WANTED, LISTED)
    assert arguments(talk(*texts, "yes. (495) 123-45-67", known_facts=OFFERED)) == {
        "slotId": "7",
        "name": "Ada Lovelace",
        "phone": "(495) 123-45-67",
        "email": "ada@example.com",
    }


def test_a_listed_time_is_chosen_by_its_place_or_its_time() -> None:
    for choice in ("yes", "the first", "1", "первое", "at 10", "в 10:00"):
        assert arguments(talk(WANTED, LISTED, choice, known_facts=OFFERED)) == {"slotId": "7"}
    saturday = arguments(talk(WANTED, LISTED, "and on Saturday at 10?", known_facts=OFFERED))
    assert saturday["firstDay"] == "2026-11-28"
    assert talk(WANTED, LISTED, "Thanks!", known_facts=OFFERED) == "You are welcome!"


def test_another_time_is_one_of_the_service_whose_times_were_offered() -> None:
    question = "Свободно ли время: пятница, 27 ноября 2026, 11:00 (Europe/Moscow)?"
    assert arguments(talk(question, known_facts=OFFERED))["service"] == "Haircut"


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        ("Several services match 'x'. Expected one of: Cut, D.", "Уточните, пожалуйста: Cut, D?"),
        ("No services match 'x'. Expected one of: there are no services.", "Сейчас не получается."),
        ("ValidationError: what?", "Сейчас не получается."),
    ],
)
def test_errors_of_tools_are_explained_plainly(error: str, answer: str) -> None:
    call = talk("Запишите на маникюр")
    reply = talk("Запишите на маникюр", turn=result(call, error, is_error=True))
    assert str(reply).startswith(answer)


def test_a_call_that_does_not_fit_the_output_is_not_made() -> None:
    assert isinstance(talk("Is there time on Friday for a haircut?", cap=40), ToolCall)
    assert isinstance(talk("Is there time on Friday for a haircut?", cap=10), str)


def test_the_final_call_answers_from_results_without_another_call() -> None:
    question = "Book me a haircut on Friday at 10"
    turn = result(talk(question), json.dumps(TIMES | {"times": [FREE]}))
    assert arguments(talk(question, turn=turn)) == {"slotId": "3"}
    answer = str(talk(question, turn=turn, final=True))
    assert "1. Friday, 27 November 2026, 10:00 (Anna)" in answer
    assert "cannot" not in answer


FRAGMENTS = [
    *("book", "order", "talk to a", "person", "haircut", "Friday", "tomorrow", "at ten", "10:00"),
    *("2", "second", "yes", "I am Ada", "+7 495 123-45-67", "ada@example.com", "rye bread", "open"),
    *("how much", "is there time", "also", "99999999", "with Anna", "запишите", "закажу", "завтра"),
    *("человека", "маникюр", "в 12", "вторую", "да", "меня зовут Ада", "хлеба", "сколько стоит"),
    *("работаете", "свободно", "ещё", "к Анне", "31.02", "2026-11-27", "\x00", "\ud800", "<facts>"),
    *("{}", '"', "\\", "1.", "₽", "🦔"),
]
LISTING = "Haircut: 1 ₽.\n1. Friday, 27 November 2026, 10:00 (Anna)\n2. пятница\n?"
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
    "opening_hours": [{"hours": []}, {"hours": [facts.to_data(WEEK)]}],
    "find_services": [{"found": []}, {"found": [facts.to_data(OFFERS[0])], "others": []}],
    "find_products": [{"found": []}, {"found": [facts.to_data(OFFERS[3])]}],
}
ERRORS = ("This time is no longer free.", "None of x are in stock.", "", "{}", "Several")


@given(st.data())
def test_any_dialog_gives_an_answer_or_a_valid_tool_call(data: st.DataObject) -> None:
    history = data.draw(st.lists(st.tuples(TEXTS, ANSWERS), max_size=3))
    texts = [*(text for pair in history for text in pair), data.draw(TEXTS)]
    tools = data.draw(st.lists(st.sampled_from(SPECS), unique_by=lambda tool: tool.name))
    known_facts = data.draw(KNOWN)
    turn: list[Message] = []
    for _ in range(MAX_CALLS):
        answer = talk(*texts, known_facts=known_facts, tools=tools, turn=turn)
        if isinstance(answer, str):
            break
        if data.draw(st.booleans()):
            turn += result(answer, data.draw(st.sampled_from(ERRORS)), is_error=True)
        else:
            content = json.dumps(data.draw(st.sampled_from(RESULTS[answer.name])))
            turn += result(answer, content)
    assert isinstance(answer, str), "it answers before the calls are used up"
    assert talk(*texts, known_facts=known_facts, tools=tools, turn=turn) == answer
    final_answer = talk(*texts, known_facts=known_facts, tools=tools, turn=turn, final=True)
    assert isinstance(final_answer, str)


SALON = [
    Offer("service", "Маникюр классический", 150_000, 60, "С покрытием."),
    Offer("service", "Педикюр", 205_050, 90),
    Offer("service", "Консультация", 0, 15),
    Offer("product", "Крем для рук", 49_900, None, "Туба 75 мл </offers> & more"),
    Offer("product", "Nail file", 12_300),
]


def consult(
    question: str,
    offers: list[Offer] = SALON,
    prompt: str = "Будь вежлив.",
    hours: list[Hours] | None = None,
) -> str:
    messages = [Message("system", prompt), facts.to_message(question, Facts(offers, hours or []))]
    *pieces, usage = speak(DemoModel(), messages=messages, max_output_tokens=1000)
    answer = "".join(map(str, pieces))
    assert usage == ProviderUsage(count_input(messages), count_tokens(answer))
    return answer


class TestOffers:
    @pytest.mark.parametrize(
        ("question", "answer"),
        [
            (
                "Сколько стоит маникюр?",
                "Маникюр классический: 1\u00a0500 ₽, 60 мин. С покрытием.",
            ),
            ("А педикюра?", "Педикюр: 2\u00a0050,50 ₽, 90 мин."),
            ("Нужна консультация", "Консультация: бесплатно, 15 мин."),
            ("есть крем?", "Крем для рук: 499 ₽. Туба 75 мл </offers> & more"),
            ("Do you have nail files?", "Nail file: 123 ₽."),
            ("Привет!", "Здравствуйте! Спросите об услугах, товарах и ценах."),
            ("Good morning", "Hello! Ask about services, products and prices."),
        ],
    )
    def test_offers_are_listed_in_the_visitors_language(self, question: str, answer: str) -> None:
        assert consult(question) == answer

    def test_all_offers_or_those_of_one_kind_are_listed(self) -> None:
        def names(question: str) -> list[str]:
            head, *lines = consult(question).split("\n")
            assert head in {"Вот что есть:", "Here is what we have:"}
            return [line.partition(":")[0] for line in lines]

        assert names("Какие у вас услуги?") == [offer.name for offer in SALON[:3]]
        assert names("What products do you sell?") == [offer.name for offer in SALON[3:]]
        assert names("покажите товары") == [offer.name for offer in SALON[3:]]
        assert names("прайс") == [offer.name for offer in SALON]

    def test_an_answer_admits_that_no_offer_fits(self) -> None:
        assert "Этого я не знаю" in consult("Чините ли вы трактора?")
        assert "Этого я не знаю" in consult("Какие у вас услуги?", [])


DAYS_OF_ANNA = (
    "10:00-19:00",
    "",
    "10:00-19:00",
    "10:00-19:00",
    "10:00-19:00",
    "11:00-14:00, 15:00-18:00",
)
ANNA = Hours("Анна", (*DAYS_OF_ANNA, ""))
BORIS = Hours("Boris", ("09:00-18:00", "09:00-18:00", *[""] * 5))


class TestHours:
    def test_hours_of_each_resource_are_listed(self) -> None:
        answer = consult("Когда вы открыты?", hours=[BORIS])
        assert answer.split("\n") == [
            "Обычные часы записи:",
            "Boris: пн 09:00-18:00; вт 09:00-18:00",
        ]

    def test_hours_are_left_out_of_other_answers(self) -> None:
        assert "10:00" not in consult("Сколько стоит маникюр?", hours=[ANNA])
        assert "Этого я не знаю" in consult("Когда вы открыты?", [])
