"""The pages of the demo bakery's site: small, whole documents that need nothing from elsewhere."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

from infra.demo.bakery import ABOUT, CATEGORIES, HOURS, PRODUCTS, SITE, Product, rubles

_STYLE = """
body { margin: 0; font: 17px/1.6 Georgia, serif; color: #3d2b1f; background: #fffaf2 }
header, main, footer { max-width: 62rem; margin: auto; padding: 1rem 1.5rem }
header { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; align-items: baseline }
header b { font-size: 1.3rem; margin-right: auto }
a { color: #a4532a }
h1 { font-size: 2.2rem; line-height: 1.2 }
.cards { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)) }
.cards article { background: #fff; border-radius: .8rem; overflow: hidden }
.cards img { width: 100%; display: block }
.cards div { padding: .4rem 1rem 1rem }
.cards h3 { margin: .2rem 0 }
footer { font-size: .9rem; color: #8b7563 }
""".strip()


@dataclass(frozen=True, slots=True)
class Page:
    """A page: what stands between the site's header and its footer."""

    slug: str
    title: str
    description: str
    main: str

    def html(self, menu: Mapping[str, str]) -> str:
        """Return the whole document, with links to the pages of the site, by their paths."""
        links = "\n      ".join(
            f'<a href="{escape(path)}">{escape(title)}</a>' for title, path in menu.items()
        )
        return f"""<!doctype html>
<html lang="ru">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="description" content="{escape(self.description)}">
    <title>{escape(self.title)} | {escape(SITE)}</title>
    <style>
{_STYLE}
    </style>
  </head>
  <body>
    <header>
      <b>{escape(SITE)}</b>
      {links}
    </header>
    <main>
{self.main}
    </main>
    <footer>Москва, Булочная улица, 7. +7 495 000-00-00. Каждый день с 7:00.</footer>
  </body>
</html>
"""


def pages(images: Mapping[str, str]) -> list[Page]:
    """Return the pages, home first; ``images`` are the URLs of the products' by name."""
    menu = "\n".join(
        f"<h2>{escape(group)}</h2>\n{_cards(_sold({group, *below}), images)}"
        for group, below in CATEGORIES.items()
    )
    favourites = [product for product in PRODUCTS if product.sku in {"HL-01", "VP-01", "TR-01"}]
    hours = "<br>".join(escape(line) for line in HOURS.splitlines()[1:])
    return [
        Page(
            "home",
            "Главная",
            ABOUT,
            f"<h1>Хлеб, за которым возвращаются</h1>\n<p>{escape(ABOUT)}</p>\n"
            f"<h2>Любимое</h2>\n{_cards(favourites, images)}",
        ),
        Page("menu", "Меню", "Что сегодня на прилавке и сколько стоит.", f"<h1>Меню</h1>\n{menu}"),
        Page(
            "cakes",
            "Торты на заказ",
            "Торты к празднику: закажите за сутки.",
            "<h1>Торты на заказ</h1>\n<p>Скажите, на сколько гостей и к какому часу: соберём, "
            f"подпишем и привезём.</p>\n{_cards(_sold({'Торты'}), images)}",
        ),
        Page(
            "contacts",
            "Контакты",
            "Адрес, телефон и часы работы пекарни.",
            "<h1>Контакты</h1>\n<p>Москва, Булочная улица, 7, вход со двора.<br>"
            f'<a href="tel:+74950000000">+7 495 000-00-00</a></p>\n<p>{hours}</p>',
        ),
    ]


def _sold(categories: set[str]) -> list[Product]:
    return [p for p in PRODUCTS if p.category in categories and p.status == "active"]


def _cards(products: Iterable[Product], images: Mapping[str, str]) -> str:
    cards = "\n".join(
        f'<article><img src="{escape(urlsplit(images[product.name]).path)}" alt="">'
        f"<div><h3>{escape(product.name)}</h3><p>{escape(product.description)}</p>"
        f"<b>{rubles(product.price)}</b></div></article>"
        for product in products
    )
    return f'<div class="cards">\n{cards}\n</div>'
