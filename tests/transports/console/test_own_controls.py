"""A field of a form that names its control needs none in the template."""

import re

import pytest

from chalicelib.transports.console import clients, leads
from chalicelib.transports.console.content import products
from chalicelib.transports.console.form import Form
from chalicelib.transports.console.form_controls import Field
from chalicelib.transports.console.services import services, staff
from tests.conftest import Owner
from tests.factories.console import person
from tests.factories.examples import Things
from tests.transports.console.forms.helpers import text

PAGES = [
    pytest.param("clients/{client}", clients.FORM, False, id="client"),
    pytest.param("leads/{lead}", leads.FORM, False, id="lead"),
    pytest.param("products/{product}", products.FORM, False, id="product"),
    pytest.param("products/{product}", products.FORM, True, id="rarely of a product"),
    pytest.param("services/{service}", services.FORM, False, id="service"),
    pytest.param("services/{service}", services.FORM, True, id="rarely of a service"),
    pytest.param("staff/{resource}", staff.FORM, False, id="resource"),
]


@pytest.mark.parametrize(("path", "form", "is_rare"), PAGES)
def test_a_page_draws_the_control_that_a_field_names(
    path: str,
    form: Form,
    is_rare: bool,
    owner: Owner,
    things: Things,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = Field("externalId", "client_notes", drawn_as="search", rare=is_rare)
    monkeypatch.setattr(form, "fields", (*form.fields, own))
    record = path.format_map(
        {name.lower().removesuffix("_id"): value for name, value in things.placeholders.items()}
    )
    page = text(person(owner).get(f"/console/w/{owner.workspace.slug}/{record}"))
    control = re.search(r'<input id="externalId" name="externalId" type="search"[^>]*>', page)
    assert control
    assert 'maxlength="' in control[0]
    assert '<label for="externalId">Notes</label>' in page
    assert is_rare == ("<details" in page[: control.start()].rpartition("</details>")[2])
