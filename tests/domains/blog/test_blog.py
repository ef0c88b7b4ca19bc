"""Tests of the platform's blog, which ADMIN accounts write and readers list."""

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from chalicelib.core.principals import PLATFORM
from chalicelib.core.settings import settings
from chalicelib.domains.blog.operations import reading
from chalicelib.domains.files.store.files import FILES
from chalicelib.engine import file_uses, jobs
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, all_rows
from tests.factories.files import photo
from tests.factories.products import png
from tests.fakes.internet import Internet, http_response
from tests.support.warned import warned

CREATE = "/api/admin/blog/create"
LIST = "/api/admin/blog/list"


@pytest.fixture
def create_post(api: Api) -> Callable[..., dict[str, Any]]:
    """Create a post, and return it."""

    def make(title: str = "Bread", **fields: Any) -> dict[str, Any]:
        post: dict[str, Any] = api.post(CREATE, {"title": title, **fields})["post"]
        return post

    return make


def change(api: Api, post: dict[str, Any], **fields: Any) -> Any:
    answer = api.call("PUT", f"/api/admin/blog/{post['id']}", fields)
    assert answer.status == 200, answer.body
    return answer.data


def readers_see(**query: Any) -> Any:
    text = "&".join(f"{name}={value}" for name, value in query.items())
    return Api(None).get(f"/api/blog/list?{text}")


class TestWriting:
    def test_a_post_is_a_draft_until_it_is_published(self, api: Api, time: Time) -> None:
        post = api.post(CREATE, {"title": "  How we bake  "})["post"]
        assert post == {
            "id": post["id"],
            "title": "How we bake",
            "slug": "how-we-bake",
            "description": None,
            "tags": [],
            "category": None,
            "author": None,
            "status": "draft",
            "coverImage": None,
            "createdAt": "2027-01-15T12:00:00.000Z",
            "updatedAt": "2027-01-15T12:00:00.000Z",
            "publishedAt": None,
            "url": f"{settings().public_url}/blog/how-we-bake",
        }
        assert readers_see()["total"] == 0
        time.pass_by(hours=1)
        published = change(api, post, status="published")["post"]
        assert published["publishedAt"] == "2027-01-15T13:00:00.000Z"
        assert [listed_post["slug"] for listed_post in readers_see()["posts"]] == ["how-we-bake"]

    def test_the_first_publication_sets_the_date_permanently(
        self, api: Api, create_post: Any, time: Time
    ) -> None:
        post = create_post(status="published")
        time.pass_by(days=1)
        assert change(api, post, status="draft")["post"]["publishedAt"] == post["publishedAt"]
        assert readers_see()["total"] == 0
        republished_post = change(api, post, status="published")["post"]
        assert republished_post["publishedAt"] == post["publishedAt"]

    def test_all_fields_of_a_post_are_returned(self, api: Api, create_post: Any) -> None:
        fields = {
            "title": "Закваска",
            "slug": "sourdough",
            "description": "Как  мы её\nкормим",
            "content": "# Привет\n\nЭто *закваска*.",
            "tags": ["хлеб", "рецепты", "хлеб"],
            "category": "Кухня",
            "author": "Анна",
            "status": "published",
        }
        post = create_post(**fields)
        assert "content" not in post
        full = api.get("/api/blog/sourdough")["post"]
        expected = fields | {"description": "Как мы её кормим", "tags": ["хлеб", "рецепты"]}
        assert full == post | {"content": fields["content"]}
        assert {name: full[name] for name in expected} == expected

    def test_an_update_changes_only_the_given_fields(self, api: Api, create_post: Any) -> None:
        post = create_post(content="One", tags=["a"], author="Ada", description="d")
        new = change(api, post, content="Two", author=None)["post"]
        assert (new["author"], new["tags"], new["description"]) == (None, ["a"], "d")
        assert api.get("/api/blog/bread")["post"]["content"] == "Two"
        change(api, post, title="Rolls")
        stored_post = api.get("/api/blog/bread")["post"]
        assert (stored_post["title"], stored_post["content"]) == ("Rolls", "Two")

    def test_a_deleted_post_is_gone_with_all_its_rows(self, api: Api, create_post: Any) -> None:
        keys_before = [key for key in all_rows() if "POST" in key]
        post = create_post(status="published", content="x")
        change(api, post, slug="other")
        path = f"/api/admin/blog/{post['id']}"
        assert api.call("DELETE", f"{path}?dryRun=true").data["deleted"] is False
        assert api.call("DELETE", path).data["deleted"] is True
        assert api.call_refused("DELETE", path).status == 404
        assert api.call_refused("GET", "/api/blog/other").status == 404
        keys_after = [key for key in all_rows() if "POST" in key and "#COUNT" not in key]
        assert [key for key in keys_after if key not in keys_before] == []

    @pytest.mark.parametrize(
        ("field", "inside", "outside"),
        [
            ("content", "я" * 102_400, "я" * 102_401),
            ("slug", "s" * 63, "list"),
        ],
    )
    def test_the_limits_of_fields_are_enforced(
        self, api: Api, field: str, inside: Any, outside: Any
    ) -> None:
        post = api.post(CREATE, {"title": "x", field: inside})["post"]
        answer = api.call_refused("POST", CREATE, {"title": "x", field: outside})
        assert (answer.status, [error["field"] for error in answer.data["errors"]]) == (
            400,
            [field],
        )
        answer = api.call_refused("PUT", f"/api/admin/blog/{post['id']}", {field: outside})
        assert answer.status == 400

    def test_the_list_has_drafts_and_posts_of_all_accounts(
        self, api: Api, create_post: Any, new_owner: Callable[..., Owner]
    ) -> None:
        create_post("One")
        other = new_owner("business", "admin").api()
        other.post(CREATE, {"title": "Two", "status": "published"})
        page = api.get(LIST)
        assert [post["title"] for post in page["posts"]] == ["Two", "One"]
        assert page["total"] == 2
        assert [p["title"] for p in api.get(f"{LIST}?status=draft")["posts"]] == ["One"]
        assert [p["title"] for p in api.get(f"{LIST}?page=2&size=1")["posts"]] == ["One"]
        assert api.get(f"{LIST}?page=9") | {"posts": []} == {
            "status": True,
            "posts": [],
            "total": 2,
            "pagination": {"total": 2, "page": 9, "size": 20, "limit": 20},
        }


