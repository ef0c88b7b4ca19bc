"""The demo bakery's products, leads and texts, in Russian."""

from dataclasses import dataclass, field

NAME = "Тёплый хлеб"
SITE = "Пекарня «Тёплый хлеб»"
ABOUT = "Хлеб на закваске, выпечка и торты на заказ. Печём с шести утра."
REFERRERS = ("search.example", "maps.example", "news.example")

CATEGORIES: dict[str, tuple[str, ...]] = {
    "Хлеб": ("Пшеничный хлеб", "Ржаной хлеб"),
    "Выпечка": ("Сладкая выпечка", "Сытная выпечка"),
    "Десерты": ("Торты", "Печенье"),
    "Напитки": (),
}
"""The categories of products, and the subcategories of each."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product. ``image`` is a file in ``images``. ``stock`` is None if it is not counted."""

    sku: str
    name: str
    category: str
    price: int
    stock: int | None
    image: str
    description: str
    barcode: str | None = None
    status: str = "active"


PRODUCTS = (
    Product(
        "HL-01",
        "Хлеб деревенский на закваске",
        "Пшеничный хлеб",
        24_000,
        18,
        "loaf",
        "Пшеничный хлеб на живой закваске: 24 часа брожения, хрустящая корка. 600 г.",
        barcode="2000000000015",
    ),
    Product(
        "HL-02",
        "Багет французский",
        "Пшеничный хлеб",
        12_000,
        30,
        "baguette",
        "Мука, вода, соль и дрожжи, и больше ничего. Печём трижды в день. 280 г.",
        barcode="2000000000022",
    ),
    Product(
        "HL-03",
        "Хлеб бородинский",
        "Ржаной хлеб",
        19_500,
        12,
        "rye",
        "Заварной ржаной хлеб с солодом и кориандром. 500 г.",
        barcode="2000000000039",
    ),
    Product(
        "VP-01",
        "Круассан сливочный",
        "Сладкая выпечка",
        15_000,
        24,
        "croissant",
        "На сливочном масле 82,5 %, 27 слоёв. 70 г.",
    ),
    Product(
        "VP-02",
        "Улитка с корицей",
        "Сладкая выпечка",
        13_000,
        16,
        "bun",
        "Сдобное тесто, корица, тростниковый сахар. 90 г.",
    ),
    Product(
        "VP-03",
        "Пирожок с капустой",
        "Сытная выпечка",
        8_500,
        40,
        "pasty",
        "Тонкое тесто, тушёная капуста с яйцом. 110 г.",
    ),
    Product(
        "VP-04",
        "Пирог с вишней",
        "Сладкая выпечка",
        69_000,
        5,
        "pie",
        "Песочный пирог с решёткой, на компанию из шести человек. 900 г.",
    ),
    Product(
        "TR-01",
        "Торт «Медовик»",
        "Торты",
        189_000,
        3,
        "cake",
        "Восемь медовых коржей и сметанный крем. 1,2 кг, на заказ за сутки.",
        barcode="2000000000046",
    ),
    Product(
        "TR-02",
        "Торт «Прага»",
        "Торты",
        215_000,
        0,
        "chocolate-cake",
        "Шоколадный бисквит, абрикосовый джем, глазурь. 1,2 кг, на заказ за сутки.",
    ),
    Product(
        "PC-01",
        "Печенье с шоколадом",
        "Печенье",
        28_000,
        22,
        "cookies",
        "Мягкое внутри, с крупной шоколадной крошкой. 300 г.",
    ),
    Product(
        "NP-01",
        "Капучино",
        "Напитки",
        21_000,
        None,
        "cup",
        "Зерно средней обжарки, 250 мл. Молоко любое, растительное без доплаты.",
    ),
    Product(
        "NP-02",
        "Чай с мятой",
        "Напитки",
        16_000,
        None,
        "tea",
        "Чёрный чай и свежая мята, 400 мл. Вернётся летом.",
        status="inactive",
    ),
)

