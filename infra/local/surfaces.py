"""Write docs/surfaces.md: which surface offers each operation, and why another does not."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import get_args

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from chalicelib.core.wire.schema import Wire
from infra.local import document_tables

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = document_tables.DOCS / "surfaces.md"
TRANSPORTS = ROOT / "chalicelib" / "transports"
NAME = "surfaces"
SURFACES = ("key", "tool", "console", "visitor", "operator")

REASONS = {
    "money": "Keys reach no balances, payments, cards or keys. This is a rule of the service.",
    "person": "It concerns a person's own account, session, membership or messages.",
    "access": "It gives people or programs access to the workspace, or takes it from them.",
    "drafts": "Programs publish at once. People look at a draft before their visitors do.",
    "assembled": "It joins for a page of the console what keys do with several operations.",
    "by hand": "Members do it in the console. Keys have no route for it yet.",
    "programs": "Programs and AI clients do it. The console has no page for it yet.",
    "visitor": "Pages of sites, bots and the booking page call it for their visitors.",
    "published": "Visitors see what pages and bots publish, and what they themselves have sent.",
    "platform": "It changes the platform or somebody else's account.",
    "tools": "The specification of the service fixes the list of tools. They do not list externalId"
    " and metadata either, because models read every argument of every tool.",
    "members": "Operators help with accounts, access, money, mail and imports. Members and their"
    " programs do the rest.",
}
"""What the table says instead of a surface. ``as name`` stands for another operation that does it
on that surface."""


def _each(names_by_reason: Mapping[str, str]) -> dict[str, str]:
    return {name: why for why, names in names_by_reason.items() for name in names.split()}


WITHOUT_ROUTE = _each(
    {
        "money": """
            check_merchant create_bot_key create_key delete_bot_key get_balance get_booking_money
            get_bot_limits get_former_merchant get_merchant get_money_report get_sms_terms
            get_spending get_statement get_top_up
            list_bot_keys list_errors_of_key list_former_merchants list_held_back_bots list_keys
            export_client list_payments note_visit_payment refund_payment remove_merchant_secret
            retry_refund
            revoke_key send_payment_link set_bot_limits set_closing_receipts set_merchant
            start_top_up update_key""",
        "person": """
            accept_invitation change_password end_second_factor end_session forget_browsers
            get_account get_invitation get_notifications get_telegram leave_workspace link_telegram
            list_sessions prepare_second_factor prove_email reply_to_visitor request_proof
            set_notifications set_second_factor set_sign_in_factor sign_out_everywhere
            unlink_telegram update_account""",
        "access": """
            add_workspace admit_assistants close_workspace create_test_workspace end_connection
            reopen_workspace wipe_test_workspace
            get_assistants grant_access invite_member link_member
            list_connections list_invitations list_members remove_member revoke_invitation
            set_member_role widen_connection""",
        "assembled": """
            dismiss_first_steps get_dialog_details get_first_steps get_lead_details get_overview
            get_page_version
             get_staff_calendar list_bookings_at_closed_times list_client_chats list_outbox
             list_own_services list_page_savers list_readable_files
            list_unbookable_services upload_privately""",
        "drafts": """
            discard_page_draft get_page_draft list_page_drafts publish_page save_page_draft""",
        "as list_agent_dialogs": "list_dialogs",
        "as list_leads": "export_leads",
        "as list_clients": "export_clients",
        "by hand": """
            list_deleted_pages list_deleted_sites list_exports send_test_event
            unlink_client_chat""",
    }
)
"""Why members have an operation that keys do not have."""

WITHOUT_PAGE = _each(
    {
        "as get_dialog_details": "get_agent_dialog",
        "as list_dialogs": "list_agent_dialogs",
        "as list_errors_of_key": "list_key_errors",
        "as list_leads": "find_lead",
        "as get_lead_details": "get_lead",
        "as get_money_report": "get_report",
        "as get_overview": "crm_stats",
        "as upload_file": "complete_upload create_upload",
        "as save_page_html": "import_page_html",
        "person": "list_workspaces",
        "programs": """
            agent_widget_stats ai_fill_product ai_fill_service bulk_products
            create_folder delete_category delete_folder duplicate_product get_category get_site
            get_site_stats list_folders
            lookup_barcode reorder_products search_card_images toggle_site_stats update_booking
            update_category update_folder upsert_clients upsert_products
            upsert_resources upsert_services""",
    }
)
"""Why keys have an operation that no page of the console calls."""

NOT_SHOWN = {
    "ClientChatUnlinked.wasLinked": "The page says the same in both cases.",
    "ClientFile.takenAt": "The person reads it in the file, which is the whole result.",
    "ClientFile.isCut": "As above.",
    "HookReceived.isKnown": "Payment providers read the status only.",
    "PasswordResetRequested.expiresInMinutes": "The page says the same for every address.",
    "SignUpRequested.expiresInHours": "As above.",
    "WorkspaceClosing.closedAt": "Pages of a closed workspace have it from the workspace.",
    "WorkspaceClosing.deletionAt": "As above.",
    "GrantCreated.connectionId": "The app gets a code, and the log names the connection.",
    "TelegramUnlinked.wasLinked": "The page says the same in both cases.",
}
"""Why a field of a result, which neither keys nor operators get, is on no page."""


@cache
def _page_sources() -> Mapping[Path, str]:
    suffixes = (".py", ".html", ".txt", ".js", ".po")
    paths = [path for path in TRANSPORTS.rglob("*") if path.suffix in suffixes]
    return {path: path.read_text() for path in paths}


@cache
def _names_called_by_pages() -> frozenset[str]:
    folders = (TRANSPORTS / "console", TRANSPORTS / "oauth")
    return frozenset(
        name
        for path, text in _page_sources().items()
        if any(path.is_relative_to(folder) for folder in folders)
        for name in re.findall(r'"(\w+)"', text)
    )


def offers(operation: Operation) -> dict[str, str]:
    """Return the surfaces that offer an operation, with its name there."""
    audience, name = operation.audience, f"`{operation.method} {operation.path}`"
    offered = {}
    if Audience.KEY in audience:
        offered["key"] = name
    if operation.tool:
        offered["tool"] = f"`{operation.tool}`"
    if Audience.SESSION in audience and operation.name in _names_called_by_pages():
        offered["console"] = "page"
    if Audience.PUBLIC in audience:
        offered["visitor"] = name if operation.path else "page"
    if Audience.OPERATOR in audience:
        offered["operator"] = "command"
    return offered


def reason(operation: Operation, surface: str) -> str | None:
    """Return why a surface does not offer an operation, or None for a gap without a reason."""
    offered = offers(operation).keys()
    if not offered & {"key", "console"}:
        # Nobody works in a workspace with it, so no other surface can lack it.
        return "visitor" if "visitor" in offered else "platform" if offered else None
    rules = {
        "key": WITHOUT_ROUTE.get(operation.name),
        "tool": "tools" if "key" in offered else WITHOUT_ROUTE.get(operation.name),
        "console": WITHOUT_PAGE.get(operation.name),
        "visitor": "published",
        "operator": "members",
    }
    return rules[surface]


def fields_without_surface() -> Iterator[str]:
    """Yield ``Model.field`` for each field of a result that no surface shows.

    Keys and operators get whole results, and visitors those of routes.
    """
    whole = {Audience.KEY, Audience.OPERATOR}
    given_whole: set[type[Wire]] = set()
    for operation in REGISTRY:
        if operation.audience & whole or operation.path:
            given_whole |= _models(operation.output)
    shown = {f"{model.__name__}.{name}" for model in given_whole for name in model.model_fields}
    words = {
        word.rpartition("_")[2]
        for text in _page_sources().values()
        for word in re.findall(r"\w+", text)
    }
    for model in {model for operation in REGISTRY for model in _models(operation.output)}:
        if model in given_whole:
            continue
        for name, field in model.model_fields.items():
            inherited = any(f"{base.__name__}.{name}" in shown for base in model.__mro__)
            alias = field.alias or field.serialization_alias or name
            if not inherited and not {name, alias} & words:
                yield f"{model.__name__}.{alias}"


def _models(annotation: object) -> set[type[Wire]]:
    """Return the models in a result, each once: a folder has folders."""
    found: set[type[Wire]] = set()
    waiting = [annotation]
    while waiting:
        part = waiting.pop()
        if isinstance(part, type) and issubclass(part, Wire):
            if part not in found:
                found.add(part)
                waiting += [field.annotation for field in part.model_fields.values()]
        else:
            waiting += get_args(part)
    return found


def write() -> Path:
    """Write the table into the document, and return the document's path."""
    return document_tables.write(DOCUMENT, NAME, _lines())


def markdown() -> str:
    """Return the tables between their marks."""
    return document_tables.table(NAME, _lines())


def _lines() -> Iterator[str]:
    yield from _reasons()
    yield ""
    yield from _rows()


def _reasons() -> Iterator[str]:
    yield "| reason | meaning |"
    yield "|---|---|"
    for name, meaning in REASONS.items():
        yield f"| {name} | {meaning} |"


def _rows() -> Iterator[str]:
    yield f"| operation | {' | '.join(SURFACES)} |"
    yield f"|---|{'---|' * len(SURFACES)}"
    for operation in REGISTRY:
        offered = offers(operation)
        cells = [
            offered.get(surface) or f"no: {_shown(operation, surface)}" for surface in SURFACES
        ]
        yield f"| `{operation.name}` | {' | '.join(cells)} |"


def _shown(operation: Operation, surface: str) -> str:
    why = reason(operation, surface) or "?"
    _, is_other, other = why.partition("as ")
    return f"as `{other}`" if is_other else why
