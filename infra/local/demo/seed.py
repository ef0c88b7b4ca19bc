"""The demo workspace. It is created in an empty database, and later starts reuse its key.

Each function in ``STEPS`` creates the missing records of one kind. ``demo.json`` lists the steps
that are done. The next start therefore continues after a start that was killed, and adds new steps
to an older demo. Records that the developer has changed or deleted are not restored.
"""

import json
import secrets
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.core.operations import REGISTRY, load_all
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.domains.catalog.store.products import SkuTakenError
from chalicelib.domains.identity.store import accounts, api_keys, workspaces
from chalicelib.engine import tables
from chalicelib.engine.connection import connection
from chalicelib.transports.chat import chat_route, chat_stream
from chalicelib.transports.http import HttpRequest
from infra.local.data_dir import DataDir
from infra.local.demo import (
    bakery,
    booking_page,
    bot,
    busy_times,
    pages,
    past_bookings,
    payments,
    posts,
    school,
    visits,
    webhook,
)
from infra.local.demo.caller import Caller, Folder, image, index_by_name
from infra.local.demo.texts import LANGUAGES, Language
from infra.operator.operation_commands import call

EMAIL = "demo@example.com"
# A member of the staff, who signs in with the password of the demo's account.
STAFF_EMAIL = "staff@example.com"
SMS_PRICES = {"GB": 400, "RU": 800}
"""Kopecks of an SMS segment by country."""


def seed(data: DataDir, *, language: Language = "ru", records: bool = True) -> str | None:
    """Create the missing parts of the demo. Returns its key, or None if others use the database.

    The password is stored before the account, and the key before the records that it creates. One
    process at a time does so. If a part of the demo is refused, the service still starts. Without
    ``records``, only the account, its workspace and the key are created. A demo keeps the language
    in which it was created.
    """
    load_all()
    with data.lock_demo():
        key = _key(data, language)
        if key and records:
            try:
                _run_steps(data, key)
                webhook.ensure(data)
            except AppError as error:
                print(f"The demo is not complete: {error.message}", file=sys.stderr)
        return key


def _key(data: DataDir, language: Language) -> str | None:
    demo = data.demo
    key: str = demo.get("key", "")
    stored_key = api_keys.find_by_token(key)
    if stored_key and stored_key.live:
        return key
    try:
        account = accounts.require_by_email(EMAIL)
    except NotFoundError:
        if not _is_empty():
            return None
        demo = {"email": EMAIL, "password": secrets.token_urlsafe(12)}
        data.demo = demo
        call("create_account", {**demo, "name": "Demo", "role": "admin"})
        account = accounts.require_by_email(EMAIL)
    owned = [workspace for workspace, _ in workspaces.read_by_account(account.id)]
    if owned:
        workspace_id, name = owned[0].id, owned[0].name
        # Another data folder or a killed start has created it, maybe in another language.
        language = next((each for each in LANGUAGES if bakery.load(each).name == name), language)
    else:
        created = call("create_workspace", {"owner": EMAIL, "name": bakery.load(language).name})
        workspace_id = created["workspaceId"]
    scopes = ["*:read", "*:write", *(scope for scope in Scope if scope.by_name)]
    access = {"workspaceId": workspace_id, "name": "Demo", "scopes": scopes}
    key = call("create_key", access)["token"]
    stored_demo = {"email": EMAIL, "workspaceId": workspace_id, "key": key, "language": language}
    data.demo = {**demo, **stored_demo}
    return key


def _is_empty() -> bool:
    name = tables.IdentityRow.Meta.table_name
    return not connection().client.scan(TableName=name, Limit=1)["Items"]


def make_files(do: Caller, language: Language) -> None:
    """Create the folders, and the files that belong to no product."""
    shop, root = bakery.load(language), Folder(do, None)
    names = shop.files
    root.file(names["cover"], image("rye-baguette-bun"))
    documents = root.folder(names["documents"])
    documents.file(names["price_list"], lambda: shop.price_list.encode("utf-8-sig"))
    documents.file(names["opening_hours"], shop.hours.encode)
    photos = root.folder(names["photos"])
    photos.file(names["window"], image("loaf-croissant-cake-cup"))


