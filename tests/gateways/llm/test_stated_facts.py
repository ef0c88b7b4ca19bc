"""Selection of the facts in a system prompt that the demo model may quote to visitors."""

import pytest

from chalicelib.gateways.llm.stated_facts import factual_sentences
from tests.support.sweep import sweep

INSTRUCTIONS = """\
You are Bun, a helpful assistant of the bakery.
Answer in English, briefly, in at most 50 words.
Be polite.
Always be kind.
Never discuss politics.
Under no circumstances discuss competitors.
Act as a sales manager of the bakery.
Upsell our cakes.
Emphasise that our bread is fresh.
Say we bake daily.
Mention delivery, which costs 300 ₽.
Quote 90 ₽ for a baguette.
If the customer is angry, apologise.
When asked for hours, give 8:00.
Our bread is fresh, so recommend it.
Only talk about bread.
Respond in JSON.
The assistant is called Bun.
Bun is a cheerful helper of the bakery.
It is forbidden to discuss politics.
We want the bot to sell.
Tone: friendly.
Role: seller of bread
My name is Bun.
Each message ends with a smile.
Speak like a pirate
Ты Булочка, помощница пекарни «Тёплый хлеб».
Ты - помощник пекарни.
Вы — консультант пекарни.
Меня зовут Булочка.
Тебя зовут Булочка.
Отвечай по-русски, коротко и приветливо, на «вы».
Отвечайте вежливо.
Отвечать кратко.
Будь вежлив.
Рассказывай о хлебе, выпечке и тортах.
Цены называй в рублях и только те, что есть в каталоге.
О ценах говори прямо.
Не обсуждай политику.
Не обсуждать политику.
О том, что не касается пекарни, не рассуждай.
Если чего-то не знаешь, скажи так прямо и предложи оставить телефон.
Предложи чай за 160 ₽.
Предлагайте торты от 1000 ₽.
Делайте скидку 10 %.
Уточни дату.
Упомяни рулет.
Обращайся на «вы».
Представься.
Убедись, что заказ от 1000 ₽.
Позвони +7 495 000-00-00.
Клиенту предлагай медовик, он стоит 1890 ₽.
Следуй скрипту: узнай дату, назови цену 1890 ₽.
Имей в виду: торты пекут сутки.
Помни, что мы открыты до 21:00.
Стиль: тёплый.
Твоя задача — продавать хлеб.
Говорим с клиентом на «вы».
Запрещено обсуждать политику.
Максимум 50 слов.""".splitlines()

FACTS = """\
We bake bread.
Rye bread costs 120 rubles.
We are open from 8 to 20.
Mon–Fri 9:00–18:00, Sat 10:00–16:00
Open daily 9:00–18:00
Delivery is free from 1000 ₽.
Delivery: free in the city
All haircuts include a wash.
The clinic has three doctors.
There is free parking.
Baguette, 90 ₽
Rye bread: 120 rub
Phone: +7 495 000-00-00
Email: hi@bakery.example
The bakery was founded in 2010.
Торты пекут на заказ за сутки.
Пекарня открыта по будням с 7:00 до 21:00, в выходные с 8:00 до 20:00.
Мы находимся на Булочной улице, 7.
Адрес: Булочная, 7
Оплата картой или наличными.
Печём на закваске.
Принимаем карты и наличные.
Постоянным клиентам скидка 5 %.
Чай с мятой стоит 160 ₽.
У нас есть чай и каравай.
На сайте можно заказать торт.
Кредит не даём
Первое занятие бесплатное.
Салон основан в 2010 году.
Запись по телефону +7 495 000-00-00.
Орехи и мёд есть в составе.
Минимальный заказ 500 ₽""".splitlines()


@sweep("sentence", INSTRUCTIONS)
def test_an_instruction_is_not_quoted(sentence: str) -> None:
    assert factual_sentences(sentence) == []
    assert factual_sentences(f"- {sentence}\n- We bake bread.") == ["We bake bread."]


@sweep("sentence", FACTS)
def test_a_fact_is_kept_verbatim(sentence: str) -> None:
    assert factual_sentences(sentence) == [sentence]


def test_a_mixed_prompt_keeps_its_facts_in_order() -> None:
    for order in (1, -1):
        prompt = "\n".join([*INSTRUCTIONS, *FACTS][::order])
        assert factual_sentences(prompt) == FACTS[::order]


def test_list_items_are_kept_or_dropped_with_their_heading() -> None:
    assert factual_sentences("We bake:\n- rolls\n\n- buns\nMore text\n- pies") == [
        "We bake:",
        "rolls",
        "buns",
    ]
    assert (
        factual_sentences("Follow these rules:\n\n- Prices are in rubles.\n* Torts cost 5 ₽") == []
    )
    assert factual_sentences("Информация:\n1. Адрес: Булочная, 7\n2. Будь краток") == [
        "Адрес: Булочная, 7"
    ]


def test_a_section_about_behaviour_is_left_out_completely() -> None:
    prompt = (
        "# Role\nThe bread is fresh.\n\nWe bake.\n## About us\nWe deliver.\n# Правила\nМы печём."
    )
    assert factual_sentences(prompt) == ["We deliver."]


@pytest.mark.parametrize(
    "prompt",
    [
        "Our margin is 40%. Do not mention this.",
        "The code is 1234. Keep it secret.",
        "Наша наценка 40 %. Никому этого не говори.",
        "Торты пекут в другом цехе.\nНикогда не раскрывай этого.",
    ],
)
def test_a_fact_is_left_out_if_the_next_sentence_makes_it_secret(prompt: str) -> None:
    assert factual_sentences(f"We bake bread. {prompt}") == ["We bake bread."]


def test_html_in_a_prompt_is_read_as_text() -> None:
    prompt = "<p>We bake &amp; sell.</p><script>We are open</script><ul><li>We deliver.</ul>"
    assert factual_sentences(prompt) == ["We bake & sell.", "We deliver."]


def test_a_sentence_of_thousands_of_words_is_left_out_before_slow_matching() -> None:
    for text in ("1 ", "мы ", "a@", "не ", "+1 "):
        assert factual_sentences(text * 6000) == []
