"""The console page that admits the AI assistants of visitors, and shows what they did."""

from collections.abc import Callable, Mapping

from chalicelib.core.settings import settings
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record, Switch, names_of
from chalicelib.transports.http import HttpResponse

Names = Callable[[ConsoleRequest], Mapping[str, str]]


def _choices(names: Names, none: str) -> Names:
    """Return a function that names the records to choose from, and the choice of no record."""
    return lambda request: {"": request.translate(none), **names(request)}


_FORMS = _choices(
    names_of("list_forms", list_name="forms", label_field="title", size=100), "no_form_chosen"
)
_BOTS = _choices(names_of("list_agents", list_name="agents"), "assistants_no_bot")
FORM = Form(
    Switch("isOn", "assistants_switch"),
    Field("orderFormId", "order_form", names=_FORMS),
    Field("knowledgeBotId", "assistants_bot", names=_BOTS),
)


def _find(request: ConsoleRequest) -> Record:
    return request.call("get_assistants")


def _page(request: ConsoleRequest, assistants: Record, state: State = STORED) -> HttpResponse:
    form = FORM.page_values(request, assistants, state)
    # The lists may lack the chosen record, which then has its id for a name.
    form_id, bot_id = form["typed"]["orderFormId"], form["typed"]["knowledgeBotId"]
    forms, bots = ({record_id: record_id} for record_id in (form_id, bot_id))
    return request.page(
        "assistants",
        shown=assistants,
        forms=(forms | dict(_FORMS(request))).items(),
        bots=(bots | dict(_BOTS(request))).items(),
        url=f"{settings().public_url}{open_page.PATH}/{assistants['slug']}/mcp",
        **form,
    )


show, save = FORM.editing(_find, "admit_assistants", _page, "assistants_saved", key="")
