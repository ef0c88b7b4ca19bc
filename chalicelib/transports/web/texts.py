"""What pages say, in Russian and English, and how dates, numbers and money read there.

Rules of plurals, names of months and signs of currencies are those of the CLDR, by Babel, of which
the Lambda zip has these two languages only. It is imported when a page asks first.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Final, Literal, get_args

Language = Literal["ru", "en"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
_RANGE = re.compile(r"\s*([A-Za-z]+)(?:-[^;,]*)?\s*(?:;\s*q\s*=\s*([0-9.]+))?\s*")
_CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)
_LATIN = re.compile("[a-z]", re.IGNORECASE)

Text = str | Mapping[str, str]
"""A text; or one for each plural form of the number ``n``."""

CATALOGUE: Mapping[str, Mapping[Language, Text]] = {
    "skip": {"ru": "К содержанию", "en": "Skip to content"},
    "blog": {"ru": "Блог", "en": "Blog"},
    "blog_about": {
        "ru": "Как устроен сервис, что в нём нового и как им пользуются.",
        "en": "How the service works, what is new in it, and how people use it.",
    },
    "rss": {"ru": "RSS", "en": "RSS"},
    "reference": {"ru": "API", "en": "API"},
    "menu": {"ru": "Разделы", "en": "Menu"},
    "close_menu": {"ru": "Закрыть", "en": "Close menu"},
    "reference_menu": {"ru": "Разделы справочника", "en": "Sections of the reference"},
    "search_reference": {"ru": "Поиск по справочнику", "en": "Search the reference"},
    "search": {"ru": "Найти", "en": "Search"},
    "all_posts": {"ru": "Все записи", "en": "All posts"},
    "tags": {"ru": "Метки", "en": "Tags"},
    "tagged": {"ru": "Записи с меткой «{tag}»", "en": "Posts tagged “{tag}”"},
    "posts": {
        "ru": {
            "one": "{n} запись",
            "few": "{n} записи",
            "many": "{n} записей",
            "other": "{n} записи",
        },
        "en": {"one": "{n} post", "other": "{n} posts"},
    },
    "minutes": {
        "ru": {
            "one": "{n} минута чтения",
            "few": "{n} минуты чтения",
            "many": "{n} минут чтения",
            "other": "{n} минуты чтения",
        },
        "en": {"one": "{n} minute read", "other": "{n} minutes read"},
    },
    "newer": {"ru": "Новее", "en": "Newer"},
    "older": {"ru": "Старше", "en": "Older"},
    "page_of": {"ru": "Страница {page} из {pages}", "en": "Page {page} of {pages}"},
    "pages": {"ru": "Страницы списка", "en": "Pages of the list"},
    "main_menu": {"ru": "Главное меню", "en": "Main menu"},
    "latest": {"ru": "Свежие записи", "en": "Latest posts"},
    "read_on": {"ru": "Читайте ещё", "en": "Read on"},
    "updated": {"ru": "Обновлено {day}", "en": "Updated {day}"},
    "no_posts": {
        "ru": "Здесь пока ничего нет. Подпишитесь на RSS, чтобы не пропустить первую запись.",
        "en": "Nothing here yet. Subscribe to the RSS feed so as not to miss the first post.",
    },
    "no_tagged": {
        "ru": "С этой меткой записей нет.",
        "en": "No post has this tag.",
    },
    "not_found": {"ru": "Такой страницы нет", "en": "There is no such page"},
    "post_not_found": {
        "ru": "Запись удалили, не опубликовали, или в адресе опечатка.",
        "en": "The post was removed or not published, or the address is mistyped.",
    },
    "site_page_not_found": {
        "ru": "Страницу удалили или переименовали, или в адресе опечатка.",
        "en": "The page was removed or renamed, or the address is mistyped.",
    },
    "site_not_found": {
        "ru": "По этому адресу нет сайта.",
        "en": "There is no site at this address.",
    },
    "to_home": {"ru": "На главную страницу сайта", "en": "To the site's home page"},
    "site_inactive": {"ru": "Сайт выключен", "en": "This site is switched off"},
    "site_inactive_about": {
        "ru": "Владелец временно скрыл его. Загляните позже.",
        "en": "Its owner has hidden it for now. Please come back later.",
    },
    "site_suspended": {"ru": "Сайт заблокирован", "en": "This site is suspended"},
    "site_suspended_about": {
        "ru": "Если вы его владелец, напишите в поддержку.",
        "en": "If it is yours, please write to support.",
    },
    "site_empty": {"ru": "Здесь скоро будет страница", "en": "A page will be here soon"},
    "site_empty_about": {
        "ru": "Владелец ещё не заполнил её.",
        "en": "Its owner has not filled it in yet.",
    },
    "failed": {"ru": "Страница не открылась", "en": "The page did not open"},
    "failed_about": {
        "ru": "Что-то сломалось на нашей стороне. Обновите страницу через минуту. "
        "Код запроса: {request_id}",
        "en": "Something broke on our side. Reload the page in a minute. Request id: {request_id}",
    },
}


def preferred(header: str, default: Language = "en") -> Language:
    """Return the language that an ``Accept-Language`` header asks for first, of those spoken."""
    asked: list[tuple[float, Language]] = []
    for part in header.split(","):
        found = _RANGE.fullmatch(part)
        spoken = next((each for each in LANGUAGES if found and each == found[1].lower()), None)
        if found and spoken and (weight := _weight(found[2])):
            asked.append((weight, spoken))
    return max(asked, key=lambda one: one[0])[1] if asked else default


def _weight(text: str | None) -> float:
    try:
        return float(text) if text is not None else 1.0
    except ValueError:
        return 0.0


def language_of(text: str) -> Language:
    """Return the language that a text of somebody's is probably in, by its script."""
    return "ru" if len(_CYRILLIC.findall(text)) > len(_LATIN.findall(text)) else "en"


