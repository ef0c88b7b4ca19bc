"""The pages of the console by path. Their modules are imported with the first request."""

from chalicelib.transports.console.page import Page, View
from chalicelib.transports.lazy import Lazy

PREFIX = "/console"
INVITATION = f"{PREFIX}/invitations/{{invitation}}"
PROOF = f"{PREFIX}/account/proof/{{proof}}"
FORGOT_PASSWORD = f"{PREFIX}/forgot-password"
RESET_PASSWORD = f"{PREFIX}/reset-password/{{reset}}"
CONSENT = "/oauth/authorize"
"""The page on which a person connects an AI client. It uses the console's sessions."""
WORKSPACE = f"{PREFIX}/w/{{workspace}}"
SITE = f"{WORKSPACE}/sites/{{site}}"
BOT = f"{WORKSPACE}/bots/{{id}}"
FORM = f"{WORKSPACE}/forms/{{form}}"
BOOKING = f"{WORKSPACE}/bookings/{{booking}}"
CLIENT = f"{WORKSPACE}/clients/{{client}}"
WEBHOOK = f"{WORKSPACE}/webhooks/{{webhook}}"
SERVICE = f"{WORKSPACE}/services/{{service}}"
STAFF = f"{WORKSPACE}/staff/{{staff}}"
MAX_TEXT_FORM_BYTES = 640_000  # A form has up to three bytes for each byte of a long text.
MAX_SIGN_IN_BYTES = 3 * MAX_TEXT_FORM_BYTES  # It may carry another form, encoded once more.


def _view(target: str) -> View:
    """Return a function of a module of this package, imported at the first call."""
    return Lazy(f"{__package__}.{target}")


