"""The demo workspace: made in an empty database, its key kept for later starts.

Each noun has a function in ``STEPS``, which makes what is missing of it; ``demo.json`` says which
of them are through. So a start that was killed is finished by the next one, a demo made before a
noun was added gets it, and what its developer changed or deleted since stays so.
"""

import base64
import json
import random
import secrets
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from chalicelib.core import clock
from chalicelib.core.errors import AppError, NotFoundError, SkuTakenError
from chalicelib.core.operations import REGISTRY, load_all
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.flows.invoke import invoke
from chalicelib.store import accounts, api_keys, metrics, tables, visits, workspaces
from chalicelib.store.connection import connection
from chalicelib.store.metrics import Increments
from chalicelib.transports.auth import authenticate
from infra.admin import call
from infra.data_dir import DataDir
from infra.demo import bakery, pages, pictures, posts

EMAIL = "demo@example.com"
VISITED_DAYS = 35
FRIDAY = 4


def seed(data: DataDir) -> str | None:
    """Make what is missing of the demo and return its key; None if the database belongs to others.

    The password is kept before the account is made, the key before what it makes. One process at a
    time does so. Should a part of the demo be refused, the service starts all the same.
    """
    load_all()
    with data.hold_demo():
        key = _key(data)
        if key:
            try:
                _furnish(data, key)
            except AppError as error:
                print(f"The demo is not complete: {error.message}", file=sys.stderr)
        return key


def _key(data: DataDir) -> str | None:
    demo = data.demo
    key: str = demo.get("key", "")
    if api_keys.authenticate(key):
        return key
    try:
        account = accounts.by_email(EMAIL)
    except NotFoundError:
        if not _is_empty():
            return None
        demo = {"email": EMAIL, "password": secrets.token_urlsafe(12)}
        data.demo = demo
        call("create_account", {**demo, "name": "Demo", "role": "admin"})
        account = accounts.by_email(EMAIL)
    owned = [workspace.id for workspace, _ in workspaces.of_account(account.id)]
    if owned:
        workspace = owned[0]
    else:
        made = call("create_workspace", {"owner": EMAIL, "name": bakery.NAME})
        workspace = made["workspaceId"]
    scopes = ["*:read", "*:write"]
    key = call("create_key", {"workspaceId": workspace, "name": "Demo", "scopes": scopes})["token"]
    data.demo = {**demo, "email": EMAIL, "workspaceId": workspace, "key": key}
    return key


def _is_empty() -> bool:
    name = tables.IdentityRow.Meta.table_name
    return not connection().client.scan(TableName=name, Limit=1)["Items"]