def say(language: Language, key: str, **values: object) -> str:
    """Return a text of the catalogue; of several plural forms that of ``n``."""
    text = CATALOGUE[key][language]
    if isinstance(text, str):
        return text.format(**values)
    n = values["n"]
    if not isinstance(n, int):
        msg = f"{key} is said of whole numbers"
        raise TypeError(msg)
    return text[plural_form(language, n)].format(**{**values, "n": number(language, n)})


def plural_form(language: Language, n: int) -> str:
    """Return the CLDR's plural form of a number: ``one``, ``few``, ``many`` or ``other``."""
    from babel import Locale  # noqa: PLC0415  80 ms that only pages need

    return str(Locale.parse(language).plural_form(n))


def number(language: Language, n: int) -> str:
    """Return a whole number with its thousands apart."""
    from babel.numbers import format_decimal  # noqa: PLC0415  as above

    return format_decimal(n, locale=language)


def money(language: Language, kopecks: int) -> str:
    """Return an amount in rubles, such as ``1 234,50 ₽``."""
    from decimal import Decimal  # noqa: PLC0415  as above

    from babel.numbers import format_currency  # noqa: PLC0415  as above

    rubles = Decimal(kopecks) / 100
    pattern = "#,##0.00 ¤"
    return format_currency(rubles, "RUB", pattern, locale=language).replace("RUB", "₽")


def day(language: Language, when: date) -> str:
    """Return a date, such as ``22 November 2026``."""
    from babel.dates import format_date  # noqa: PLC0415  as above

    return format_date(when, "d MMMM y", locale=language)


def moment(language: Language, when: datetime, timezone: str) -> str:
    """Return a moment in an IANA time zone, such as ``22 November 2026, 14:05``."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415  as above

    local = when.astimezone(ZoneInfo(timezone))
    return f"{day(language, local)}, {local:%H:%M}"
