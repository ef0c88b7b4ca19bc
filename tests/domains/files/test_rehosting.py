"""Re-hosting of images that operations name by URL."""

import threading
from socket import socket
from typing import Any

import pytest

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.principals import ApiKeyPrincipal
from chalicelib.core.settings import settings
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.files.flows.rehosting import (
    ImportedImage,
    RejectedImage,
    import_images,
    rehost,
)
from chalicelib.domains.files.rules import images
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FILES, FOLDERS
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import fetch
from chalicelib.gateways.object_store import object_store
from tests.conftest import Owner
from tests.factories.files import list_stored_files, photo
from tests.factories.products import png
from tests.fakes.internet import Answer, Internet, Server, http_response
from tests.support.patience import FOR_EVER, PATIENCE

IMAGE_SERVER = "https://images.example.com"


@pytest.fixture
def image_server(net: Internet) -> Server:
    """A fake image host."""
    return net.serve(IMAGE_SERVER, http_response(b"no", "404 Not Found"))


@pytest.fixture
def ctx(owner: Owner) -> Context:
    """A call's context."""
    home = owner.workspace
    principal = ApiKeyPrincipal(
        workspace_id=home.id, account_id=home.owner_id, plan="business", key_id="key"
    )
    return Context(principal, UnitOfWork(home.id, "request"), "request")


def commit(ctx: Context) -> None:
    ctx.unit.commit(AuditEvent("test", "test"))


def test_images_become_files_in_the_order_of_their_urls(image_server: Server, ctx: Context) -> None:
    image_server.pages = {f"/{n}.png": http_response(png(n)) for n in range(3)}
    urls = [f"{IMAGE_SERVER}/{n}.png" for n in (2, 0, 1, 0)]
    copies = rehost(ctx, urls, "products")
    commit(ctx)
    assert [one and one.width for one in copies] == [10, 8, 9, 8]
    assert ctx.warnings == []
    (folder,) = files.folders(ctx.workspace_id)
    assert folder.name == "products"
    for one in copies:
        assert one
        file = FILES.find(ctx.workspace_id, record_id=one.file_id)
        assert file
        assert (file.folder_id, one.url) == (folder.id, f"{settings().public_url}/{file.key}")
        assert object_store().get(file.key)


def test_the_folder_is_made_once_and_found_by_its_folded_name(
    image_server: Server, ctx: Context, owner: Owner
) -> None:
    new_folder = FOLDERS.new(ctx.workspace_id, name="Products")
    unit = UnitOfWork(ctx.workspace_id, "before")
    unit.create(new_folder)
    unit.commit()
    image_server.pages = {"/a.png": http_response(png())}
    rehost(ctx, [f"{IMAGE_SERVER}/a.png"], "products")
    commit(ctx)
    assert [folder.id for folder in files.folders(ctx.workspace_id)] == [new_folder.id]


def test_no_folder_is_created_without_images(image_server: Server, ctx: Context) -> None:
    assert rehost(ctx, [], "products") == []
    assert rehost(ctx, [], "products") == []
    commit(ctx)
    assert files.folders(ctx.workspace_id) == []


def test_a_failed_image_is_a_warning_and_leaves_no_gap(image_server: Server, ctx: Context) -> None:
    image_server.pages = {"/a.png": http_response(png())}
    urls = [
        f"{IMAGE_SERVER}/none.png",
        f"{IMAGE_SERVER}/a.png",
        "http://images.example.com/a.png",
        "no url",
    ]
    copies = rehost(ctx, urls, "products")
    commit(ctx)
    assert [one is not None for one in copies] == [False, True, False, False]
    assert len(ctx.warnings) == 3
    for url, warning in zip((urls[0], *urls[2:]), ctx.warnings, strict=True):
        assert warning.code == WarningCode.IMAGE_NOT_IMPORTED
        assert warning.facts["url"] == url
        assert warning.message == f"The image {url} was not imported: {warning.facts['reason']}."