class TestSlugs:
    def test_slugs_are_made_from_titles_and_numbered(self, create_post: Any) -> None:
        slugs = [create_post("Щи да каша")["slug"] for _ in range(3)]
        assert slugs == ["shchi-da-kasha", "shchi-da-kasha-2", "shchi-da-kasha-3"]

    def test_invisible_slugs_are_not_generated(self, api: Api, create_post: Any) -> None:
        assert create_post("List")["slug"] == "list-2"
        assert create_post("Blog")["slug"] == "blog"
        assert create_post("!!!")["slug"] == "post"
        answer = api.call_refused("POST", CREATE, {"title": "x", "slug": "list"})
        (error,) = answer.data["errors"]
        assert (error["field"], error["key"]) == ("slug", "reserved")

    def test_a_slug_that_is_taken_is_refused(self, api: Api, create_post: Any) -> None:
        create_post(slug="bread")
        other = create_post("Other")
        answer = api.call_refused("POST", CREATE, {"title": "x", "slug": "bread"})
        assert (answer.status, answer.data["code"]) == (409, "slug_taken")
        answer = api.call_refused("PUT", f"/api/admin/blog/{other['id']}", {"slug": "bread"})
        assert (answer.status, answer.data["code"]) == (409, "slug_taken")

    def test_a_former_slug_of_a_published_post_redirects_to_it(
        self, api: Api, create_post: Any
    ) -> None:
        post = create_post(slug="one", status="published")
        change(api, post, slug="two")
        change(api, post, slug="three")
        assert reading.find("one") == reading.find("two") == ("three",)
        answer = api.call_refused("GET", "/api/blog/one")
        assert (answer.data["code"], answer.data["key"]) == ("not_found", "post_moved")
        assert '"three"' in answer.data["message"]
        change(api, post, status="draft")
        assert reading.find("one") is None

    def test_a_former_slug_of_a_draft_redirects_nowhere(self, api: Api, create_post: Any) -> None:
        post = create_post(slug="one")
        change(api, post, slug="two", status="published")
        assert reading.find("one") is None

    def test_a_former_slug_redirects_until_another_post_claims_it(
        self, api: Api, create_post: Any
    ) -> None:
        first = create_post(slug="one", status="published")
        change(api, first, slug="two")
        second = create_post(slug="one")
        assert reading.find("one") is None, "a draft holds it now"
        change(api, second, slug="other")
        assert reading.find("one") is None
        change(api, first, slug="one")
        assert api.get("/api/blog/one")["post"]["id"] == first["id"]
        assert reading.find("two") == ("one",)

    def test_deleting_a_post_leaves_its_former_slug_to_the_new_owner(
        self, api: Api, create_post: Any
    ) -> None:
        first = create_post(slug="one", status="published")
        change(api, first, slug="two")
        second = create_post(slug="one", status="published")
        change(api, second, slug="three")
        assert reading.find("one") == ("three",)
        api.call("DELETE", f"/api/admin/blog/{first['id']}")
        assert reading.find("one") == ("three",)
        assert reading.find("two") is None

    def test_up_to_fifty_former_slugs_are_kept(self, api: Api, create_post: Any) -> None:
        post = create_post(slug="s0", status="published")
        for number in range(1, 53):
            change(api, post, slug=f"s{number}")
        assert reading.find("s1") is None
        assert reading.find("s2") == ("s52",)