class Caller:
    """Calls operations as the demo key may."""

    def __init__(self, key: str) -> None:
        self._principal = authenticate({"authorization": f"Bearer {key}"}, "")

    @property
    def workspace_id(self) -> str:
        """The workspace that the key is of."""
        return self._principal.workspace_id

    @property
    def is_admin(self) -> bool:
        """Whether it may write the blog."""
        return self._principal.role == "admin"

    def __call__(self, operation: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        """Call an operation and return what is inside the envelope."""
        reply = invoke(
            REGISTRY[operation], self._principal, lambda: arguments, request_id="seed-demo"
        )
        data: dict[str, Any] = json.loads(reply.body)["data"]
        return data


def make_files(do: Caller) -> None:
    """Make the folders, and the files that are no product's."""
    root = Folder(do, None)
    root.file("Обложка.jpg", partial(pictures.showcase, "rye", "baguette", "bun"))
    papers = root.folder("Документы")
    papers.file("Прайс-лист.csv", lambda: bakery.price_list().encode("utf-8-sig"))
    papers.file("Режим работы.txt", bakery.HOURS.encode)
    photos = root.folder("Фото")
    photos.file("Витрина.jpg", partial(pictures.showcase, "loaf", "croissant", "cake", "cup"))


def make_categories(do: Caller) -> None:
    """Make the two levels of product categories."""
    there = _by_name(do("list_categories", kind="product")["categories"])

    def make(name: str, above: str | None) -> str:
        if name not in there:
            there[name] = do("create_category", name=name, parentId=above)["category"]
        category_id: str = there[name]["id"]
        return category_id

    for group, below in bakery.CATEGORIES.items():
        group_id = make(group, None)
        for name in below:
            make(name, group_id)


def make_products(do: Caller) -> None:
    """Make the products, each with a picture; a SKU that is taken is a product that is there."""
    photos = _product_pictures(do)
    categories = _by_name(do("list_categories", kind="product")["categories"])
    for product in bakery.PRODUCTS:
        draw = partial(pictures.picture, product.drawing)
        values = {
            "name": product.name,
            "price": product.price,
            "description": product.description,
            "sku": product.sku,
            "stock": product.stock,
            "categoryId": categories[product.category]["id"],
            "barcode": product.barcode,
            "status": product.status,
            "images": [{"url": photos.file(f"{product.name}.jpg", draw)}],
        }
        try:
            do("create_product", **values)
        except SkuTakenError:
            continue


def make_site(do: Caller) -> None:
    """Make the site with its pages, which show the products' pictures."""
    found = do("list_sites", search=bakery.SITE)["projects"]
    site = found[0] if found else _made_site(do)
    there = {page["slug"]: page for page in do("list_pages", projectId=site["id"])["pages"]}
    photos = _product_pictures(do).files.items()
    urls = {name.removesuffix(".jpg"): file["url"] for name, file in photos}
    wanted = pages.pages(urls)
    for page in wanted:
        if page.slug not in there:
            there[page.slug] = _made_page(do, site["id"], page)
    menu = {page.title: urlsplit(there[page.slug]["url"]).path for page in wanted}
    for page in wanted:
        made = there[page.slug]
        if not made["htmlBytes"]:
            do("update_page", id=made["id"], description=page.description)
            do("save_page_html", id=made["id"], html=page.html(menu), returnHtml=False)


def _made_site(do: Caller) -> dict[str, Any]:
    site: dict[str, Any] = do("create_site", title=bakery.SITE, description=bakery.ABOUT)["project"]
    return site


def _made_page(do: Caller, site_id: str, page: pages.Page) -> dict[str, Any]:
    made: dict[str, Any]
    made = do("create_page", projectId=site_id, title=page.title, slug=page.slug)["page"]
    return made


def make_leads(do: Caller) -> None:
    """Make a form on the site, and what some visitors have sent in with it."""
    site = do("list_sites", search=bakery.SITE)["projects"][0]["id"]
    forms = do("list_forms", projectId=site)["forms"]
    form = forms[0] if forms else do("create_form", **bakery.FORM, projectId=site)["form"]
    products = {each["sku"]: each["id"] for each in do("list_products", size=100)["products"]}
    there = {lead["data"]["message"]: lead for lead in do("list_leads", size=500)["collections"]}
    for lead in bakery.LEADS:
        made = there.get(lead.message) or {"id": _submitted(form["id"], lead, products)}
        if lead.status != "new":
            do("set_lead_status", id=made["id"], status=lead.status)


def _submitted(form_id: str, lead: bakery.Lead, products: dict[str, str]) -> str:
    """Submit the form as a visitor; return the lead's id."""
    items = [{"productId": products[sku], "quantity": n} for sku, n in lead.items.items()]
    values = {
        "name": lead.name,
        "phone": lead.phone,
        "email": lead.email,
        "message": lead.message,
        "consent": True,
        "items": items,
    }
    sent = {
        "id": form_id,
        "values": values,
        "referrer": lead.referrer,
        "campaign": {"source": lead.source},
    }
    visitor = VisitorPrincipal(visitor="demo")
    reply = invoke(REGISTRY["submit_form"], visitor, lambda: sent, request_id="seed-demo")
    lead_id: str = json.loads(reply.body)["data"]["id"]
    return lead_id


def make_posts(do: Caller) -> None:
    """Write posts of the platform's blog; an older demo's account, no ADMIN, writes none."""
    if not do.is_admin:
        return
    there = {post["slug"] for post in do("list_blog_posts", size=100)["posts"]}
    photos = Folder(do, None).folder("Фото").folder("Блог")
    for post in reversed(posts.POSTS):
        if post.slug in there:
            continue
        values = {name: value for name, value in post._asdict().items() if name != "drawings"}
        if post.drawings:
            draw = partial(pictures.showcase, *post.drawings)
            values["coverImage"] = photos.file(f"{post.slug}.jpg", draw)
        do("create_blog_post", **values | {"tags": list(post.tags)})


def make_visits(do: Caller) -> None:
    """Count visits of the site's pages over the last weeks, more at week-ends and on the home page.

    By the store, for who opens a page does so today.
    """
    site = do("list_sites", search=bakery.SITE)["projects"][0]["id"]
    ids = [page["id"] for page in do("list_pages", projectId=site)["pages"]]
    zone = workspaces.get(do.workspace_id).timezone
    today = clock.local_day(clock.now(), zone)
    dice = random.Random("visits")  # noqa: S311  repeatable by intent
    first = today - timedelta(days=VISITED_DAYS - 1)
    counted = metrics.read(do.workspace_id, visits.subject(site), first, today)
    for day in (day for day, counts in counted.items() if not counts.totals):
        counts = Increments(do.workspace_id)
        visitors = dice.randrange(9, 16) + (9 if day.weekday() > FRIDAY else 0)
        counts.add(visits.subject(site), day, {visits.VISITORS: visitors})
        for _ in range(visitors * 2):
            page_id = dice.choices(ids, [8, 5, 3, 2][: len(ids)])[0]
            referrer = dice.choices([None, *bakery.REFERRERS], [6, 4, 2, 1])[0]
            counts.add(
                visits.subject(site), day, {visits.VIEWS: 1}, page=page_id, referrer=referrer
            )
        counts.write()


STEPS = (make_files, make_categories, make_products, make_site, make_leads, make_posts, make_visits)
"""What the demo consists of, a function a noun; each leaves alone what is there."""


def _furnish(data: DataDir, key: str) -> None:
    """Take the steps that were not taken yet."""
    steps = [step for step in STEPS if step.__name__ not in data.demo.get("steps", ())]
    if not steps:
        return
    do = Caller(key)
    for step in steps:
        step(do)
        data.demo = {**data.demo, "steps": [*data.demo.get("steps", ()), step.__name__]}


class Folder:
    """A folder of files, None for the root; what it lacks is made when asked for."""

    def __init__(self, do: Caller, folder_id: str | None) -> None:
        self._do, self._id = do, folder_id
        found = do("list_files", folderId=folder_id, size=100)
        self.files, self._folders = _by_name(found["files"]), _by_name(found["folders"])

    def folder(self, name: str) -> "Folder":
        """Return a folder in this one."""
        if name not in self._folders:
            made = self._do("create_folder", name=name, parentId=self._id)
            self._folders[name] = made["folder"]
        return Folder(self._do, self._folders[name]["id"])

    def file(self, name: str, make: Callable[[], bytes]) -> str:
        """Return a file's URL."""
        if name not in self.files:
            content = base64.b64encode(make()).decode()
            made = self._do("upload_file", name=name, content=content, folderId=self._id)
            self.files[name] = made["file"]
        url: str = self.files[name]["url"]
        return url


def _product_pictures(do: Caller) -> Folder:
    return Folder(do, None).folder("Фото").folder("Товары")


def _by_name(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {record["name"]: record for record in records}
