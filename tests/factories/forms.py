"""Forms, and the clients who submit them."""

from typing import Any

from tests.conftest import Api
from tests.factories.examples import FORM


def new_form(api: Api, **fields: Any) -> str:
    """Create a form, and return its id."""
    form_id: str = api.post("/api/forms/create", FORM | fields)["form"]["id"]
    return form_id


def client_of(api: Api, lead_id: str) -> Any:
    """Return the client of a lead."""
    lead = api.get(f"/api/forms/collection/{lead_id}")["lead"]
    return api.get(f"/api/clients/{lead['clientId']}")["client"]
