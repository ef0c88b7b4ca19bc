"""Each constant that cuts a list is known, with the reason why nobody misses what it leaves out.

A new one needs a line here. What a user sees beyond it is the question to answer first.
"""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import chalicelib

ROOT = Path(chalicelib.__file__).parent
NAME = re.compile(r"_?[A-Z][A-Z0-9_]+")
FIRST = {"islice", "latest"}
"""Functions with an argument that is the number of what they return."""
SIZES = {"size", "limit", "count"}
"""Keywords of such arguments."""
CUTS = {
    "the rest is counted again, with the same sum": """
        domains.reports.flows.counting.MAX_SEEN
    """,
    "the page says how many more the CSV file has": """
        transports.console.reports.SHOWN
    """,
    "a part of the work, after which the rest follows": """
        domains.imports.flows.runs.MAX_ITEMS
        domains.imports.flows.runs.ROWS_WITH_IMAGES
        domains.services.operations.name_upsert.SERVICES_AT_ONCE
        transports.web.product_feed.READ_SIZE
        domains.imports.rules.tables.text_tables.HEADER_ROWS
        domains.catalog.operations.categories.MOVES_PER_TRANSACTION
        domains.exports.flows.exporting.READERS
        domains.files.operations.deletion.RECORDS_PER_TRANSACTION
        domains.files.operations.folder_deletion.FILES_PER_TRANSACTION
        domains.files.operations.folder_deletion.FOLDERS_PER_TRANSACTION
        domains.files.operations.folder_deletion.MOVES_IN_DELETION
        domains.knowledge.flows.indexing.READERS
        domains.overview.flows.cancelling.BATCH
        domains.client_profiles.operations.erasure.CHATS_PER_UNIT
        domains.overview.flows.emptying.BATCH
        domains.overview.flows.emptying.CHATS
        domains.payments.flows.former_accounts.PAGE
        domains.sites.operations.deletion.RECORDS_PER_TRANSACTION
        domains.sites.operations.site_restoring.RECORDS_PER_TRANSACTION
        domains.webhooks.flows.due_deliveries.BATCH
        domains.webhooks.flows.due_deliveries.PARALLEL_REQUESTS
        engine.partition_rows.MAX_ROWS
        engine.reading.BATCH_GET_KEYS
    """,
    "the response has the total, or says that there are more": """
        domains.imports.operations.imports.PREVIEW_ROWS
        domains.imports.rules.tables.rows._SAMPLES
        domains.assistants.operations.booking.MAX_TIMES
        domains.identity.store.directory.MAX_BEGINNINGS
        domains.identity.store.directory.MAX_FOUND
        domains.booking_page.flows.slot_months.MAX_DATES
        domains.schedule.operations.dated_starts.MAX_CANCELLED
        domains.schedule.operations.dated_starts.MAX_IDS
        transports.console.services.dates.PAGE_SIZE
        domains.bookings.flows.slot_list.DEFAULT_MAX_SLOTS
        domains.chat.flows.chat_facts.MAX_HOURS
        domains.chat.flows.chat_facts.MAX_OFFERS
        domains.chat.flows.chat_facts.MAX_SEARCHED
        domains.chat.flows.read_tools.MAX_TIMES
        domains.client_profiles.operations.erasure.MAX_SHOWN
        domains.client_profiles.operations.profile.NEWEST
        domains.files.operations.deletion.MAX_LISTED_USES
        domains.files.operations.file_details.MAX_LISTED_USES
        domains.knowledge.operations.sources.MAX_FILES_LISTED
        domains.schedule.operations.closed_times.MAX_CHECKED
        domains.schedule.operations.closed_times.MAX_LISTED
        domains.schedule.operations.opening_hours.MAX_CHECKED
        domains.schedule.operations.opening_hours.MAX_LISTED
        domains.schedule.operations.time_off.MAX_AFFECTED
        domains.overview.flows.waiting.MAX_READ
        domains.overview.operations.overview.MAX_ROWS
        domains.overview.operations.overview.MAX_VISITS
        domains.sites.operations.deleted.MAX_SHOWN
        domains.sites.operations.imports.MAX_IMAGES
    """,
    "the list has pages, each with a link to the next one": """
        transports.web.product_feed.PAGE_SIZE
        transports.web.product_pages.PAGE_SIZE
    """,
    "the list has pages, with its total": """
        domains.booking_page.operations.page_settings.SIZE
        domains.chat.operations.dialog_details.MESSAGES_PER_PAGE
        transports.console.settings.audit.ENTRIES
        transports.console.settings.balance.ENTRIES
        transports.console.settings.keys.FAILED_CALLS
        transports.console.many.ROWS
        transports.console.settings.members.SIZE
        transports.console.sites.sites.SITES_PER_PAGE
        transports.web.blog.POSTS_PER_PAGE
    """,
    "the page or the text says how many there are, or that these are the latest or the first": """
        transports.console.bookings.new_booking.MAX_SERVICES
        transports.console.bookings.times.MAX_NAMES
        domains.schedule.flows.calendar_feeds.MAX_EVENTS
        domains.imports.rules.tables.client_table.MAX_TAGS
        transports.console.content.imports.MAX_CONTROLS
        domains.sites.operations.imports.MAX_FORMS
        domains.sites.flows.page_objects.MAX_NAMED
        domains.imports.rules.tables.shop_products.MAX_IMAGES
        domains.chat.flows.named_records.MAX_NAMES
        domains.chat.flows.named_records.MAX_SERVICES
        domains.chat.operations.replies.MAX_REPLIES
        domains.chat.operations.stats.SHOWN_PAGES
        domains.identity.operations.audit_log.NAMED_RESOURCES
        domains.leads.flows.submissions.MAX_NAMED
        domains.leads.flows.submissions.MAX_NAMED_CHARACTERS
        domains.overview.operations.stats.MAX_ROWS
        domains.webhooks.operations.deliveries.LISTED
        gateways.llm.facts.MAX_HOURS
        gateways.llm.facts.MAX_OFFERS
        transports.console.bookings.new_booking.MAX_CLIENTS
        transports.console.choices.MAX_CHOICES
        transports.console.clients.MAX_ORDERS
        transports.console.clients.MAX_SHOWN
        transports.console.services.upcoming_bookings.MAX_BOOKINGS
        transports.console.settings.apps.MAX_INACTIVE_SHOWN
        transports.console.settings.balance.MAX_SERIES
        transports.console.settings.keys.MAX_INACTIVE_SHOWN
        transports.tools.MAX_UNKNOWN_NAMES
        transports.web.discovery.MAX_OFFERS
        transports.web.docs.MAX_RESULTS
        transports.web.page_sections.MAX_RECORDS
    """,
    "a heading of the latest or the next ones, with a way to all": """
        domains.schedule.flows.absence_plan.MAX_COLLEAGUES
        transports.console.bookings.new_booking.MAX_KNOWN
        transports.console.bookings.times.NEXT_DAYS
        domains.bookings.flows.placement.ALTERNATIVES
        domains.overview.operations.first_steps.MAX_ROWS
        transports.console.services.services.TIMES_SHOWN
        transports.web.blog.FEED_POSTS
        transports.web.blog.OTHER_POSTS
    """,
    "more of them are refused, so none is left out": """
        domains.imports.rules.tables.text_tables.MAX_COLUMNS
        domains.client_profiles.operations.client_export.MAX_EXPORTED
        domains.exports.store.exports.MAX_KEPT
        domains.leads.rules.form_fields._MAX_OTHERS
        domains.leads.rules.form_fields._MAX_OTHER_NAME
        domains.webhooks.store.webhooks.MAX_WEBHOOKS
        transports.console.bookings.new_booking.MAX_IN_VISIT
        transports.console.forms.editor.MAX_FIELDS
        transports.console.sites.sections.MAX_SECTIONS
    """,
    "what fits into the input or the output of a model": """
        domains.assistants.operations.directory.MAX_SERVICES
        domains.assistants.operations.ordering.MAX_PASSAGES
        domains.chat.flows.chat_facts.MAX_PASSAGES
        domains.chat.flows.chat_history.MAX_TURNS
        domains.chat.flows.chat_prompt.MAX_TURNS
        domains.chat.flows.read_tools.MAX_OFFERED
        domains.knowledge.flows.index_file.MAX_QUESTION_STEMS
        gateways.llm.demo.MAX_LINES
        gateways.llm.demo.MAX_TAGS
        gateways.llm.drafts.MAX_CATEGORIES
        gateways.llm.facts.MAX_SEARCH_WORDS
    """,
    "the oldest or the least important are given up, as the constant's docstring says": """
        domains.booking_page.flows.directory_listing.MAX_SERVICES
        domains.identity.store.directory.MAX_ENTRIES
        domains.notifications.flows.book_again.MOST_READ
        domains.schedule.flows.absence_plan.MAX_READ
        transports.console.bookings.new_booking.MAX_VISITS
        transports.console.sites.starters.MAX_SERVICES
        transports.web.composed_pages.MAX_LINKS
        domains.clients.operations.contact_upsert.MAX_TAGS
        domains.imports.rules.tables.product_table._SHOWN_HEADERS
        domains.knowledge.flows.indexing.MAX_PAGES
        domains.chat.store.proposals.MAX_READ
        engine.audit.MAX_RESOURCES
        domains.clients.store.contact_lookups.MAX_NAMED
        domains.files.store.files.MAX_FILES_PER_TEXT
        domains.identity.flows.devices.MAX_ACCOUNTS
        domains.identity.flows.sign_in_proofs.MAX_ACCOUNTS
        domains.identity.rules.token_pairs.MAX_KEPT
        domains.leads.rules.form_fields._MAX_LABELS
        domains.sites.operations.page_versions.MAX_FILES_PER_TEXT
        domains.sites.store.pages.MAX_FORMER_SLUGS
        domains.booking_page.flows.open_page.MAX_FOUND
        domains.sites.store.sites.MAX_FOUND
        engine.listing.index_entries.MOST_WORDS
        gateways.public_http.MAX_ADDRESSES
        transports.web.blog.SITEMAP_URLS
    """,
    "characters, bytes or digits": """
        domains.bookings.rules.booking_tokens.SHORT_LENGTH
        domains.clients.flows.advertising_links._SIGNATURE_BYTES
        domains.waiting.flows.waiting_links._SIGNATURE_BYTES
        domains.schedule.rules.calendar_text.MAX_LINE
        transports.web.booking_page.MAX_VERSION
        domains.clients.operations.contact_upsert.MAX_NOTES
        domains.imports.rules.tables.client_table.MAX_NAME
        domains.imports.rules.tables.client_table.MAX_NOTES
        domains.imports.rules.tables.client_table.MAX_TAG
        domains.imports.rules.tables.product_table.MAX_CODE
        domains.imports.rules.tables.birthdays._SHOWN
        domains.imports.rules.tables.rows._SAMPLE_CHARACTERS
        domains.sites.operations.imports._SHOWN
        domains.files.rules.data_urls._START
        domains.imports.rules.reasons._SHOWN
        domains.imports.rules.tables.shop_products._SHOWN
        domains.imports.rules.tables.shop_products.MAX_CODE
        domains.imports.rules.tables.file_kinds._START
        domains.booking_page.operations.page.MAX_DESCRIPTION
        domains.bookings.rules.booking_tokens._ID_BYTES
        domains.bookings.rules.booking_tokens._SIGNATURE_BYTES
        domains.catalog.operations.order.MAX_NAME
        domains.chat.rules.links.MAX_LINK
        domains.clients.flows.contacts.MAX_NAME
        domains.files.flows.photos.MAX_QUERY
        domains.files.flows.rehosting.ID_LENGTH
        domains.files.flows.rehosting.MAX_SHOWN
        domains.files.rules.file_types._SNIFFED_BYTES
        domains.files.rules.stored_files._MAX_STEM
        domains.identity.flows.devices._LENGTH
        domains.identity.store.directory._BEGINNING
        domains.identity.flows.invitation_links._SIGNATURE_LENGTH
        domains.identity.operations.invitations.MAX_BROWSER
        domains.identity.operations.sessions.MAX_BROWSER
        domains.identity.operations.sign_ups.MAX_BROWSER
        domains.identity.rules.one_time_codes._RECOVERY_BYTES
        domains.identity.rules.one_time_codes._SECRET_BYTES
        domains.knowledge.rules.word_stems.LONGEST_WORD
        domains.leads.rules.form_fields._MAX_MADE_NAME
        domains.notifications.flows.unsubscribing._SIGNATURE_BYTES
        domains.notifications.flows.messenger_chats.MAX_CHOICES
        domains.notifications.rules.messenger_updates.MAX_NAME
        domains.payments.flows.merchant_pages.ID_LENGTH
        domains.payments.operations.merchants.SHOWN_CHARACTERS
        domains.sites.rules.page_html._MAX_TOKENS
        engine.listing.parallel_scan.DIGITS
        transports.api_docs.reference.MAX_SHOWN
        engine.metrics.MAX_VALUE_BYTES
        engine.visitors._HASH_CHARACTERS
        gateways.llm.drafts.MAX_ANSWER
        gateways.llm.drafts.MAX_FACT
        gateways.llm.facts.MAX_DESCRIPTION
        gateways.payments.yookassa.MAX_DESCRIPTION
        gateways.post.MAX_KEPT
        gateways.sealing._NONCE_BYTES
        gateways.max_messenger.MAX_TEXT
        gateways.telegram.MAX_TEXT
        transports.api_docs.search.MAX_QUERY
        transports.chat.chat_stream.MAX_CHAT_BODY_BYTES
        transports.console.bots.embed.MAX_QUESTION
        transports.console.bots.knowledge.MAX_QUERY
        transports.console.leads.LAST_DIGITS
        transports.console.leads.PREVIEW_CHARACTERS
        transports.console.sign_in.MAX_CODE
        transports.console.sign_in.MAX_COOKIE
        transports.console.sign_in.MAX_DEVICE
        transports.console.sign_in.MAX_LENGTH
        transports.oauth.register.MAX_PUBLIC_BODY_BYTES
        transports.tools.MAX_INSTRUCTIONS
        transports.tools._MAX_SHOWN_LENGTH
        transports.web.booking_page.MAX_KEY
        transports.web.booking_page.MAX_PUBLIC_BODY_BYTES
        transports.web.booking_page.MAX_TOKEN
        transports.web.confirm_booking_page.MAX_PUBLIC_BODY_BYTES
        transports.web.waiting_page.MAX_PUBLIC_BODY_BYTES
        transports.web.manage_booking_page.MAX_PUBLIC_BODY_BYTES
        transports.web.pay_booking_page.MAX_PUBLIC_BODY_BYTES
        transports.web.test_payment_page.MAX_PUBLIC_BODY_BYTES
    """,
}
KNOWN = {name: reason for reason, names in CUTS.items() for name in names.split()}