def make_categories(do: Caller, language: Language) -> None:
    """Create the two levels of product categories."""
    there = index_by_name(do("list_categories", kind="product")["categories"])

    def make(name: str, above: str | None) -> str:
        if name not in there:
            there[name] = do("create_category", name=name, parentId=above)["category"]
        category_id: str = there[name]["id"]
        return category_id

    for group, below in bakery.load(language).categories.items():
        group_id = make(group, None)
        for name in below:
            make(name, group_id)


def make_products(do: Caller, language: Language) -> None:
    """Create the products with their images, unless a product has the SKU already."""
    photos = _photos(do, language, "products")
    categories = index_by_name(do("list_categories", kind="product")["categories"])
    for product in bakery.load(language).products:
        values = {
            "name": product.name,
            "price": product.price,
            "description": product.description,
            "sku": product.sku,
            "stock": product.stock,
            "categoryId": categories[product.category]["id"],
            "barcode": product.barcode,
            "status": product.status,
            "images": [{"url": photos.file(f"{product.name}.jpg", image(product.image))}],
        }
        try:
            do("create_product", **values)
        except SkuTakenError:
            continue


def make_site(do: Caller, language: Language) -> None:
    """Create the site, whose pages ``make_pages`` fills with records of later steps."""
    shop = bakery.load(language)
    if not do("list_sites", search=shop.site)["projects"]:
        do("create_site", title=shop.site, description=shop.about)


def show_products(do: Caller, language: Language) -> None:
    """Let visitors find the products on the site, if it is there."""
    for site in do("list_sites", search=bakery.load(language).site)["projects"]:
        do("update_site", id=site["id"], showsProducts=True)


def show_brand(do: Caller, language: Language) -> None:
    """Give the workspace a colour and an address, unless it has an address."""
    if not do("get_workspace")["workspace"]["address"]:
        do("set_workspace", accent="amber", address=bakery.load(language).address)


DRAFT = "<h1>Coming soon</h1>"
"""First HTML of each page, which is kept as an earlier version."""


def make_pages(do: Caller, language: Language) -> None:
    """Create the site's pages, with the form, the booking of services and the chat widget.

    The home page consists of sections, and the others have HTML of their own. A page with other
    HTML than the draft does not change. An older demo only gets the pages that it lacks.
    """
    sites = do("list_sites", search=bakery.load(language).site)["projects"]
    if not sites:
        return
    site, tools = sites[0], _tools(do, sites[0]["id"])
    there = {page["slug"]: page for page in do("list_pages", projectId=site["id"])["pages"]}
    photos = _photos(do, language, "products").files.items()
    urls = {name.removesuffix(".jpg"): file["url"] for name, file in photos}
    for page in pages.load(language):
        if page.slug not in there:
            there[page.slug] = _ensure_page(do, site["id"], page)
    for page in pages.load(language):
        page_row = there[page.slug]
        if page.slug == pages.HOME:
            _compose_home(do, language, page_row, page, tools)
        elif page_row["htmlBytes"] in {0, len(DRAFT)}:
            do("update_page", id=page_row["id"], description=page.description)
            do("save_page_html", id=page_row["id"], html=DRAFT, returnHtml=False)
            do("save_page_html", id=page_row["id"], html=page.html(urls, tools), returnHtml=False)


def _compose_home(
    do: Caller, language: Language, page_row: dict[str, Any], page: pages.Page, tools: pages.Tools
) -> None:
    """Fill the home page with sections, and with the chat widget before the end of its body."""
    html: str = do("get_page", id=page_row["id"])["page"]["html"]
    if html and not pages.lacks_widget(html):
        return
    photo_ids = {
        file["name"]: file["id"]
        for folder in ("products", "services")
        for file in _photos(do, language, folder).files.values()
    }
    root = Folder(do, None)
    photo_ids["cover"] = root.files[bakery.load(language).files["cover"]]["id"]
    sections = pages.home_sections(language, photo_ids, tools)
    do("update_page", id=page_row["id"], description=page.description, sections=sections)
    html = do("get_page", id=page_row["id"])["page"]["html"]
    html = pages.with_widget(html, tools).replace(f'"{settings().public_url}/', '"/')
    do("save_page_html", id=page_row["id"], html=html, returnHtml=False)