ROUTES = {
    PREFIX: Page(get=_view("account:home")),
    f"{PREFIX}/sign-in": Page(
        get=_view("account:sign_in_page"),
        post=_view("account:sign_in"),
        guest=True,
        max_bytes=MAX_SIGN_IN_BYTES,
    ),
    f"{PREFIX}/sign-out": Page(post=_view("account:sign_out"), signs_out=True),
    INVITATION: Page(
        get=_view("settings.invitations:show"),
        post=_view("settings.invitations:accept"),
        guest=True,
    ),
    FORGOT_PASSWORD: Page(get=_view("passwords:index"), post=_view("passwords:send"), guest=True),
    RESET_PASSWORD: Page(get=_view("passwords:show"), post=_view("passwords:save"), guest=True),
    f"{PREFIX}/account": Page(get=_view("account:show"), post=_view("account:save")),
    PROOF: Page(get=_view("account:show"), post=_view("account:prove")),
    f"{PREFIX}/account/password": Page(post=_view("account:change_password")),
    f"{PREFIX}/account/sessions": Page(post=_view("account:end_session")),
    f"{PREFIX}/account/sign-out": Page(post=_view("account:sign_out_everywhere"), signs_out=True),
    WORKSPACE: Page(get=_view("overview:show"), shows="get_overview"),
    f"{WORKSPACE}/leads": Page(
        get=_view("leads:index"),
        post=_view("leads:export"),
        shows="list_leads",
        posts="export_leads",
    ),
    f"{WORKSPACE}/leads/{{lead}}": Page(
        get=_view("leads:show"),
        post=_view("leads:save"),
        shows="get_lead_details",
        posts="update_lead",
    ),
    f"{WORKSPACE}/dialogs": Page(get=_view("dialogs:index"), shows="list_dialogs"),
    f"{WORKSPACE}/dialogs/{{dialog}}": Page(get=_view("dialogs:show"), shows="get_dialog_details"),
    f"{WORKSPACE}/clients": Page(get=_view("clients:index"), shows="list_clients"),
    CLIENT: Page(
        get=_view("clients:show"),
        post=_view("clients:save"),
        shows="get_client",
        posts="update_client",
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{CLIENT}/erase": Page(
        get=_view("clients:confirm_erase"),
        post=_view("clients:erase"),
        shows="erase_client",
        posts="erase_client",
    ),
    f"{WORKSPACE}/keys": Page(
        get=_view("settings.keys:index"),
        post=_view("settings.keys:create"),
        shows="list_keys",
        posts="create_key",
    ),
    f"{WORKSPACE}/keys/new": Page(get=_view("settings.keys:new_key_page"), shows="create_key"),
    f"{WORKSPACE}/keys/{{id}}/revoke": Page(
        get=_view("settings.keys:confirm_revoke"),
        post=_view("settings.keys:revoke"),
        shows="revoke_key",
        posts="revoke_key",
    ),
    f"{WORKSPACE}/apps": Page(get=_view("settings.apps:index"), shows="list_connections"),
    f"{WORKSPACE}/apps/{{connection}}/disconnect": Page(
        get=_view("settings.apps:confirm_disconnect"),
        post=_view("settings.apps:disconnect"),
        shows="end_connection",
        posts="end_connection",
    ),
    f"{WORKSPACE}/sites": Page(
        get=_view("sites.sites:index"),
        post=_view("sites.making:create_site"),
        shows="list_sites",
        posts="create_site",
    ),
    f"{WORKSPACE}/sites/new": Page(get=_view("sites.making:new_site_page"), shows="create_site"),
    f"{WORKSPACE}/deleted-sites/{{deleted_site}}": Page(
        post=_view("sites.sites:restore_site"), posts="restore_site"
    ),
    SITE: Page(
        get=_view("sites.sites:show"),
        post=_view("sites.sites:save"),
        shows="list_pages",
        posts="update_site",
    ),
    f"{SITE}/delete": Page(
        get=_view("sites.making:confirm_delete_site"),
        post=_view("sites.making:delete_site"),
        shows="delete_site",
        posts="delete_site",
    ),
    f"{SITE}/pages": Page(
        get=_view("sites.making:new_page_page"),
        post=_view("sites.making:create_page"),
        shows="create_page",
        posts="create_page",
    ),
    f"{SITE}/deleted-pages/{{deleted_page}}": Page(
        post=_view("sites.sites:restore_page"), posts="restore_page"
    ),
    f"{SITE}/pages/{{page}}": Page(get=_view("sites.sites:versions"), shows="list_page_versions"),
    f"{SITE}/pages/{{page}}/html": Page(
        get=_view("sites.page_editor:show"),
        post=_view("sites.page_editor:save"),
        shows="save_page_html",
        posts="save_page_html",
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{SITE}/pages/{{page}}/delete": Page(
        get=_view("sites.making:confirm_delete_page"),
        post=_view("sites.making:delete_page"),
        shows="delete_page",
        posts="delete_page",
    ),
    f"{SITE}/pages/{{page}}/{{version}}": Page(
        get=_view("sites.sites:compare"),
        post=_view("sites.sites:restore_version"),
        shows="get_page_version",
        posts="restore_page_version",
    ),
    f"{WORKSPACE}/bots": Page(
        get=_view("bots.bots:index"),
        post=_view("bots.settings:create"),
        shows="list_held_back_bots",
        posts="create_agent",
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{WORKSPACE}/bots/new": Page(get=_view("bots.settings:new_bot_page"), shows="create_agent"),
    BOT: Page(get=_view("bots.bots:show"), shows="get_agent"),
    f"{BOT}/settings": Page(
        get=_view("bots.settings:show"),
        post=_view("bots.settings:save"),
        shows="update_agent",
        posts="update_agent",
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{BOT}/keys": Page(
        get=_view("bots.bots:keys"),
        post=_view("bots.bots:create_key"),
        shows="list_bot_keys",
        posts="create_bot_key",
    ),
    f"{BOT}/keys/{{key}}/delete": Page(
        get=_view("bots.bots:confirm_delete_key"),
        post=_view("bots.bots:delete_key"),
        shows="delete_bot_key",
        posts="delete_bot_key",
    ),
    f"{BOT}/limits": Page(
        get=_view("bots.bots:limits"),
        post=_view("bots.bots:set_limits"),
        shows="get_bot_limits",
        posts="set_bot_limits",
    ),
    f"{BOT}/capabilities": Page(
        get=_view("bots.capabilities:show"),
        post=_view("bots.capabilities:save"),
        shows="get_agent",
        posts="update_agent",
    ),
    f"{BOT}/knowledge": Page(
        get=_view("bots.knowledge:index"),
        post=_view("bots.knowledge:add"),
        shows="list_knowledge",
        posts="add_knowledge",
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{BOT}/knowledge/{{source}}": Page(
        get=_view("bots.knowledge:confirm_delete"),
        post=_view("bots.knowledge:delete"),
        shows="delete_knowledge",
        posts="delete_knowledge",
    ),
    f"{BOT}/chat": Page(get=_view("bots.bots:chat"), shows="get_agent"),
    f"{WORKSPACE}/booking-page": Page(
        get=_view("bookings.booking_page:show"),
        post=_view("bookings.booking_page:save"),
        shows="get_booking_page",
        posts="set_booking_page",
    ),
    f"{BOT}/embed": Page(
        get=_view("bots.embed:show"),
        post=_view("bots.embed:place"),
        shows="get_agent",
        posts="save_page_html",
    ),
    f"{WORKSPACE}/forms": Page(
        get=_view("forms.forms:index"),
        post=_view("forms.forms:create"),
        shows="list_forms",
        posts="create_form",
    ),
    f"{WORKSPACE}/forms/new": Page(get=_view("forms.forms:new_form_page"), shows="create_form"),
    FORM: Page(
        get=_view("forms.editor:show"),
        post=_view("forms.editor:save"),
        shows="get_form",
        posts="update_form",
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{FORM}/embed": Page(
        get=_view("forms.forms:embed"),
        post=_view("forms.forms:place"),
        shows="get_form",
        posts="save_page_html",
    ),
    f"{FORM}/delete": Page(
        get=_view("forms.forms:confirm_delete"),
        post=_view("forms.forms:delete"),
        shows="delete_form",
        posts="delete_form",
    ),
    f"{WORKSPACE}/services": Page(
        get=_view("services.services:index"),
        post=_view("services.services:create"),
        shows="list_services",
        posts="create_service",
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{WORKSPACE}/services/new": Page(
        get=_view("services.services:new_service_page"), shows="create_service"
    ),
    SERVICE: Page(
        get=_view("services.services:show"),
        post=_view("services.services:save"),
        shows="get_service",
        posts="update_service",
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{SERVICE}/delete": Page(
        get=_view("services.services:confirm_delete"),
        post=_view("services.services:delete"),
        shows="delete_service",
        posts="delete_service",
    ),
    f"{WORKSPACE}/staff": Page(
        get=_view("services.staff:index"),
        post=_view("services.staff:create"),
        shows="list_resources",
        posts="create_resource",
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{WORKSPACE}/staff/new": Page(
        get=_view("services.staff:new_member_page"), shows="create_resource"
    ),
    STAFF: Page(
        get=_view("services.staff:show"),
        post=_view("services.staff:save"),
        shows="get_resource",
        posts="update_resource",
        max_bytes=MAX_TEXT_FORM_BYTES,
    ),
    f"{STAFF}/delete": Page(
        get=_view("services.staff:confirm_delete"),
        post=_view("services.staff:delete"),
        shows="delete_resource",
        posts="delete_resource",
    ),
    f"{STAFF}/hours": Page(
        get=_view("services.hours:show"),
        post=_view("services.hours:save"),
        shows="list_availability",
        posts="set_availability",
    ),
    f"{STAFF}/time-off": Page(
        get=_view("services.time_off:show"),
        post=_view("services.time_off:save"),
        shows="list_time_off",
        posts="create_time_off",
    ),
    f"{WORKSPACE}/closed-days": Page(
        get=_view("services.time_off:show_closed_days"),
        post=_view("services.time_off:save_closed_days"),
        shows="list_time_off",
        posts="create_time_off",
    ),
    f"{WORKSPACE}/webhooks": Page(
        get=_view("settings.webhooks:index"),
        post=_view("settings.webhooks:create"),
        shows="list_webhooks",
        posts="create_webhook",
    ),
    f"{WORKSPACE}/webhooks/new": Page(
        get=_view("settings.webhooks:new_webhook_page"), shows="create_webhook"
    ),
    WEBHOOK: Page(
        get=_view("settings.webhooks:show"),
        post=_view("settings.webhooks:save"),
        shows="list_webhook_deliveries",
        posts="update_webhook",
    ),
    f"{WEBHOOK}/status": Page(post=_view("settings.webhooks:set_status"), posts="update_webhook"),
    f"{WEBHOOK}/test": Page(post=_view("settings.webhooks:send_test"), posts="send_test_event"),
    f"{WEBHOOK}/deliveries": Page(
        post=_view("settings.webhooks:send_again"), posts="resend_webhook_delivery"
    ),
    f"{WEBHOOK}/secret": Page(
        get=_view("settings.webhooks:confirm_replace_secret"),
        post=_view("settings.webhooks:replace_secret"),
        shows="rotate_webhook_secret",
        posts="rotate_webhook_secret",
    ),
    f"{WEBHOOK}/delete": Page(
        get=_view("settings.webhooks:confirm_delete"),
        post=_view("settings.webhooks:delete"),
        shows="delete_webhook",
        posts="delete_webhook",
    ),
    f"{WORKSPACE}/bookings": Page(get=_view("bookings.calendar:index"), shows="get_staff_calendar"),
    f"{WORKSPACE}/bookings/new": Page(
        get=_view("bookings.new_booking:new"),
        post=_view("bookings.new_booking:create"),
        shows="create_booking",
        posts="create_booking",
    ),
    BOOKING: Page(
        get=_view("bookings.booking:show"),
        post=_view("bookings.booking:change"),
        shows="get_booking",
        posts="set_booking_status",
    ),
    f"{WORKSPACE}/balance": Page(get=_view("settings.balance:show"), shows="get_statement"),
    f"{WORKSPACE}/audit": Page(get=_view("settings.audit:show"), shows="list_audit_log"),
    f"{WORKSPACE}/notifications": Page(
        get=_view("settings.notifications:show"),
        post=_view("settings.notifications:save"),
        shows="get_notifications",
        posts="set_notifications",
    ),
    f"{WORKSPACE}/settings": Page(
        get=_view("settings.workspace:show"),
        post=_view("settings.workspace:save"),
        shows="get_workspace",
        posts="set_workspace",
    ),
    f"{WORKSPACE}/members": Page(
        get=_view("settings.members:index"),
        post=_view("settings.members:invite"),
        shows="list_members",
        posts="invite_member",
    ),
    f"{WORKSPACE}/members/{{member}}": Page(
        get=_view("settings.members:show"),
        post=_view("settings.members:change"),
        shows="remove_member",
        posts="remove_member",
    ),
}
