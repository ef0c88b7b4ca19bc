"""The console page that admits the AI assistants of visitors, and shows what they did."""

from chalicelib.core.settings import settings
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.transports.console.choices import FORMS
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record, Switch, names_of
from chalicelib.transports.http import HttpResponse

_BOTS = names_of("list_agents", list_name="agents")
FORM = Form(
    Switch("isOn", "assistants_switch"),
    Switch("isListed", "assistants_listed"),
    Field("orderFormId", "order_form", names=FORMS.names),
    Field("knowledgeBotId", "assistants_bot", names=_BOTS),
    changes="admit_assistants",
)


def _find(request: ConsoleRequest) -> Record:
    return request.call("get_assistants")


def _page(request: ConsoleRequest, assistants: Record, state: State = STORED) -> HttpResponse:
    form = FORM.page_values(request, assistants, state)
    # A chosen record may be deleted, and then has its id for a name.
    form_id, bot_id = form["typed"]["orderFormId"], form["typed"]["knowledgeBotId"]
    forms = FORMS.offer(request, "orderFormId", [form_id])
    form_names = {form_id: form_id, "": request.translate("no_form_chosen"), **forms.names}
    bot_names = {bot_id: bot_id, "": request.translate("assistants_no_bot"), **_BOTS(request)}
    return request.page(
        "assistants",
        shown=assistants,
        forms=forms,
        form_names=form_names.items(),
        bots=bot_names.items(),
        url=f"{settings().public_url}{open_page.PATH}/{assistants['slug']}/mcp",
        **form,
    )


show, save = FORM.editing(_find, _page, "assistants_saved", key="")