def _tools(do: Caller, site_id: str) -> pages.Tools:
    """Return the service's parts of the pages, with paths as URLs because the port may change."""
    agents = do("list_agents")["agents"]
    forms = do("list_forms", projectId=site_id)["forms"]
    html = forms[0]["embedHtml"] if forms else ""
    return pages.Tools(
        agents[0]["id"] if agents else "",
        forms[0]["id"] if forms else "",
        html.replace(f'"{settings().public_url}/', '"/'),
        tuple(do("list_services", size=100)["services"]),
    )


def _ensure_page(do: Caller, site_id: str, page: pages.Page) -> dict[str, Any]:
    page_row: dict[str, Any]
    page_row = do("create_page", projectId=site_id, title=page.title, slug=page.slug)["page"]
    return page_row


def make_leads(do: Caller, language: Language) -> None:
    """Create a form on the site, and submissions of some visitors."""
    shop = bakery.load(language)
    site = do("list_sites", search=shop.site)["projects"][0]["id"]
    forms = do("list_forms", projectId=site)["forms"]
    form = forms[0] if forms else do("create_form", **shop.form, projectId=site)["form"]
    products = {
        product["sku"]: product["id"] for product in do("list_products", size=100)["products"]
    }
    there = {lead["data"]["message"]: lead for lead in do("list_leads", size=500)["collections"]}
    for lead in shop.leads:
        lead_row = there.get(lead.message) or {"id": _submit_form(form["id"], lead, products)}
        if lead.status != "new":
            do("set_lead_status", id=lead_row["id"], status=lead.status)


def _submit_form(form_id: str, lead: bakery.Lead, products: dict[str, str]) -> str:
    """Submit the form as a visitor, and return the lead's id."""
    items = [{"productId": products[sku], "quantity": n} for sku, n in lead.items.items()]
    values = {
        "name": lead.name,
        "phone": lead.phone,
        "email": lead.email,
        "message": lead.message,
        "consent": True,
        "items": items,
    }
    submission = {
        "id": form_id,
        "values": values,
        "referrer": lead.referrer,
        "campaign": {"source": lead.source},
    }
    visitor = VisitorPrincipal(visitor="demo")
    reply = invoke(REGISTRY["submit_form"], visitor, lambda: submission, request_id="seed-demo")
    lead_id: str = json.loads(reply.body)["data"]["id"]
    return lead_id


def make_posts(do: Caller, language: Language) -> None:
    """Create posts on the blog of the platform, if the account is an ADMIN."""
    if not do.is_admin:
        return
    there = {post["slug"] for post in do("list_blog_posts", size=100)["posts"]}
    photos = _photos(do, language, "blog")
    for post in reversed(posts.load(language)):
        if post.slug in there:
            continue
        values = {name: value for name, value in post._asdict().items() if name != "image"}
        if post.image:
            values["coverImage"] = photos.file(f"{post.slug}.jpg", image(post.image))
        do("create_blog_post", **values | {"tags": list(post.tags)})


def make_agent(do: Caller, language: Language) -> None:
    """Create the bot, and credit its owner with money for its answers."""
    bot.make(do, language)
    if not call("get_balance", {"account": EMAIL})["entries"] and settings().demo_balance:
        money = {"kopecks": settings().demo_balance, "reason": "Demo balance"}
        call("credit", {"account": EMAIL, **money, "idempotencyKey": "demo-balance"})
    # The owner may switch SMS on, which go to ``/dev/sms``.
    for country, kopecks in SMS_PRICES.items():
        call("set_sms_price", {"country": country, "kopecks": kopecks})


