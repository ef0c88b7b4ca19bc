"""Images of imported pages become files of the workspace."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core import plans
from chalicelib.core.errors import UnavailableError
from chalicelib.domains.files.flows import rehosting
from chalicelib.domains.files.store import files
from chalicelib.gateways.object_store import FolderStore
from tests.conftest import Api, Owner
from tests.domains.sites.page_import.helpers import (
    IMAGE_SERVER,
    MIB,
    html_of,
    images,
    import_page,
    page,
)
from tests.factories.files import list_files, list_stored_files, upload
from tests.factories.products import png
from tests.factories.urls import INSIDE
from tests.fakes.internet import Internet, Server, http_response, reset, silence, to
from tests.support.warned import warned


def reasons(answer: Any) -> dict[str, str]:
    return {one["url"]: one["reason"] for one in answer["imported"]["failed"]}


def test_lazy_backgrounds_and_image_sets_become_files(
    image_server: Server, api: Api, site: str
) -> None:
    image_server.pages = {f"/{n}.png": http_response(png(n)) for n in range(6)}
    values = "data-original='12.5' data-bg='rgba(0,0,0,.5)' data-image='{{ x }}'"
    html = html_of(
        api,
        answer := import_page(
            api,
            site,
            baseUrl=f"{IMAGE_SERVER}/",
            html=f"<style>a{{b:image-set('0.png' 1x, url(1.png) 2x)}}</style><p {values}>"
            f"<p data-bg='url({IMAGE_SERVER}/2.png)'><img data-lazy-srcset='3.png 2x, /4.png 3x'>"
            "<p data-bgset='5.png [--small] | 0.png'>",
        ),
    )
    assert answer["imported"] == {"images": 6, "failed": []}
    assert len(re.findall("/files/[^'\" ),]+", html)) == 7
    assert IMAGE_SERVER not in html
    assert values in html


class TestDeadHosts:
    """A host that refuses connections is tried once, however many images it serves."""

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_a_dead_host_is_tried_once(
        self, scheme: str, image_server: Server, net: Internet, api: Api, site: str
    ) -> None:
        net.names["dead.example.com"] = ["8.8.8.8"]
        image_server.pages = {f"/{n}.png": http_response(png(n)) for n in range(5)}
        dead = [f"{scheme}://dead.example.com/{n}.png" for n in range(45)]
        gone = [f"http://gone.example.com/{n}.png" for n in range(5)]
        alive = [f"{IMAGE_SERVER}/{n}.png" for n in range(5)]
        answer = import_page(api, site, html=images(*dead[:40], *alive, *gone))
        assert answer["imported"]["images"] == 5
        assert list(reasons(answer)) == [*dead[:40], *gone]
        assert all("refused or closed" in reasons(answer)[url] for url in dead[:40])
        port = 443 if scheme == "https" else 80
        assert net.connections.count(("8.8.8.8", port)) == 1
        assert net.lookups.count("gone.example.com") == 1

    def test_a_dead_host_is_remembered_when_redirects_lead_to_it(
        self, image_server: Server, net: Internet, api: Api, site: str
    ) -> None:
        net.names["dead.example.com"] = ["8.8.8.8"]
        image_server.pages = {f"/{n}.png": to("http://dead.example.com/") for n in range(20)}
        answer = import_page(
            api, site, html=images(*(f"{IMAGE_SERVER}/{n}.png" for n in range(20)))
        )
        assert len(reasons(answer)) == 20
        assert net.connections.count(("8.8.8.8", 80)) == 1

    def test_a_host_with_failing_tls_is_tried_once(
        self, net: Internet, api: Api, site: str
    ) -> None:
        net.serve("https://bad.example.com", http_response(png()), certified="other.example.com")
        import_page(
            api, site, html=images(*(f"https://bad.example.com/{n}.png" for n in range(20)))
        )
        assert len(net.connections) == 1

    def test_host_with_a_missing_image_is_not_dead(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {"/cut.png": reset, "/good.png": http_response(png())}
        bad = [f"{IMAGE_SERVER}/none.png", f"{IMAGE_SERVER}/cut.png"]
        answer = import_page(api, site, html=images(*bad, f"{IMAGE_SERVER}/good.png"))
        assert answer["imported"]["images"] == 1
        assert list(reasons(answer)) == bad

    def test_a_dead_host_is_tried_again_by_the_next_import(
        self, net: Internet, api: Api, site: str
    ) -> None:
        net.names["late.example.com"] = ["8.8.8.8"]
        html = images("http://late.example.com/a.png")
        assert import_page(api, site, html=html)["imported"]["images"] == 0
        net.serve("http://late.example.com", http_response(png()), address="8.8.8.8")
        assert import_page(api, site, html=html)["imported"]["images"] == 1


class TestImages:
    def test_images_become_files_and_the_page_shows_them(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {f"/img/{n}.png": http_response(png(n)) for n in range(20)}
        image_server.pages["/"] = page(
            f"<title>Хлеб</title>{images(*(f'/img/{n}.png' for n in range(18)))}"
            '<div style="background:url(img/18.png)"></div><img srcset="img/19.png 2x">'
        )
        answer = import_page(api, site, url=f"{IMAGE_SERVER}/")
        assert answer["imported"] == {"images": 20, "failed": []}
        html = html_of(api, answer)
        assert IMAGE_SERVER not in html
        places = [f for f in list_files(api)["folders"] if f["name"] == "pages"]
        assert [place["filesCount"] for place in places] == [20]
        image_files = list_files(api, folderId=places[0]["id"], size=100)["files"]
        assert all(file["url"] in html for file in image_files)
        assert {(file["width"], file["mimeType"]) for file in image_files} == {
            (8 + n, "image/png") for n in range(20)
        }

    def test_images_are_imported_through_the_tool_too(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {f"/{n}.png": http_response(png(n)) for n in range(20)}
        image_server.pages["/"] = page(images(*(f"{n}.png" for n in range(20))))
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "svc_import_page_html",
                "arguments": {"projectId": site, "url": IMAGE_SERVER},
            },
        }
        answer = api.call("POST", "/api/mcp", call, {"Accept": "application/json"})
        result = json.loads(answer.body)["result"]
        assert result.get("isError", False) is False
        assert '"images":20' in result["content"][0]["text"].replace(" ", "")

    def test_at_most_fifty_images_are_imported_and_the_rest_listed(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        image_server.pages = {f"/{n}.png": http_response(png(n)) for n in range(60)}
        image_server.pages["/"] = page(images(*(f"{n}.png" for n in range(60))))
        answer = import_page(api, site, url=IMAGE_SERVER)
        assert answer["imported"]["images"] == 50
        assert list(reasons(answer)) == [f"{IMAGE_SERVER}/{n}.png" for n in range(50, 60)]
        assert set(reasons(answer).values()) == {"only the first 50 images are imported"}
        assert all(f"{IMAGE_SERVER}/{n}.png" in html_of(api, answer) for n in range(50, 60))
        assert warned(answer) == [{"code": "images_not_imported", "count": 10}]

    def test_failed_images_keep_their_urls_and_are_listed_with_reasons(
        self, image_server: Server, net: Internet, api: Api, site: str
    ) -> None:
        net.names |= INSIDE
        image_server.pages = {
            "/good.png": http_response(png()),
            "/svg.png": http_response(b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
            "/cut.png": http_response(png()[:40]),
            "/page.png": page("<html>"),
        }
        bad = {
            f"{IMAGE_SERVER}/none.png": "received 404",
            f"{IMAGE_SERVER}/svg.png": "SVG",
            f"{IMAGE_SERVER}/cut.png": "damaged",
            f"{IMAGE_SERVER}/page.png": "web page",
            "http://nobody.example.com/x.png": "does not exist",
            "http://169.254.169.254/x.png": "public internet",
            "http://inside.example.com/x.png": "public internet",
        }
        html = images(f"{IMAGE_SERVER}/good.png", *bad)
        answer = import_page(api, site, html=html)
        assert answer["imported"]["images"] == 1
        reply = reasons(answer)
        assert list(reply) == list(bad)
        for url, words in bad.items():
            assert words in reply[url], reply[url]
            assert url in html_of(api, answer)

    def test_each_image_is_fetched_once(self, image_server: Server, api: Api, site: str) -> None:
        image_server.pages = {"/a.png": http_response(png())}
        answer = import_page(
            api, site, html=images(*[f"{IMAGE_SERVER}/a.png"] * 3, f"{IMAGE_SERVER}/a.png#x")
        )
        assert image_server.paths == ["/a.png"]
        assert answer["imported"]["images"] == 1
        assert IMAGE_SERVER not in html_of(api, answer)

    def test_image_import_can_be_switched_off(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        html = images(f"{IMAGE_SERVER}/a.png")
        answer = import_page(api, site, html=html, rehostImages=False)
        assert (html_of(api, answer), image_server.paths) == (html, [])

    def test_images_of_the_same_workspace_are_not_fetched(
        self, net: Internet, api: Api, site: str
    ) -> None:
        mine = upload(api, "a.png", png())["url"]
        keys_before = list_stored_files()
        answer = import_page(api, site, html=images(mine))
        assert answer["imported"] == {"images": 1, "failed": []}
        assert mine in html_of(api, answer)
        assert net.connections == []
        assert len(list_stored_files() - keys_before) == 1

    def test_images_of_another_workspace_are_fetched_like_any_other(
        self, net: Internet, new_owner: Callable[..., Owner], api: Api, site: str
    ) -> None:
        theirs = upload(new_owner().api(), "a.png", png())["url"]
        mine = upload(api, "a.png", png())["url"]
        similar_url = mine[: -len("/a.png") - 1] + ("A" if mine[-7] != "A" else "B") + "/a.png"
        answer = import_page(api, site, html=images(theirs, similar_url))
        assert answer["imported"]["images"] == 0
        assert set(reasons(answer)) == {theirs, similar_url}

    def test_images_are_imported_as_far_as_the_quota_allows(
        self,
        image_server: Server,
        api: Api,
        owner: Owner,
        site: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        keys_before = list_stored_files()
        image_server.pages = {f"/{n}.png": http_response(png(n)) for n in range(8)}
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", MIB + 2500)
        answer = import_page(api, site, html=images(*(f"{IMAGE_SERVER}/{n}.png" for n in range(8))))
        count = answer["imported"]["images"]
        assert 0 < count < 8
        assert "plan" in next(iter(reasons(answer).values()))
        assert files.used_bytes(owner.workspace.id) <= MIB + 2500
        assert len(list_stored_files() - keys_before) == 2 * count + 1

    def test_images_share_twenty_seconds_with_their_page(
        self, image_server: Server, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rehosting, "SECONDS", 0.6)
        image_server.pages = {"/good.png": http_response(png()), "/slow.png": silence}
        answer = import_page(
            api, site, html=images(f"{IMAGE_SERVER}/slow.png", f"{IMAGE_SERVER}/good.png")
        )
        assert answer["imported"]["images"] == 1
        assert "too slow" in reasons(answer)[f"{IMAGE_SERVER}/slow.png"]

    def test_a_slow_page_leaves_no_time_for_images(
        self, image_server: Server, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rehosting, "SECONDS", 0.0)
        image_server.pages = {"/": page(images("a.png")), "/a.png": http_response(png())}
        answer = import_page(api, site, url=IMAGE_SERVER)
        assert reasons(answer) == {
            f"{IMAGE_SERVER}/a.png": "the time limit for all images was reached"
        }
        assert image_server.paths == ["/"]

    def test_page_is_created_without_images_that_cannot_be_stored(
        self, image_server: Server, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put, keys_before = FolderStore.put, list_stored_files()

        def fail(self: FolderStore, key: str, *arguments: Any) -> None:
            if "/thumbnail/bad" in key:
                raise UnavailableError
            put(self, key, *arguments)

        monkeypatch.setattr(FolderStore, "put", fail)
        image_server.pages = {"/good.png": http_response(png()), "/bad.png": http_response(png(1))}
        answer = import_page(
            api, site, html=images(f"{IMAGE_SERVER}/bad.png", f"{IMAGE_SERVER}/good.png")
        )
        assert answer["imported"]["images"] == 1
        assert "stored" in reasons(answer)[f"{IMAGE_SERVER}/bad.png"]
        assert len(list_stored_files() - keys_before) == 3
