"""A fake host of pages and images."""

import pytest

from tests.domains.sites.page_import.helpers import IMAGE_SERVER
from tests.fakes.internet import Internet, Server, http_response


@pytest.fixture
def image_server(net: Internet) -> Server:
    """A fake host. Paths that are not among its pages are not found."""
    return net.serve(IMAGE_SERVER, http_response(b"no", "404 Not Found"))