IMAGE_SERVER = "https://images.example.com"


def covers() -> list[str]:
    """Return the URLs of all covers in the platform's store."""
    files = FILES.fetch(PLATFORM, [entry.id for entry in FILES.entries(PLATFORM)])
    return [f"{settings().public_url}/{file.key}" for file in files]


class TestCovers:
    @pytest.fixture
    def image_host(self, net: Internet) -> str:
        server = net.serve(IMAGE_SERVER, http_response(b"no", "404 Not Found"))
        server.pages = {f"/{n}.png": http_response(png(n)) for n in (1, 2)}
        return IMAGE_SERVER

    def test_covers_are_copied_to_the_platform(
        self, api: Api, owner: Owner, create_post: Any, image_host: str
    ) -> None:
        post = create_post(coverImage=f"{image_host}/1.png")
        assert [post["coverImage"]] == covers()
        (entry,) = FILES.entries(PLATFORM)
        assert file_uses.records_showing(PLATFORM, file_id=entry.id) == [f"POST#{post['id']}"]
        assert FILES.entries(owner.workspace.id) == []
        assert change(api, post, coverImage=post["coverImage"])["post"]["coverImage"] in covers()

    def test_covers_are_removed_when_no_post_shows_them(
        self, api: Api, create_post: Any, image_host: str
    ) -> None:
        post = create_post(coverImage=f"{image_host}/1.png")
        new = change(api, post, coverImage=f"{image_host}/2.png")["post"]
        assert covers() == [new["coverImage"]] != [post["coverImage"]]
        other = create_post(coverImage=new["coverImage"])
        assert change(api, post, coverImage=None)["post"]["coverImage"] is None
        assert covers() == [other["coverImage"]]
        api.call("DELETE", f"/api/admin/blog/{other['id']}")
        assert covers() == []

    def test_covers_of_a_killed_process_are_removed_by_the_runner(
        self,
        time: Time,
        api: Api,
        create_post: Any,
        image_host: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        post = create_post(coverImage=f"{image_host}/1.png")
        with monkeypatch.context() as killed:
            killed.setattr(jobs, "attempt", lambda *_: False)
            change(api, post, coverImage=None)
        assert covers() == [post["coverImage"]]
        assert run_jobs()["blog-cover-unused"] == 1
        assert covers() == []

    def test_files_of_the_workspace_may_be_covers_and_are_copied(
        self, api: Api, owner: Owner, create_post: Any
    ) -> None:
        content = base64.b64encode(photo()).decode()
        file = api.post("/api/files/upload", {"name": "a.jpg", "content": content})["file"]
        post = create_post(coverImage=file["url"])
        assert covers() == [post["coverImage"]] != [file["url"]]
        api.post("/api/files/delete", {"id": file["id"]})
        assert api.get("/api/blog/bread")["post"]["coverImage"] == post["coverImage"]

    def test_a_cover_that_cannot_be_fetched_keeps_its_url(
        self, api: Api, create_post: Any, image_host: str, net: Internet
    ) -> None:
        url = f"{image_host}/none.png?size=1&q=ё"
        response = api.post(CREATE, {"title": "x", "coverImage": url})
        assert response["post"]["coverImage"] == url
        codes = [(warning["code"], warning["url"]) for warning in warned(response)]
        assert codes == [("image_not_imported", url), ("cover_linked", url)]
        post = response["post"]
        assert change(api, post, title="y")["post"]["coverImage"] == url
        assert change(api, post, coverImage=url)["post"]["coverImage"] == url
        other = f"{image_host}/2.gif"
        assert change(api, post, coverImage=other)["post"]["coverImage"] == other
        assert covers() == []
        assert change(api, post, coverImage=None)["post"]["coverImage"] is None

    def test_a_linked_cover_becomes_a_copy_once_it_can_be_fetched(
        self, api: Api, create_post: Any, net: Internet
    ) -> None:
        server = net.serve(IMAGE_SERVER, http_response(b"no", "404 Not Found"))
        url = f"{IMAGE_SERVER}/1.png"
        post = create_post(coverImage=url)
        assert post["coverImage"] == url
        server.pages["/1.png"] = http_response(png(1))
        answer = change(api, post, coverImage=url)
        assert [answer["post"]["coverImage"]] == covers()
        assert "warnings" not in answer

    def test_a_link_replaces_a_copied_cover(
        self, api: Api, create_post: Any, image_host: str
    ) -> None:
        post = create_post(coverImage=f"{image_host}/1.png")
        assert covers() == [post["coverImage"]]
        url = f"{image_host}/none.png"
        assert change(api, post, coverImage=url)["post"]["coverImage"] == url
        assert covers() == []

    def test_a_cover_that_cannot_be_used_is_a_warning(
        self, api: Api, create_post: Any, image_host: str, new_owner: Callable[..., Owner]
    ) -> None:
        other = new_owner("business", "admin").api()
        content = base64.b64encode(photo()).decode()
        theirs = other.post("/api/files/upload", {"name": "a.jpg", "content": content})["file"]
        post = create_post(coverImage=f"{image_host}/1.png")
        urls = ("javascript:alert(1)", "x", "http://a.example.com/1.png", "https://10.0.0.1/1.png")
        for url in (*urls, "https://me:pass@a.example.com/1.png", theirs["url"]):
            create_response = api.post(CREATE, {"title": "x", "coverImage": url})
            assert create_response["post"]["coverImage"] is None
            assert create_response["warnings"]
            update_response = change(api, post, coverImage=url)
            assert update_response["post"]["coverImage"] == post["coverImage"]
            assert {"code": "cover_kept", "url": url} in warned(update_response)
        assert covers() == [post["coverImage"]]


class TestReaders:
    def test_readers_list_published_posts_latest_first(
        self, api: Api, create_post: Any, time: Time
    ) -> None:
        drafts = [create_post(f"Post {number}", tags=["хлеб", f"t{number}"]) for number in range(3)]
        for number in (2, 0):
            time.pass_by(hours=1)
            change(api, drafts[number], status="published")
        page = readers_see()
        assert [post["title"] for post in page["posts"]] == ["Post 0", "Post 2"]
        assert page["total"] == 2
        assert [p["title"] for p in readers_see(tag="t2")["posts"]] == ["Post 2"]
        assert readers_see(tag=quote("хлеб"))["total"] == 2
        assert readers_see(tag="t1")["total"] == 0
        assert readers_see(page=2, size=1)["posts"][0]["title"] == "Post 2"

    def test_readers_see_an_excerpt_and_the_reading_time(self, create_post: Any) -> None:
        words = "слово " * 500
        create_post(content=f"# Title\n\nIt **begins** so. {words}", status="published")
        (post,) = readers_see()["posts"]
        assert post["description"].startswith("Title It begins so. слово")
        assert len(post["description"]) <= 240
        assert post["minutes"] == 3
        assert set(post) == {
            *("title", "slug", "url", "description", "tags", "category", "author"),
            *("coverImage", "publishedAt", "minutes", "updatedAt", "id"),
        }

    def test_the_public_list_is_not_available_with_a_key(self, api: Api) -> None:
        answer = api.call_refused("GET", "/api/blog/list")
        assert (answer.status, answer.data["code"]) == (403, "forbidden")
        for header in ("Bearer nonsense", "Basic x", ""):
            answer = Api(None).call("GET", "/api/blog/list", headers={"Authorization": header})
            assert answer.status == 403
        assert Api(None).call_refused("GET", "/api/blog/bread").status == 401

    @pytest.mark.usefixtures("database")
    def test_scripts_of_any_page_may_read_the_list(self) -> None:
        answer = Api(None).call("GET", "/api/blog/list")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert Api(None).call("OPTIONS", "/api/blog/list").status == 204


class TestWriteAccess:
    @pytest.fixture
    def user_api(self, new_owner: Callable[..., Owner]) -> Api:
        return new_owner("business", "user").api("*:read", "*:write")

    def test_a_user_account_may_not_write_over_rest(self, user_api: Api, create_post: Any) -> None:
        path = f"/api/admin/blog/{create_post()['id']}"
        for method, where in (
            ("GET", LIST),
            ("GET", "/api/blog/bread"),
            ("POST", CREATE),
            ("PUT", path),
            ("DELETE", path),
        ):
            answer = user_api.call_refused(
                method, where, {"title": "x"} if method != "GET" else None
            )
            assert (answer.status, answer.data["code"]) == (403, "admin_required")

    def test_a_user_account_may_not_write_over_tools(
        self, user_api: Api, api: Api, create_post: Any
    ) -> None:
        def list_blog_tools(caller: Api) -> set[str]:
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            tools = json.loads(caller.call("POST", "/api/mcp", message).body)["result"]["tools"]
            return {tool["name"] for tool in tools if "blog" in tool["name"]}

        post = create_post()
        assert len(list_blog_tools(api)) == 5
        assert list_blog_tools(user_api) == set()
        for tool, arguments in (
            ("svc_list_blog_posts", {}),
            ("svc_get_blog_post", {"slug": "bread"}),
            ("svc_create_blog_post", {"title": "x"}),
            ("svc_update_blog_post", {"id": post["id"], "title": "x"}),
            ("svc_delete_blog_post", {"id": post["id"]}),
        ):
            failed, reply = user_api.tool(tool, **arguments)
            assert failed
            assert reply["httpStatus"] == 403
