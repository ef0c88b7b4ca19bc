"""What tests of several nouns start with."""

import pytest

from tests.conftest import Api, Time
from tests.factories.pages import new_site
from tests.factories.products import serve_images
from tests.factories.salon import Salon
from tests.fakes.internet import Internet, Server


@pytest.fixture
def site(api: Api) -> str:
    """The id of an empty site."""
    return new_site(api)


@pytest.fixture
def away(net: Internet) -> Server:
    """A host of images; what is not among its pages is not found."""
    return serve_images(net)


@pytest.fixture
def salon(api: Api, time: Time) -> Salon:
    """Open from 9 to 18 every day, Moscow time; it is Friday, 15 January 2027, 15:00 there."""
    return Salon.opened(api)
