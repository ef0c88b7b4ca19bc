"""A form, whose submissions are leads."""

import pytest

from tests.conftest import Api
from tests.domains.leads.lead_calls.helpers import new_form


@pytest.fixture
def form(api: Api) -> str:
    return new_form(api)