def make_dialogs(do: Caller, language: Language) -> None:
    """Create dialogs of visitors with the bot, unless its owner has no money for answers."""
    if not call("get_balance", {"account": EMAIL})["available"]:
        return
    agent = do("list_agents")["agents"][0]["id"]
    there = do("list_agent_dialogs", agentId=agent)["total"]
    for number, questions in enumerate(bakery.load(language).dialogs[there:], there):
        session = None
        for question in questions:
            page = f"{settings().public_url}/"
            fields = {"message": question, "sessionId": session, "pageUrl": page}
            body = {"agentId": agent, "channel": "widget", **fields}
            request = HttpRequest(
                "POST",
                chat_route.PATH,
                {},
                body=json.dumps(body).encode(),
                client_ip=f"192.0.2.{number}",
            )
            # The first event contains the session.
            first_event = chat_stream.handle(request).whole_body().partition(b"\n")[0]
            session = json.loads(first_event.removeprefix(b"data: "))["sessionId"]


def make_services(do: Caller, language: Language) -> None:
    """Create services, the staff who provide them, their working hours, and holidays."""
    offer = school.load(language)
    kinds = index_by_name(do("list_categories", kind="service")["categories"])
    for name in offer.categories:
        if name not in kinds:
            kinds[name] = do("create_category", name=name, kind="service")["category"]
    photos = _photos(do, language, "services")
    there = index_by_name(do("list_services", size=100)["services"])
    for service in offer.services:
        if service.name not in there:
            photo = photos.file(f"{service.name}.jpg", image(service.image))
            there[service.name] = do(
                "create_service",
                name=service.name,
                categoryId=kinds[service.category]["id"],
                durationMin=service.minutes,
                price=service.price,
                description=service.description,
                tags=list(service.tags),
                images=[{"url": photo}],
                fixedStarts=service.dates is not None,
                **service.rules,
            )["service"]
    teachers = index_by_name(do("list_resources", size=100)["resources"])
    for teacher in offer.teachers:
        if teacher.name not in teachers:
            photo = photos.file(f"{teacher.name}.jpg", image(teacher.image))
            teachers[teacher.name] = do(
                "create_resource",
                name=teacher.name,
                description=teacher.description,
                capacity=teacher.capacity,
                photo={"url": photo},
                serviceIds=[there[name]["id"] for name in teacher.services if name in there],
            )["resource"]
            if teacher.own and teacher.own["service"] in there:
                own = {
                    "resourceId": teachers[teacher.name]["id"],
                    "price": teacher.own["price"],
                    "durationMin": teacher.own["minutes"],
                }
                service_id = there[teacher.own["service"]]["id"]
                do("update_service", id=service_id, resourceOverrides=[own])
        resource_id = teachers[teacher.name]["id"]
        if not do("list_availability", resourceId=resource_id)["rules"]:
            do("set_availability", resourceId=resource_id, rules=list(teacher.hours))
    _add_dates(do, [(there[each.name], each.dates) for each in offer.services if each.dates])
    if offer.holidays not in {time_off["reason"] for time_off in do("list_time_off")["timeOff"]}:
        year = clock.now().year + 1
        days = {"startAt": f"{year}-01-01", "endAt": f"{year}-01-03"}
        do("create_time_off", **days, reason=offer.holidays)


