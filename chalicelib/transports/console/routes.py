"""The pages of the console by path. Their modules are imported with the first request."""

from functools import partial
from typing import Any

from chalicelib.transports.console.page import MAX_UPLOAD_BYTES, Page, View
from chalicelib.transports.lazy import Lazy

PREFIX = "/console"
INVITATION = f"{PREFIX}/invitations/{{invitation}}"
PROOF = f"{PREFIX}/account/proof/{{proof}}"
FORGOT_PASSWORD = f"{PREFIX}/forgot-password"
RESET_PASSWORD = f"{PREFIX}/reset-password/{{reset}}"
SIGN_UP = f"{PREFIX}/sign-up"
SIGN_UP_LINK = f"{SIGN_UP}/{{sign_up}}"
CONSENT_TEXT = f"{PREFIX}/consents/{{consent}}"
# The page on which a user connects an AI client. It uses the console's sessions.
CONSENT = "/oauth/authorize"
WORKSPACE = f"{PREFIX}/w/{{workspace}}"
SITE = f"{WORKSPACE}/sites/{{site}}"
BOT = f"{WORKSPACE}/bots/{{id}}"
FORM = f"{WORKSPACE}/forms/{{form}}"
BOOKING = f"{WORKSPACE}/bookings/{{booking}}"
CLIENT = f"{WORKSPACE}/clients/{{client}}"
WEBHOOK = f"{WORKSPACE}/webhooks/{{webhook}}"
SERVICE = f"{WORKSPACE}/services/{{service}}"
STAFF = f"{WORKSPACE}/staff/{{staff}}"
LONG = 640_000  # A form has up to three bytes for each byte of a long text.
LONGEST = 3 * LONG  # It may carry another form, encoded once more.


def _view(module: str, *, name: str) -> View | None:
    other, _, function = name.rpartition(":")
    return Lazy(f"{__package__}.{other or module}:{function}") if name else None


def _page(
    module: str,
    get: str = "",
    post: str = "",
    shows: str = "",
    posts: str = "",
    **options: Any,  # noqa: ANN401  of a page
) -> Page:
    # The form is for ``shows``, or for ``posts``.
    posts = posts or (shows if post else "")
    return Page(_view(module, name=get), _view(module, name=post), shows, posts, **options)


_sign_in = partial(_page, "sign_in")
_account = partial(_page, "account")
_invitations = partial(_page, "settings.invitations")
_passwords = partial(_page, "passwords")
_sign_up = partial(_page, "sign_up")
_overview = partial(_page, "overview")
_leads = partial(_page, "leads")
_dialogs = partial(_page, "dialogs")
_clients = partial(_page, "clients")
_blog = partial(_page, "content.blog", admin=True, max_bytes=LONG)
_keys = partial(_page, "settings.keys")
_products = partial(_page, "content.products", max_bytes=MAX_UPLOAD_BYTES)
_imports = partial(_page, "content.imports", max_bytes=MAX_UPLOAD_BYTES)
_files = partial(_page, "content.files", max_bytes=MAX_UPLOAD_BYTES)
_apps = partial(_page, "settings.apps")
_sites = partial(_page, "sites.sites")
_making = partial(_page, "sites.making")
_page_editor = partial(_page, "sites.page_editor")
_drafts = partial(_page, "sites.drafts")
_sections = partial(_page, "sites.sections", max_bytes=MAX_UPLOAD_BYTES)
_bots = partial(_page, "bots.bots")
_bot_settings = partial(_page, "bots.settings")
_capabilities = partial(_page, "bots.capabilities")
_knowledge = partial(_page, "bots.knowledge")
_client_channels = partial(_page, "settings.client_channels")
_booking_page = partial(_page, "bookings.booking_page")
_assistants = partial(_page, "bookings.assistants")
_embed = partial(_page, "bots.embed")
_forms = partial(_page, "forms.forms")
_editor = partial(_page, "forms.editor")
_services = partial(_page, "services.services", max_bytes=MAX_UPLOAD_BYTES)
_staff = partial(_page, "services.staff", max_bytes=MAX_UPLOAD_BYTES)
_hours = partial(_page, "services.hours")
_time_off = partial(_page, "services.time_off")
_absence = partial(_page, "services.absence")
_webhooks = partial(_page, "settings.webhooks")
_calendar = partial(_page, "bookings.calendar")
_busy_times = partial(_page, "services.busy_times")
_calendar_link = partial(_page, "bookings.calendar_link")
_waiting_list = partial(_page, "bookings.waiting_list")
_new_booking = partial(_page, "bookings.new_booking")
_booking = partial(_page, "bookings.booking")
_payments = partial(_page, "bookings.payments")
_reports = partial(_page, "reports")
_payment_settings = partial(_page, "settings.payments")
_payment_terms = partial(_page, "services.payment_terms")
_dates = partial(_page, "services.dates")
_balance = partial(_page, "settings.balance")
_usage = partial(_page, "settings.usage")
_outbox = partial(_page, "settings.outbox")
_audit = partial(_page, "settings.audit")
_exports = partial(_page, "settings.exports")
_notifications = partial(_page, "settings.notifications")
_workspace = partial(_page, "settings.workspace")
_members = partial(_page, "settings.members")

