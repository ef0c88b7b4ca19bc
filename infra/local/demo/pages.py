"""The pages of the demo bakery's site, with the service's form, booking and chat widget.

URLs of the service are paths, so that the pages work on any port.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from infra.local.demo.bakery import ABOUT, CATEGORIES, HOURS, PRODUCTS, SITE, Product, rubles

HOME = "home"


@dataclass(frozen=True, slots=True)
class Tools:
    """Parts of pages from the service: the widget's bot, the HTML of the form, and the services."""

    agent_id: str = ""
    form_html: str = ""
    services: tuple[dict[str, Any], ...] = ()

    @property
    def widget(self) -> str:
        """The tag of the chat widget."""
        tag = '<script src="/widget.js" data-agent="{}" data-color="#a4532a" async></script>'
        return tag.format(escape(self.agent_id)) if self.agent_id else ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the content between the site's header and footer."""

    slug: str
    title: str
    description: str
    main: str

    @property
    def link(self) -> str:
        """The page's URL, relative to the other pages of the site."""
        return "./" if self.slug == HOME else self.slug

    def html(self, site: Iterable["Page"], tools: Tools) -> str:
        """Return the whole document, with links to the pages of the site."""
        links = "\n        ".join(
            f'<a href="{page.link}"{" aria-current=page" if page == self else ""}>'
            f"{escape(page.title)}</a>"
            for page in site
        )
        return f"""<!doctype html>
<html lang="ru">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="description" content="{escape(self.description)}">
    <title>{escape(self.title)} | {escape(SITE)}</title>
    <style>
{_read("site.css")}    </style>
  </head>
  <body>
    <header>
      <b>{escape(SITE)}</b>
      <nav aria-label="Страницы">
        {links}
      </nav>
    </header>
    <main>
{self.main}
    </main>
    <footer>Москва, Булочная улица, 7. +7 495 000-00-00. Каждый день с 7:00.</footer>
    {tools.widget}
  </body>
</html>
"""


def pages(images: Mapping[str, str], tools: Tools) -> list[Page]:
    """Return the pages, the home page first. ``images`` maps products' names to URLs."""
    menu = "\n".join(
        f"<h2>{escape(group)}</h2>\n{_cards(_sold({group, *below}), images)}"
        for group, below in CATEGORIES.items()
    )
    favourites = [product for product in PRODUCTS if product.sku in {"HL-01", "VP-01", "TR-01"}]
    hours = "<br>".join(escape(line) for line in HOURS.splitlines()[1:])
    return [
        Page(
            HOME,
            "Главная",
            ABOUT,
            f"<h1>Хлеб, за которым возвращаются</h1>\n<p>{escape(ABOUT)}</p>\n"
            '<p class="actions"><a class="button" href="classes">Записаться на мастер-класс</a>\n'
            '<a class="button plain" href="contacts">Оставить заказ</a></p>\n'
            f"<h2>Любимое</h2>\n{_cards(favourites, images)}",
        ),
        Page("menu", "Меню", "Что сегодня на прилавке и сколько стоит.", f"<h1>Меню</h1>\n{menu}"),
        Page(
            "cakes",
            "Торты на заказ",
            "Торты к празднику: закажите за сутки.",
            "<h1>Торты на заказ</h1>\n<p>Скажите, на сколько гостей и к какому часу: соберём, "
            f"подпишем и привезём.</p>\n{_cards(_sold({'Торты'}), images, 'h2')}",
        ),
        Page(
            "classes",
            "Мастер-классы",
            "Мастер-классы и консультации: выберите время и запишитесь.",
            "<h1>Мастер-классы и консультации</h1>\n<p>Печём вместе: выберите занятие и время, "
            f"оставьте имя и телефон.</p>\n{_booking(tools.services)}",
        ),
        Page(
            "contacts",
            "Контакты",
            "Адрес, телефон и часы работы пекарни.",
            "<h1>Контакты</h1>\n<div class=two>\n<div><p>Москва, Булочная улица, 7, вход со двора."
            f'<br><a href="tel:+74950000000">+7 495 000-00-00</a></p>\n<p>{hours}</p></div>\n'
            f"{_form(tools.form_html)}</div>",
        ),
    ]


def _sold(categories: set[str]) -> list[Product]:
    return [p for p in PRODUCTS if p.category in categories and p.status == "active"]


def _cards(products: Iterable[Product], images: Mapping[str, str], heading: str = "h3") -> str:
    cards = "\n".join(
        f'<article><img src="{escape(urlsplit(images[product.name]).path)}" alt="">'
        f"<div><{heading}>{escape(product.name)}</{heading}><p>{escape(product.description)}</p>"
        f"<b>{rubles(product.price)}</b></div></article>"
        for product in products
    )
    return f'<div class="cards">\n{cards}\n</div>'


def _form(html: str) -> str:
    return f'<section class="panel">\n<h2>Заказ и вопросы</h2>\n{html}\n</section>' if html else ""


def _booking(services: Iterable[dict[str, Any]]) -> str:
    """Return cards of the services, and the form that books one."""
    services = list(services)
    if not services:
        return "<p>Сейчас занятий нет.</p>"
    cards = "\n".join(
        f'<article><img src="{escape(_image(service))}" alt="">'
        f"<div><h2>{escape(service['name'])}</h2><p>{escape(service['description'] or '')}</p>"
        f"<b>{_price(service)}, {service['durationMin']} минут</b>"
        f'<a class="button" href="#book" data-service="{escape(service["id"])}">Выбрать время</a>'
        "</div></article>"
        for service in services
    )
    options = "".join(
        f'<option value="{escape(service["id"])}">{escape(service["name"])}</option>'
        for service in services
    )
    return f"""<div class="cards">
{cards}
</div>
<section class="panel" id="book">
<h2>Запись</h2>
<noscript><p>Чтобы записаться, включите JavaScript или позвоните: +7 495 000-00-00.</p></noscript>
<form class="book" hidden>
<label>Занятие <select name="service">{options}</select></label>
<fieldset><legend>День</legend><div class="days"></div></fieldset>
<fieldset><legend>Время</legend><div class="times"></div></fieldset>
<button type="button" class="later plain" hidden>Показать дни позже</button>
<label>Имя <input name="name" autocomplete="name" maxlength="100" required></label>
<label>Телефон <input name="phone" type="tel" autocomplete="tel" maxlength="30" required></label>
<p role="status"></p>
<button type="submit">Записаться</button>
</form>
<script>
{_read("booking.js")}</script>
</section>"""


def _image(service: dict[str, Any]) -> str:
    images = service["images"]
    return urlsplit(images[0]["url"]).path if images else ""


def _price(service: dict[str, Any]) -> str:
    return rubles(service["price"]) if service["price"] else "Бесплатно"


@cache
def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text()
