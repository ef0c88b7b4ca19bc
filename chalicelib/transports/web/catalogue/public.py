"""What public pages say: the blog, sites, and what stands in for a page that is missing."""

from collections.abc import Mapping

from chalicelib.transports.web.languages import Language, Text

PUBLIC: Mapping[str, Mapping[Language, Text]] = {
    "skip": {"ru": "К содержанию", "en": "Skip to content"},
    "blog": {"ru": "Блог", "en": "Blog"},
    "blog_about": {
        "ru": "Как устроен сервис, что в нём нового и как им пользуются.",
        "en": "How the service works, what is new in it, and how people use it.",
    },
    "home_title": {
        "ru": "Сайт, каталог, запись и боты через API",
        "en": "Sites, catalogue, bookings and bots through an API",
    },
    "home_about": {
        "ru": "REST API и сервер инструментов для ИИ-ассистентов: сайты, товары, услуги, записи, заявки"
        " и чат-боты небольшого бизнеса.",
        "en": "A REST API and a tool server for AI assistants: sites, products, services, bookings, leads"
        " and chat bots of a small business.",
    },
    "open_console": {"ru": "Открыть консоль", "en": "Open the console"},
    "read_reference": {"ru": "Читать справочник", "en": "Read the reference"},
    "console": {"ru": "Консоль", "en": "Console"},
    "home_console": {
        "ru": "Ключи API, боты, баланс и журнал действий.",
        "en": "API keys, bots, the balance and the audit log.",
    },
    "home_api_reference": {
        "ru": "Каждая операция с примерами для cURL, Python и MCP.",
        "en": "Every operation, with examples for cURL, Python and MCP.",
    },
    "tool_server": {"ru": "Сервер инструментов", "en": "Tool server"},
    "home_tool_server": {
        "ru": "Те же операции для Claude, ChatGPT и других клиентов MCP.",
        "en": "The same operations for Claude, ChatGPT and other MCP clients.",
    },
    "home_blog": {
        "ru": "Как устроен сервис и что в нём нового.",
        "en": "How the service works, and what is new in it.",
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