def parts_that_cut(tree: ast.AST) -> Iterator[ast.AST | None]:
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(slice=ast.Slice(lower, upper)):
                yield from (lower, upper)
            case ast.Call(func, args, keywords):
                yield from (keyword.value for keyword in keywords if keyword.arg in SIZES)
                called = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
                yield from args if called in FIRST else ()


def constants(source: str) -> set[str]:
    """Return the names of the constants with which a module cuts."""
    nodes = (
        inner for part in parts_that_cut(ast.parse(source)) if part for inner in ast.walk(part)
    )
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}
    return {name for name in names if NAME.fullmatch(name)}


def cuts() -> Iterator[str]:
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT)
        if place.parts[0] not in {"core", "lib"}:
            module = ".".join(place.with_suffix("").parts)
            for name in constants(path.read_text()):
                if type(getattr(import_module(f"chalicelib.{module}"), name, None)) is int:
                    yield f"{module}.{name}"


def test_each_constant_that_cuts_is_known() -> None:
    assert set(cuts()) == set(KNOWN)


def test_a_constant_that_cuts_is_found() -> None:
    source = "x[:MAX]; x[-LAST:]; islice(x, FEW); f(x, size=rules.SIZE); x[n]; f(limit=5); MOST + 1"
    assert constants(source) == {"MAX", "LAST", "FEW", "SIZE"}
