"""The demo bakery's services: master classes and consultations, their staff, and the bookings."""

from dataclasses import dataclass

CATEGORIES = ("Мастер-классы", "Консультации")
"""The categories of services."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service. ``image`` is a file in ``images``. ``rules`` are further settings of its slots."""

    name: str
    category: str
    minutes: int
    price: int
    image: str
    description: str
    tags: tuple[str, ...]
    rules: dict[str, int]


SERVICES = (
    Service(
        "Мастер-класс «Хлеб на закваске»",
        "Мастер-классы",
        180,
        390_000,
        "rolling-pin",
        "Замешиваем, формуем и печём деревенский хлеб. Закваску и рецепт забираете с собой.",
        ("хлеб", "закваска", "для взрослых"),
        {"slotStepMin": 60, "bufferAfterMin": 30, "minNoticeMin": 1440},
    ),
    Service(
        "Детский мастер-класс «Имбирный пряник»",
        "Мастер-классы",
        90,
        190_000,
        "mixing-bowl",
        "Для детей от пяти лет, один взрослый бесплатно. Печём и расписываем глазурью.",
        ("дети", "пряник", "праздник"),
        {"slotStepMin": 30, "bufferAfterMin": 15, "minNoticeMin": 180},
    ),
    Service(
        "Консультация по торту на заказ",
        "Консультации",
        30,
        0,
        "cake",
        "Подберём начинку, размер и оформление, посчитаем цену. Можно попробовать три начинки.",
        ("торт", "на заказ"),
        {"slotStepMin": 30, "minNoticeMin": 60},
    ),
)


@dataclass(frozen=True, slots=True)
class Teacher:
    """A member of staff who provides services. ``hours`` are rules of availability."""

    name: str
    image: str
    description: str
    capacity: int
    services: tuple[str, ...]
    hours: tuple[dict[str, object], ...]


TEACHERS = (
    Teacher(
        "Анна Ковалёва",
        "baker",
        "Пекарь, двенадцать лет работает с закваской.",
        1,
        (SERVICES[0].name, SERVICES[2].name),
        (
            {"weekdays": ["tue", "wed", "thu", "fri"], "start": "10:00", "end": "19:00"},
            {"weekday": "sat", "start": "10:00", "end": "16:00"},
        ),
    ),
    Teacher(
        "Борис Литвин",
        "confectioner",
        "Кондитер. Торты, пряники и терпение к детям.",
        2,
        (SERVICES[1].name, SERVICES[2].name),
        (
            {
                "weekdays": ["mon", "wed", "fri"],
                "intervals": [
                    {"start": "11:00", "end": "14:00"},
                    {"start": "15:00", "end": "20:00"},
                ],
            },
            {"weekdays": ["sat", "sun"], "start": "11:00", "end": "18:00"},
        ),
    ),
)

HOLIDAYS = "Новогодние каникулы"
"""The reason for the time off from January 1 to 3."""


@dataclass(frozen=True, slots=True)
class Booking:
    """A booking: the client, the service, the number of its next free slots, and the outcome."""

    client: str
    phone: str
    service: int
    slot: int
    notes: str | None = None
    status: str = "confirmed"


BOOKINGS = (
    Booking("Анна Смирнова", "8 (916) 555-01-01", 0, 3, "Беру с собой подругу."),
    Booking("Вера", "+7 916 555-01-05", 1, 2, "Двое детей, шесть и восемь лет."),
    Booking("Глеб", "+7 916 555-01-06", 1, 12),
    Booking("Борис", "+7 916 555-01-02", 2, 5, "Свадебный торт на сорок человек."),
    Booking("Диана", "+7 916 555-01-07", 2, 20, status="cancelled"),
)
"""Some of the clients also have leads."""
