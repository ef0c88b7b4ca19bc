"""Imports of pages, as the tests of this folder make and read them."""

from typing import Any

from tests.conftest import Api
from tests.fakes.internet import Answer, http_response

IMPORT = "/api/pages/import-html"
IMAGE_SERVER = "http://old.example.com"
HTML = "text/html; charset=utf-8"
MIB = 2**20


def page(html: str) -> Answer:
    return http_response(html.encode(), content_type=HTML)


def import_page(api: Api, site: str, **more: Any) -> Any:
    return api.post(IMPORT, {"projectId": site, **more})


def html_of(api: Api, answer: Any) -> str:
    """Return the HTML of an imported page. The import's response does not contain the HTML."""
    assert "html" not in answer["page"]
    html: str = api.get(f"/api/pages/{answer['page']['id']}")["page"]["html"]
    assert answer["page"]["htmlBytes"] == len(html.encode())
    return html


def images(*addresses: str) -> str:
    return "".join(f'<img src="{address}">' for address in addresses)