def _add_dates(do: Caller, wanted: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """Add the weekly dates of services that have none. The first is in the next eight days."""
    first_day = clock.now().date() + timedelta(days=2)
    for service, dates in wanted:
        if not do("list_starts", serviceId=service["id"])["starts"]:
            first = first_day + timedelta(days=(dates["weekday"] - first_day.weekday()) % 7)
            start = f"{first}T{dates['time']}"
            do("add_starts", serviceId=service["id"], startAt=start, weeks=dates["weeks"])


def make_bookings(do: Caller, language: Language) -> None:
    """Create bookings in the coming weeks for clients that have none."""
    offer = school.load(language)
    services = index_by_name(do("list_services", size=100)["services"])
    there = {
        booking_row["client"]["name"]: booking_row
        for booking_row in do("list_bookings", size=100)["bookings"]
    }
    for booking in offer.bookings:
        service = services.get(offer.services[booking.service].name)
        if service is None:
            continue
        then = [
            services[name]["id"]
            for each in booking.then
            if (name := offer.services[each].name) in services
        ]
        booking_row = there.get(booking.client) or _book_slot(do, service["id"], then, booking)
        if booking_row and booking_row["status"] != booking.status:
            do("set_booking_status", id=booking_row["id"], status=booking.status)


def _book_slot(
    do: Caller, service_id: str, then: list[str], booking: school.Booking
) -> dict[str, Any] | None:
    """Book a slot of a service, or of a visit, and return the first booking.

    Returns None without a free slot.
    """
    visit = {"serviceId": service_id, **({"andThen": then} if then else {})}
    today = clock.now().date()
    days = {"from": str(today), "to": str(today + timedelta(days=14))}
    slots = do("get_available_slots", **visit, **days, limit=booking.slot + 1)["slots"]
    if not slots:
        return None
    booking_row: dict[str, Any] = do(
        "create_booking",
        **visit,
        startAt=slots[-1]["startAt"],
        client={"name": booking.client, "phone": booking.phone},
        notes=booking.notes,
    )["booking"]
    return booking_row


def make_waiting(do: Caller, language: Language) -> None:
    """Let the client of the first booking wait for a time on a holiday, unless somebody waits."""
    offer = school.load(language)
    services = index_by_name(do("list_services", size=100)["services"])
    service, booking = services.get(offer.services[0].name), offer.bookings[0]
    if service is None or do("get_waiting_list")["waiting"]:
        return
    do(
        "create_waiting_entry",
        serviceId=service["id"],
        day=f"{clock.now().year + 1}-01-02",
        client={"name": booking.client, "phone": booking.phone},
    )


def make_staff(do: Caller, language: Language) -> None:
    """Create a member with the role *staff*, who sees the calendar of the first teacher."""
    teacher = school.load(language).teachers[0].name
    resource = index_by_name(do("list_resources", size=100)["resources"]).get(teacher)
    if resource is None or not do.password:  # An old demo has no password.
        return
    try:
        accounts.require_by_email(STAFF_EMAIL)
    except NotFoundError:
        account = {"email": STAFF_EMAIL, "password": do.password, "name": teacher}
        call("create_account", account)
    member = {"email": STAFF_EMAIL, "role": "staff", "resourceId": resource["id"]}
    call("add_member", {"workspaceId": do.workspace_id, **member})


STEPS = (
    make_files,
    make_categories,
    make_products,
    make_site,
    make_leads,
    make_services,
    make_bookings,
    busy_times.make_busy_times,
    make_waiting,
    make_staff,
    booking_page.switch_on,
    payments.take_payments,
    make_agent,
    bot.allow_actions,
    make_dialogs,
    show_brand,
    make_pages,
    show_products,
    make_posts,
    visits.make_visits,
    past_bookings.make_past_bookings,
)
"""The steps, one per kind of record. Each keeps existing records."""


def _run_steps(data: DataDir, key: str) -> None:
    """Run the steps that are not done yet."""
    steps = [step for step in STEPS if step.__name__ not in data.demo.get("steps", ())]
    if not steps:
        return
    do = Caller(key, password=data.demo.get("password", ""))
    language: Language = data.demo["language"]
    for step in steps:
        step(do, language)
        data.demo = {**data.demo, "steps": [*data.demo.get("steps", ()), step.__name__]}
    agents = do("list_agents")["agents"]
    slug = workspaces.get(do.workspace_id).slug
    if accounts.find_by_email(STAFF_EMAIL) is not None:
        data.demo = {**data.demo, "staffEmail": STAFF_EMAIL}
    data.demo = {**data.demo, "agentId": agents[0]["id"] if agents else "", "workspaceSlug": slug}


def _photos(do: Caller, language: Language, folder: str) -> Folder:
    names = bakery.load(language).files
    return Folder(do, None).folder(names["photos"]).folder(names[folder])
