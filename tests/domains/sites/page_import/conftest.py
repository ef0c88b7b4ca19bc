"""A fake host of pages and images."""

import pytest

from tests.domains.sites.page_import.helpers import AWAY
from tests.fakes.internet import Internet, Server, http_response


@pytest.fixture
def away(net: Internet) -> Server:
    """A fake host. Paths that are not among its pages are not found."""
    return net.serve(AWAY, http_response(b"no", "404 Not Found"))
