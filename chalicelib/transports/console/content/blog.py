"""Pages of the platform's blog, for ADMIN accounts."""

from contextlib import suppress
from typing import Any

from chalicelib.core.errors import NotFoundError
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record, Switch, tags
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.console.routes import PREFIX
from chalicelib.transports.http import HttpResponse, redirect

PATH = f"{PREFIX}/blog"
PAGE_SIZE = 20
FORM = Form(
    Field("title", "post_title", empty=""),
    Field("content", "post_content", empty="", may_be_empty=True),
    Field("description", "post_description"),
    Field("coverImage", "post_cover"),
    tags("tags", label="tags"),
    Field("category", "category"),
    Field("author", "post_author", wrong="wrong_person_name"),
    Field("slug", "post_slug", empty="", rare=True),
    Switch("published", "post_is_published", field="status", states=("published", "draft")),
    creates="create_blog_post",
    changes="update_blog_post",
)


def _find(request: ConsoleRequest) -> Record:
    post: Record = request.call("get_blog_post", slug=request.http.path["post"])["post"]
    return post


def _form_page(request: ConsoleRequest, post: Record | None, state: State = STORED) -> HttpResponse:
    form = FORM.page_values(request, post, state)
    return request.page("blog_post", post=post, path=PATH, **form)


def _show_post(post: Record, notice: str) -> HttpResponse:
    return redirect(f"{PATH}/{post['slug']}?done={notice}")


def confirm_delete(request: ConsoleRequest) -> HttpResponse:
    """Ask before a post is deleted."""
    return request.page("blog_post_delete", post=_find(request), path=PATH)


def delete(request: ConsoleRequest) -> HttpResponse:
    """Delete a post. A post that is gone, as after a second click, counts as deleted."""
    with suppress(NotFoundError):
        request.call("delete_blog_post", id=_find(request)["id"])
    return redirect(f"{PATH}?done=post_deleted")


def _created(_: ConsoleRequest, answer: dict[str, Any]) -> HttpResponse:
    return _show_post(answer["post"], "post_created")


def _saved(_: ConsoleRequest, post: Record, answer: dict[str, Any]) -> HttpResponse:
    return _show_post(answer.get("post", post), "post_saved")


new_post_page, create = FORM.creation(_form_page, _created)
show, save = FORM.editing(_find, _form_page, _saved)
index = ListPage("blog_posts", "list_blog_posts", PAGE_SIZE, {"status": "status"}).index
