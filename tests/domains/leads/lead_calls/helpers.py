"""Paths of the lead calls, and a form whose submissions become leads."""

from typing import Any

from tests.conftest import Api
from tests.factories.examples import FORM

LIST, GET, FIND, ORDERS, STATUS, UPDATE = (
    f"/api/forms/collection{call}"
    for call in ("-list", "", "-find", "-orders", "-status", "-update")
)


def new_form(api: Api, **fields: Any) -> str:
    form_id: str = api.post("/api/forms/create", FORM | fields)["form"]["id"]
    return form_id
