"""A form in Russian."""

from typing import Any

import pytest

from tests.conftest import Api
from tests.transports.public.forms.helpers import FIELDS


@pytest.fixture
def form(api: Api) -> Any:
    """A form in Russian."""
    return api.post("/api/forms/create", {"title": "Заявка", "fields": FIELDS})["form"]