HOURS = """Пекарня «Тёплый хлеб»
Понедельник - пятница: 7:00 - 21:00
Суббота, воскресенье: 8:00 - 20:00
Первый хлеб достаём из печи в 6:40.
"""


def rubles(kopecks: int) -> str:
    """Return a price in rubles for readers."""
    whole, rest = divmod(kopecks, 100)
    amount = f"{whole:,}".replace(",", " ")
    return f"{amount},{rest:02} ₽" if rest else f"{amount} ₽"


def price_list() -> str:
    """Return the price list as CSV for spreadsheets."""
    rows = [f"{p.sku};{p.name};{rubles(p.price)}" for p in PRODUCTS]
    return "\r\n".join(["Артикул;Название;Цена", *rows, ""])


FORM = {
    "title": "Заказ и вопросы",
    "fields": [
        {"name": "name", "label": "Как к вам обращаться", "required": True},
        {"name": "phone", "label": "Телефон", "type": "phone", "required": True},
        {"name": "email", "label": "Почта", "type": "email"},
        {
            "name": "pickup",
            "label": "Как получить",
            "type": "select",
            "options": ["Заберу сам", "Доставка"],
        },
        {"name": "message", "label": "Пожелания", "type": "textarea"},
        {
            "name": "consent",
            "label": "Согласен на обработку персональных данных",
            "type": "consent",
            "required": True,
        },
    ],
    "successMessage": "Спасибо! Перезвоним, как только достанем хлеб из печи.",
}


@dataclass(frozen=True, slots=True)
class Lead:
    """A form submission. ``items`` are quantities by SKU, ``source`` is the campaign's source."""

    name: str
    phone: str
    message: str
    email: str | None = None
    items: dict[str, int] = field(default_factory=dict)
    source: str | None = None
    referrer: str | None = None
    status: str = "new"


LEADS = (
    Lead(
        "Анна Смирнова",
        "8 (916) 555-01-01",
        "Торт на день рождения, на двенадцать человек, без орехов.",
        email="anna@example.com",
        source="newsletter",
        status="completed",
    ),
    Lead(
        "Борис",
        "+7 916 555-01-02",
        "Заберу в пятницу к семи.",
        items={"HL-01": 2, "VP-01": 6},
        referrer="https://maps.example.org/",
        status="in_progress",
    ),
    Lead(
        "Кафе «Ёлка»",
        "+7 495 555-01-03 доб. 12",
        "Возите ли багеты в кафе каждое утро?",
        email="cafe@example.com",
    ),
    Lead("Дмитрий", "89165550104", "Позовите на работу пекарем.", status="rejected"),
    Lead(
        "Анна",
        "+79165550101",
        "И ещё хлеба к столу.",
        items={"HL-03": 1},
        source="newsletter",
    ),
)
"""The first and the last lead are of the same client."""


AGENT = {
    "name": "Булочка",
    "model": "demo",
    "systemPrompt": (
        "Ты Булочка, помощница пекарни «Тёплый хлеб». Отвечай по-русски, коротко и приветливо, на"
        " «вы». Рассказывай о хлебе, выпечке, тортах, напитках и услугах пекарни, об их составе,"
        " весе и цене. Цены называй в рублях и только те, что есть в каталоге. Торты пекут на"
        " заказ за сутки. Пекарня открыта по будням с 7:00 до 21:00, в выходные с 8:00 до 20:00."
        " Если чего-то не знаешь или этого нет в продаже, скажи так прямо и предложи оставить"
        " телефон или почту: вам перезвонят. О том, что не касается пекарни, не рассуждай."
    ),
    "welcomeMessage": "Здравствуйте! Я Булочка. Подсказать хлеб к ужину или торт к празднику?",
}
"""The demo's bot."""
DIALOGS: tuple[tuple[str, ...], ...] = (
    ("Сколько стоит ржаной хлеб?", "А когда вы открываетесь в субботу?"),
    ("Хочу торт на день рождения", "Запишите телефон: +7 916 123-45-67"),
)
"""Dialogs of visitors with the bot. One asks for a current price, the other becomes a lead."""
