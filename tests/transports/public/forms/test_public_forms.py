"""Visitors submit forms from any origin, in JSON or HTML. A refusal stores nothing."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.domains.leads.flows import form_html
from chalicelib.engine import limits
from chalicelib.transports.form_data import URLENCODED
from tests.conftest import Answer, Api, all_rows, call_operator
from tests.transports.conftest import LocalServer
from tests.transports.public.conftest import is_readable_from_any_origin
from tests.transports.public.forms.helpers import ANNA, FIELDS, path, post, visitor

HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def post_fields(form: Any, values: dict[str, str], **headers: str) -> Answer:
    """Send fields as an HTML form would."""
    return post(form, urlencode(values).encode(), **{"Content_Type": URLENCODED, **headers})


def leads(api: Api) -> list[Any]:
    leads: list[Any] = api.get("/api/forms/collection-list")["collections"]
    return leads


class TestSubmitting:
    @pytest.mark.parametrize("kind", ["application/json", "text/plain;charset=UTF-8", None])
    def test_a_json_submission_creates_a_lead(self, form: Any, api: Api, kind: str | None) -> None:
        headers = {"Content_Type": kind} if kind else {}
        answer = post(form, ANNA | {"day": "31.01.2030"}, **headers)
        assert answer.status == 200
        assert answer.data == {
            "status": True,
            "id": answer.data["id"],
            "message": "Спасибо! Мы получили вашу заявку.",
            "redirectUrl": None,
        }
        (lead,) = leads(api)
        assert lead["id"] == answer.data["id"]
        assert lead["data"] == ANNA | {"day": "2030-01-31"}

    def test_an_urlencoded_form_creates_a_lead(self, form: Any, api: Api) -> None:
        answer = post_fields(form, ANNA)
        assert answer.status == 200
        assert leads(api)[0]["data"] == ANNA

    def test_a_multipart_form_without_files_creates_a_lead(self, form: Any, api: Api) -> None:
        lines = [
            f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in ANNA.items()
        ]
        kind = "multipart/form-data; boundary=x"
        assert post(form, ("".join(lines) + "--x--\r\n").encode(), Content_Type=kind).status == 200
        assert leads(api)[0]["data"] == ANNA
        with_file = lines[0].replace('name="name"', 'name="name"; filename="a.txt"') + "--x--\r\n"
        refusal = post(form, with_file.encode(), Content_Type=kind)
        assert (refusal.status, refusal.data["code"]) == (400, "validation_error")

    def test_undeclared_fields_are_kept(self, form: Any, api: Api) -> None:
        others = {"status": "completed", "nmae": "Eve", "_other": "x"}
        answer = post(form, ANNA | others)
        assert "warnings" not in answer.data
        (lead,) = leads(api)
        assert (lead["data"], lead["status"]) == (ANNA | others, "new")

    def test_all_values_of_a_repeated_field_are_kept(self, form: Any, api: Api) -> None:
        post(form, b"name=Eve&name=%D0%90%D0%BD%D0%BD%D0%B0", Content_Type=URLENCODED)
        (lead,) = leads(api)
        assert (lead["data"], lead["name"]) == ({"name": ["Eve", "Анна"]}, "Eve")

    def test_the_visitors_origin_is_stored(self, form: Any, api: Api) -> None:
        post(
            form,
            ANNA
            | {
                "_page": "https://bakery.example/order?utm_medium=cpc&utm_source=mail&token=hush#a",
                "_referrer": "https://search.example/?q=cake",
                "_utm_source": "newsletter",
            },
        )
        (lead,) = leads(api)
        assert lead["source"]["page"] == "https://bakery.example/order"
        assert lead["source"]["referrer"] == "search.example"
        campaign = lead["source"]["campaign"]
        assert (campaign["source"], campaign["medium"]) == ("newsletter", "cpc")
        assert "hush" not in json.dumps(all_rows(), default=repr)

    def test_without_script_the_page_comes_from_the_browsers_headers(
        self, form: Any, api: Api
    ) -> None:
        post_fields(form, ANNA | {"_page": ""}, Referer="https://bakery.example/")
        assert leads(api)[0]["source"]["page"] == "https://bakery.example/"

    @pytest.mark.parametrize("junk", [1, ["a"], {"a": 1}, "javascript:1", "http://[", "a" * 9000])
    def test_invalid_data_about_the_page_is_ignored(self, form: Any, api: Api, junk: Any) -> None:
        assert (
            post(form, ANNA | {"_page": junk, "_referrer": junk, "_utm_term": junk}).status == 200
        )
        assert leads(api)[0]["data"] == ANNA

    def test_an_order_may_be_submitted_as_a_form(self, api: Api, form: Any) -> None:
        product = api.post("/api/products/create", {"name": "Медовик", "price": 9900})["product"]
        cart = json.dumps([{"productId": product["id"], "quantity": 2, "price": 1}])
        assert post_fields(form, ANNA | {"items": cart}).status == 200
        (item,) = leads(api)[0]["data"]["items"]
        assert (item["name"], item["quantity"], item["price"]) == ("Медовик", 2, 9900)


class TestErrors:
    def test_every_wrong_field_is_named_in_the_forms_language(self, form: Any) -> None:
        answer = post(form, {"email": "anna@", "day": "завтра"})
        assert (answer.status, answer.data["code"]) == (400, "validation_error")
        assert answer.data["message"] == "Форма не отправлена. Проверьте поля: Имя, Почта, Дата."
        assert [(error["field"], error["key"]) for error in answer.data["errors"]] == [
            ("name", "required"),
            ("email", "email"),
            ("day", "date"),
        ]
        assert answer.data["errors"][0]["message"] == "Заполните это поле."

    def test_errors_of_an_english_form_are_in_english(self, api: Api) -> None:
        form = api.post(
            "/api/forms/create", {"title": "Order", "fields": [FIELDS[0] | {"label": "Name"}]}
        )
        answer = post(form["form"], {})
        assert answer.data["message"] == "The form was not sent. Please check these fields: Name."
        assert [error["key"] for error in answer.data["errors"]] == ["required"]

    def test_errors_in_a_cart_are_explained(self, form: Any) -> None:
        answer = post(form, ANNA | {"items": [{"productId": "none"}]})
        assert answer.data["errors"][0]["field"] == "items.0.productId"
        assert answer.data["errors"][0]["key"] == "cart_product"
        assert "такого товара нет" in answer.data["message"]

    @pytest.mark.parametrize("body", [b"{", b"[]", b"1", b'{"a": NaN}', b"\xff"])
    def test_errors_about_malformed_json_are_for_developers(self, form: Any, body: bytes) -> None:
        answer = post(form, body)
        assert (answer.status, answer.data["code"]) == (400, "validation_error")
        assert "JSON" in answer.data["message"]

    def test_more_than_32_kb_are_refused(self, form: Any, api: Api) -> None:
        body = json.dumps(ANNA).encode()
        full = body + b" " * (32_768 - len(body))
        assert post(form, full).status == 200
        answer = post(form, full + b" ")
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")
        assert answer.data["message"].startswith("Слишком много текста")

    @pytest.mark.parametrize("kind", ["application/xml", "image/png"])
    def test_other_content_types_are_refused(self, form: Any, kind: str) -> None:
        answer = post(form, b"<a/>", Content_Type=kind)
        assert (answer.status, answer.data["code"]) == (415, "unsupported_media_type")

    def test_a_deleted_form_or_one_of_a_suspended_site_is_404(self, api: Api) -> None:
        site = api.post("/api/projects/create", {"title": "Bakery"})["project"]
        create = {"title": "Заявка", "fields": FIELDS}
        closed = api.post("/api/forms/create", create | {"projectId": site["id"]})["form"]
        deleted = api.post("/api/forms/create", create)["form"]
        call_operator("suspend_site", id=site["id"])
        api.post("/api/forms/delete", {"id": deleted["id"]})
        for form in (closed, deleted, {"id": new_id()}):
            for body in (ANNA, ANNA | {"_url": "spam"}):
                answer = post(form, body)
                assert (answer.status, answer.data["code"]) == (404, "not_found"), form
                assert is_readable_from_any_origin(answer)


class TestCrossOrigin:
    def test_successes_and_failures_are_readable_from_any_origin(self, form: Any) -> None:
        for answer in (
            post(form, ANNA, Origin="null"),
            post(form, {}, Origin="https://bakery.example"),
            post(form, b"{", Origin="https://bakery.example"),
            post(form, b"a" * 40_000),
            post(form, b"a", Content_Type="image/png"),
            visitor.call("GET", path(form)),
            visitor.call("DELETE", path(form)),
        ):
            assert is_readable_from_any_origin(answer), answer
            assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]

    def test_a_preflight_is_answered_without_reading_the_form(self) -> None:
        answer = visitor.call("OPTIONS", path({"id": "none"}), headers={"Origin": "null"})
        assert (answer.status, answer.body) == (204, b"")
        assert is_readable_from_any_origin(answer)
        assert "POST" in answer.headers["Access-Control-Allow-Methods"]
        assert "Content-Type" in answer.headers["Access-Control-Allow-Headers"]

    @pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
    def test_wrong_methods_and_unknown_paths_are_readable_from_any_origin(
        self, local_server: LocalServer, method: str
    ) -> None:
        head = f"{method} %s HTTP/1.1\r\nHost: x\r\nOrigin: null\r\n\r\n"
        reply = local_server.request((head % path({"id": "none"})).encode())
        assert (reply.status, reply.header("Allow")) == (405, "POST")
        assert reply.header("Access-Control-Allow-Origin") == "*"
        reply = local_server.request((head % "/api/public/none").encode())
        assert reply.status == 404
        assert reply.header("Access-Control-Allow-Origin") == "*"


class TestWithoutScript:
    def page(self, answer: Answer) -> str:
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Robots-Tag"] == "noindex"
        assert answer.headers["Cache-Control"] == "no-store"
        assert is_readable_from_any_origin(answer)
        return answer.body.decode()

    def test_the_browser_shows_thanks_and_a_link_back(self, form: Any, api: Api) -> None:
        answer = post_fields(form, ANNA, Accept=HTML, Referer="https://bakery.example/order")
        assert answer.status == 200
        html = self.page(answer)
        assert "Спасибо! Мы получили вашу заявку." in html
        assert 'href="https://bakery.example/order"' in html
        assert len(leads(api)) == 1

    def test_the_browser_is_redirected_only_to_the_owners_url(self, api: Api) -> None:
        there = "https://bakery.example/thanks?a=1"
        form = api.post(
            "/api/forms/create", {"title": "Заявка", "fields": FIELDS, "redirectUrl": there}
        )["form"]
        elsewhere = {"redirectUrl": "https://evil.example", "_redirect": "https://evil.example"}
        answer = post_fields(form, ANNA | elsewhere, Accept=HTML)
        assert (answer.status, answer.headers["Location"]) == (303, there)
        assert post(form, ANNA | elsewhere).data["redirectUrl"] == there
        trapped = post_fields(form, ANNA | {"_url": "spam"}, Accept=HTML)
        assert (trapped.status, trapped.headers["Location"]) == (303, there)

    def test_errors_stand_beside_the_entered_values(self, form: Any, api: Api) -> None:
        answer = post_fields(
            form, {"name": "<b>Анна", "email": "anna@", "_page": "https://a.example"}, Accept=HTML
        )
        assert answer.status == 400
        html = self.page(answer)
        assert "Форма не отправлена. Проверьте поля: Почта." in html
        assert 'value="&lt;b&gt;Анна"' in html
        assert 'value="anna@"' in html
        assert 'name="_page" value="https://a.example"' in html
        assert "<em>Введите адрес почты" in html
        assert leads(api) == []

    @pytest.mark.parametrize(
        ("accepted", "text"), [("ru-RU,ru;q=0.9", "больше не принимает"), ("de", "no longer")]
    )
    def test_a_deleted_form_shows_a_message_in_the_visitors_language(
        self, database: None, accepted: str, text: str
    ) -> None:
        answer = post_fields({"id": new_id()}, ANNA, Accept=HTML, Accept_Language=accepted)
        assert answer.status == 404
        assert text in self.page(answer)

    def test_an_unreadable_body_is_explained_on_a_page(self, form: Any) -> None:
        answer = post(form, b"{", Accept=HTML)
        assert answer.status == 400
        assert "не удалось прочитать" in self.page(answer)
        assert post_fields(form, {"name": "a" * 33_000}, Accept=HTML).status == 413

    def test_programs_that_accept_json_get_json(self, form: Any) -> None:
        for accept in ("*/*", "application/json", "application/json, text/html;q=0.5"):
            assert post_fields(form, ANNA, Accept=accept).data["status"] is True


class TestRefusals:
    def test_a_filled_honeypot_is_answered_like_a_success(self, form: Any, api: Api) -> None:
        real = post(form, ANNA)
        rows_before = all_rows()
        trapped = post(form, ANNA | {"_url": "https://spam.example"})
        assert trapped.status == 200
        assert trapped.data.keys() == real.data.keys()
        assert trapped.data["message"] == real.data["message"]
        assert trapped.data["id"] != real.data["id"]
        assert len(trapped.data["id"]) == len(real.data["id"])
        assert all_rows() == rows_before

    @pytest.mark.parametrize("elapsed", [0, "0", "999", 999])
    def test_a_form_submitted_too_fast_is_accepted_a_little_later(
        self, form: Any, api: Api, elapsed: Any
    ) -> None:
        answer = post(form, ANNA | {"_elapsed": elapsed})
        assert (answer.status, answer.data["code"]) == (429, "too_fast")
        assert answer.data["message"].startswith("Слишком быстро")
        assert answer.headers["Retry-After"] in {"1", "2"}
        assert leads(api) == []
        assert post(form, ANNA | {"_elapsed": "1000"}).status == 200
        assert len(leads(api)) == 1

    @pytest.mark.parametrize("elapsed", [None, "", "soon", "-1", "1e3", True, [1], "9" * 400, 1.5])
    def test_only_the_services_script_reports_the_time_taken(self, form: Any, elapsed: Any) -> None:
        assert post(form, ANNA | {"_elapsed": elapsed}).status == 200

    def test_the_page_keeps_values_that_were_submitted_too_fast(self, form: Any) -> None:
        answer = post_fields(form, ANNA | {"_elapsed": "10"}, Accept=HTML)
        assert answer.status == 429
        html = answer.body.decode()
        assert "Слишком быстро" in html
        assert 'value="Анна"' in html
        assert "_elapsed" not in html

    def test_nothing_is_stored_if_the_limits_cannot_be_counted(
        self, form: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise UnavailableError

        monkeypatch.setattr(limits, "take", fail)
        answer = post(form, ANNA)
        assert (answer.status, answer.data["code"]) == (503, "unavailable")
        assert answer.data["message"].startswith("Форму не удалось отправить")


class TestReference:
    @pytest.fixture
    def submit_operation(self) -> Any:
        document = json.loads(visitor.call("GET", "/api/openapi.json").body)
        return document["paths"]["/api/public/forms/{id}/submit"]["post"]

    def test_the_reference_documents_access_from_any_origin(self, submit_operation: Any) -> None:
        assert submit_operation["security"] == []
        assert not {"401", "403"} & set(submit_operation["responses"])
        assert {"200", "303", "400", "404", "413", "429"} <= set(submit_operation["responses"])
        assert [parameter["name"] for parameter in submit_operation["parameters"]][:1] == ["id"]

    def test_the_reference_documents_the_body(self, submit_operation: Any) -> None:
        content = submit_operation["requestBody"]["content"]
        assert set(content) == {
            "application/json",
            URLENCODED,
            "multipart/form-data",
        }
        schema = content["application/json"]["schema"]
        assert schema["additionalProperties"] is True
        assert {form_html.PAGE, form_html.ELAPSED, "_utm_source"} <= set(schema["properties"])
        assert form_html.HONEYPOT not in schema["properties"]