# Pages by path within a workspace.
_OF_WORKSPACES = {
    "": _overview("show", shows="get_overview", instead="/bookings"),
    "/leads": _leads("index", "export", "list_leads", "export_leads"),
    "/leads/{lead}": _leads("show", "save", "get_lead_details", "update_lead"),
    "/dialogs": _dialogs("index", shows="list_dialogs"),
    "/dialogs/{dialog}": _dialogs("show", "reply", "get_dialog_details", "reply_to_visitor"),
    "/clients": _clients("index", "create", "list_clients", "create_client", max_bytes=LONG),
    "/clients/new": _clients("new_client_page", shows="create_client"),
    "/clients/{client}": _clients("show", "save", "get_client", "update_client", max_bytes=LONG),
    "/clients-table": _clients(post="export", posts="export_clients"),
    "/clients/{client}/advertising": _clients(
        *("show_advertising", "withdraw_advertising"),
        *("get_advertising_consents", "withdraw_advertising_consent"),
    ),
    "/clients/{client}/file": _clients("show_file", "download_file", "export_client"),
    "/clients/{client}/messenger": _clients(post="unlink_chat", posts="unlink_client_chat"),
    "/clients/{client}/erase": _clients("confirm_erase", "erase", "erase_client"),
    "/products": _products("index", "create", "list_products", "create_product"),
    "/products/new": _products("new_product_page", shows="create_product"),
    "/products/many": _products("many", "save_many", "update_product", "change_product_prices"),
    "/products/{product}": _products("show", "save", "get_product", "update_product"),
    "/products/{product}/delete": _products("confirm_delete", "delete", "delete_product"),
    "/products/import": _imports("index", "add", "import_products", "upload_privately"),
    "/products/import/{table}": _imports("preview", "start", "import_products"),
    "/services/import": _imports("index", "add", "import_services", "upload_privately"),
    "/services/import/{table}": _imports("preview", "start", "import_services"),
    "/clients/import": _imports("index", "add", "import_clients", "upload_privately"),
    "/clients/import/{table}": _imports("preview", "start", "import_clients"),
    "/imports/{import}": _imports("show", shows="get_import"),
    "/files": _files("index", "add", "list_files", "upload_file"),
    "/files/{file}": _files("show", "save", "get_file", "update_file"),
    "/files/{file}/replace": _files(post="replace", posts="replace_file"),
    "/files/{file}/delete": _files("confirm_delete", "delete", "delete_file"),
    "/keys": _keys("index", "create", "list_keys", "create_key"),
    "/keys/new": _keys("new_key_page", shows="create_key"),
    "/keys/{id}": _keys("show", "save", "list_errors_of_key", "update_key"),
    "/keys/{id}/revoke": _keys("confirm_revoke", "revoke", "revoke_key"),
    "/apps": _apps("index", shows="list_connections"),
    "/apps/{connection}": _apps("show", shows="list_errors_of_key"),
    "/apps/{connection}/allow": _apps("confirm_allow", "allow", "widen_connection"),
    "/apps/{connection}/disconnect": _apps("confirm_disconnect", "disconnect", "end_connection"),
    "/sites": _sites("index", "sites.making:create_site", "list_sites", "create_site"),
    "/sites/new": _making("new_site_page", shows="create_site"),
    "/deleted-sites/{deleted_site}": _sites(post="restore_site", posts="restore_site"),
    "/sites/{site}": _sites("show", "save", "list_pages", "update_site"),
    "/sites/{site}/domain": _sites(post="set_domain", posts="set_site_domain"),
    "/sites/{site}/delete": _making("confirm_delete_site", "delete_site", "delete_site"),
    "/sites/{site}/pages": _making("new_page_page", "create_page", "create_page"),
    "/sites/{site}/deleted-pages/{deleted_page}": _sites(post="restore_page", posts="restore_page"),
    "/sites/{site}/pages/{page}": _sites("versions", shows="list_page_versions"),
    "/sites/{site}/pages/{page}/html": _page_editor(
        "show", "save", "get_page_draft", "save_page_draft", max_bytes=LONG
    ),
    "/sites/{site}/pages/{page}/sections": _sections(
        "show", "save", "get_page_draft", "save_page_draft"
    ),
    "/sites/{site}/pages/{page}/draft": _drafts(
        "show", "publish", "get_page_draft", "publish_page"
    ),
    "/sites/{site}/pages/{page}/discard": _drafts(post="discard", posts="discard_page_draft"),
    "/sites/{site}/pages/{page}/delete": _making(
        "confirm_delete_page", "delete_page", "delete_page"
    ),
    "/sites/{site}/pages/{page}/undo": _sites(post="undo", posts="restore_page_version"),
    "/sites/{site}/pages/{page}/{version}": _sites(
        "compare", "restore_version", "get_page_version", "restore_page_version"
    ),
    "/bots": _bots(
        "index", "bots.settings:create", "list_held_back_bots", "create_agent", max_bytes=LONG
    ),
    "/bots/new": _bot_settings("new_bot_page", shows="create_agent"),
    "/bots/{id}": _bots("show", shows="get_agent"),
    "/bots/{id}/settings": _bot_settings("show", "save", "update_agent", max_bytes=LONG),
    "/bots/{id}/keys": _bots("keys", "create_key", "list_bot_keys", "create_bot_key"),
    "/bots/{id}/keys/{key}/delete": _bots("confirm_delete_key", "delete_key", "delete_bot_key"),
    "/bots/{id}/limits": _bots("limits", "set_limits", "get_bot_limits", "set_bot_limits"),
    "/bots/{id}/capabilities": _capabilities("show", "save", "get_agent", "update_agent"),
    "/bots/{id}/knowledge": _knowledge(
        "index", "add", "list_knowledge", "add_knowledge", max_bytes=MAX_UPLOAD_BYTES
    ),
    "/bots/{id}/knowledge/{source}": _knowledge("confirm_delete", "delete", "delete_knowledge"),
    "/bots/{id}/chat": _bots("chat", shows="get_agent"),
    "/booking-page": _booking_page("show", "save", "get_booking_page", "set_booking_page"),
    "/booking-page/assistants": _assistants("show", "save", "get_assistants", "admit_assistants"),
    "/bots/{id}/embed": _embed("show", "place", "get_agent", "save_page_html"),
    "/forms": _forms("index", "create", "list_forms", "create_form"),
    "/forms/new": _forms("new_form_page", shows="create_form"),
    "/forms/{form}": _editor("show", "save", "get_form", "update_form", max_bytes=LONG),
    "/forms/{form}/embed": _forms("embed", "place", "get_form", "save_page_html"),
    "/forms/{form}/delete": _forms("confirm_delete", "delete", "delete_form"),
    "/services": _services("index", "create", "list_services", "create_service"),
    "/services/new": _services("new_service_page", shows="create_service"),
    "/services/many": _services("many", "save_many", "update_service", "change_service_prices"),
    "/services/{service}": _services("show", "save", "get_service", "update_service"),
    "/services/{service}/payment": _payment_terms(
        "show", "save", "get_payment_terms", "set_payment_terms"
    ),
    "/services/{service}/dates": _dates("show", "save", "list_starts", "add_starts"),
    "/services/{service}/delete": _services("confirm_delete", "delete", "delete_service"),
    "/staff": _staff("index", "create", "list_resources", "create_resource"),
    "/staff/new": _staff("new_member_page", shows="create_resource"),
    "/staff/{staff}": _staff("show", "save", "get_resource", "update_resource"),
    "/staff/{staff}/delete": _staff("confirm_delete", "delete", "delete_resource"),
    "/staff/{staff}/hours": _hours("show", "save", "list_availability", "set_availability"),
    "/staff/{staff}/time-off": _time_off("show", "save", "list_time_off", "create_time_off"),
    "/staff/{staff}/absence": _absence("show", "arrange", "arrange_absence"),
    "/staff/{staff}/busy-times": _busy_times(
        "show", "save", "get_busy_calendars", "create_busy_calendar"
    ),
    "/staff/{staff}/calendar-link": _calendar_link(
        "show_of_staff", "change_of_staff", "get_calendar_links", "create_calendar_link"
    ),
    "/closed-days": _time_off(
        "show_closed_days", "save_closed_days", "list_time_off", "create_time_off"
    ),
    "/webhooks": _webhooks("index", "create", "list_webhooks", "create_webhook"),
    "/webhooks/new": _webhooks("new_webhook_page", shows="create_webhook"),
    "/webhooks/{webhook}": _webhooks("show", "save", "list_webhook_deliveries", "update_webhook"),
    "/webhooks/{webhook}/status": _webhooks(post="set_status", posts="update_webhook"),
    "/webhooks/{webhook}/test": _webhooks(post="send_test", posts="send_test_event"),
    "/webhooks/{webhook}/deliveries": _webhooks(post="send_again", posts="resend_webhook_delivery"),
    "/webhooks/{webhook}/secret": _webhooks(
        "confirm_replace_secret", "replace_secret", "rotate_webhook_secret"
    ),
    "/webhooks/{webhook}/delete": _webhooks("confirm_delete", "delete", "delete_webhook"),
    "/bookings": _calendar("index", shows="get_staff_calendar"),
    "/bookings/calendar-link": _calendar_link(
        "show_of_business", "change_of_business", "get_calendar_links", "create_calendar_link"
    ),
    "/bookings/waiting": _waiting_list(
        "show", "change", "get_waiting_list", "create_waiting_entry"
    ),
    "/bookings/new": _new_booking("new", "create", "create_booking"),
    "/bookings/{booking}": _booking("show", "change", "get_booking", "set_booking_status"),
    "/bookings/{booking}/payments/{payment}": _payments(
        "confirm_refund", "refund", "refund_payment"
    ),
    "/payments": _payments("index", shows="list_payments"),
    "/reports": _reports("show", shows="get_money_report"),
    "/payment-settings": _payment_settings("show", "save", "get_merchant", "set_merchant"),
    "/payment-settings/receipts": _payment_settings(
        post="choose_receipts", posts="set_closing_receipts"
    ),
    "/payment-settings/former/{merchant}": _payment_settings(
        "confirm_removal", "remove_secret", "get_former_merchant", "remove_merchant_secret"
    ),
    "/balance": _balance("show", "top_up", "get_statement", "start_top_up"),
    "/usage": _usage("show", shows="get_usage"),
    "/outbox": _outbox("show", shows="list_outbox"),
    "/audit": _audit("show", shows="list_audit_log"),
    "/exports": _exports("index", "start", "list_exports", "export_workspace"),
    "/exports/{export}": _exports("show", shows="get_export"),
    "/notifications": _notifications("show", "save", "get_notifications", "set_notifications"),
    "/client-channels": _client_channels(
        "show", "save", "get_client_channels", "set_client_channels"
    ),
    "/settings": _workspace("show", "save", "get_workspace", "set_workspace"),
    "/wipe": _workspace("confirm_wipe", "wipe", "wipe_test_workspace"),
    "/close": _workspace("confirm_close", "close", "close_workspace"),
    "/reopen": _workspace("confirm_reopen", "reopen", "reopen_workspace"),
    "/plan": _workspace("show_plan", shows="get_workspace"),
    "/first-steps": _overview(post="dismiss", posts="dismiss_first_steps"),
    "/members": _members("index", "invite", "list_members", "invite_member"),
    "/members/{member}": _members("show", "change", "remove_member"),
}
ROUTES = {
    PREFIX: _account("home"),
    f"{PREFIX}/sign-in": _sign_in("sign_in_page", "sign_in", guest=True, max_bytes=LONGEST),
    f"{PREFIX}/sign-out": _sign_in(post="sign_out", signs_out=True),
    INVITATION: _invitations("show", "accept", guest=True),
    FORGOT_PASSWORD: _passwords("index", "send", guest=True),
    RESET_PASSWORD: _passwords("show", "save", guest=True),
    SIGN_UP: _sign_up("index", "send", guest=True),
    SIGN_UP_LINK: _sign_up("show", "save", guest=True),
    CONSENT_TEXT: _sign_up("show_text", guest=True),
    f"{PREFIX}/account": _account("show", "save"),
    f"{PREFIX}/account/workspaces": _sign_up("new_workspace", "create_workspace"),
    PROOF: _account("show", "prove"),
    f"{PREFIX}/account/password": _account(post="change_password"),
    f"{PREFIX}/account/test-workspaces": _account("new_test_workspace", "create_test_workspace"),
    f"{PREFIX}/account/sessions": _account(post="end_session"),
    f"{PREFIX}/account/sign-out": _account(post="sign_out_everywhere", signs_out=True),
    f"{PREFIX}/blog": _blog("index", "create"),
    f"{PREFIX}/blog/new": _blog("new_post_page"),
    f"{PREFIX}/blog/{{post}}": _blog("show", "save"),
    f"{PREFIX}/blog/{{post}}/delete": _blog("confirm_delete", "delete"),
    **{WORKSPACE + path: page for path, page in _OF_WORKSPACES.items()},
}