def test_metadata_is_removed_and_a_thumbnail_created(image_server: Server, ctx: Context) -> None:
    image_server.pages = {"/me.jpg": http_response(photo())}
    (one,) = rehost(ctx, [f"{IMAGE_SERVER}/me.jpg"], "products")
    commit(ctx)
    assert isinstance(one, ImportedImage)
    file = FILES.find(ctx.workspace_id, record_id=one.file_id)
    assert file
    assert file.thumbnail_key
    body, small = (object_store().get(key) for key in (file.key, file.thumbnail_key))
    assert body
    assert small
    assert b"taken at home" not in body + small
    assert int(file.size) == len(body) + len(small) == files.used_bytes(ctx.workspace_id)


def test_a_file_is_named_after_its_url(image_server: Server, ctx: Context) -> None:
    image_server.pages = {"/%D0%81%D0%B6%00.png": http_response(png()), "/": http_response(png(1))}
    copies, _ = import_images(
        ctx, [f"{IMAGE_SERVER}/%D0%81%D0%B6%00.png", f"{IMAGE_SERVER}/"], "products"
    )
    commit(ctx)
    rows = [
        FILES.find(ctx.workspace_id, record_id=one.file_id)
        for one in copies
        if isinstance(one, ImportedImage)
    ]
    assert [row and row.name for row in rows] == ["Ёж.png", "image"]
    assert [row and row.key.rpartition("/")[2] for row in rows] == ["ezh.png", "image.png"]


def test_eight_images_are_fetched_at_a_time(image_server: Server, ctx: Context) -> None:
    together, now, peak = threading.Barrier(8, timeout=PATIENCE), 0, 0
    lock = threading.Lock()

    def serve_counted(body: bytes) -> Answer:
        def answer(sock: socket) -> None:
            nonlocal now, peak
            with lock:
                now += 1
                peak = max(peak, now)
            together.wait()
            with lock:
                now -= 1
            http_response(body)(sock)

        return answer

    image_server.pages = {f"/{n}.png": serve_counted(png(n)) for n in range(16)}
    copies = rehost(ctx, [f"{IMAGE_SERVER}/{n}.png" for n in range(16)], "products")
    assert all(copies)
    assert peak == 8


def test_the_time_limit_includes_the_wait_for_conversion(
    image_server: Server, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, clean, fetched, now = fetch.fetch, images.sanitize, threading.Semaphore(0), [0.0]

    def count_fetch(*args: Any, **options: Any) -> fetch.Fetched:
        response = real(*args, **options)
        fetched.release()
        return response

    def slow(body: bytes) -> images.CleanImage:
        for _ in range(6):
            assert fetched.acquire(timeout=PATIENCE)
        now[0] += FOR_EVER + 1
        return clean(body)

    monkeypatch.setattr(deadline, "monotonic", lambda: now[0])
    monkeypatch.setattr(fetch, "fetch", count_fetch)
    monkeypatch.setattr(images, "sanitize", slow)
    image_server.pages = {f"/{n}.png": http_response(png(n)) for n in range(6)}
    copies, _ = import_images(
        ctx, [f"{IMAGE_SERVER}/{n}.png" for n in range(6)], "products", max_seconds=FOR_EVER
    )
    late = [one.reason for one in copies if isinstance(one, RejectedImage)]
    assert late == ["the time limit for all images was reached"] * 5


def test_an_operation_that_fails_leaves_no_object(image_server: Server, ctx: Context) -> None:
    objects_before = list_stored_files()
    image_server.pages = {"/a.png": http_response(png())}
    rehost(ctx, [f"{IMAGE_SERVER}/a.png"], "products")
    assert list_stored_files() != objects_before
    ctx.unit.undo()
    assert list_stored_files() == objects_before
    assert files.used_bytes(ctx.workspace_id) == 0
