"""Submissions as builders of sites, plugins, form services and their webhooks send them."""

import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from chalicelib.transports.form_data import MAX_FIELDS, URLENCODED
from tests.conftest import Answer, Api, all_rows, call_console
from tests.support.sweep import sweep
from tests.support.warned import warned
from tests.transports.public.forms.helpers import post

FIELDS = [
    {"name": "name", "label": "Имя", "required": True},
    {"name": "email", "label": "Почта", "type": "email"},
    {"name": "phone", "label": "Телефон", "type": "phone"},
    {"name": "comment", "label": "Комментарий", "type": "textarea"},
]
PHONE, NUMBER = "8 (916) 123-45-67", "+79161234567"

ELEMENTOR = {
    "form[id]": "3f1",
    "form[name]": "Contact",
    "fields[name][id]": "name",
    "fields[name][type]": "text",
    "fields[name][title]": "Your name",
    "fields[name][value]": "Ада",
    "fields[name][raw_value]": "Ада",
    "fields[name][required]": "1",
    "fields[field_2b][id]": "field_2b",
    "fields[field_2b][type]": "tel",
    "fields[field_2b][title]": "Телефон",
    "fields[field_2b][value]": PHONE,
    "fields[size][id]": "size",
    "fields[size][title]": "Размер",
    "fields[size][value]": "M",
    "meta[date][title]": "Date",
    "meta[date][value]": "May 1, 2026",
    "meta[remote_ip][title]": "Remote IP",
    "meta[remote_ip][value]": "203.0.113.7",
}
TYPEFORM = {
    "event_id": "e1",
    "event_type": "form_response",
    "form_response": {
        "form_id": "f1",
        "definition": {
            "fields": [
                {"id": "q1", "ref": "r1", "type": "short_text", "title": "Как вас зовут?"},
                {"id": "q2", "ref": "r2", "type": "phone_number", "title": "Телефон"},
                {"id": "q3", "ref": "r3", "type": "multiple_choice", "title": "Размер"},
            ]
        },
        "answers": [
            {"type": "text", "text": "Ада", "field": {"id": "q1", "ref": "r1"}},
            {"type": "phone_number", "phone_number": PHONE, "field": {"id": "q2", "ref": "r2"}},
            {"type": "choices", "choices": {"labels": ["M", "L"]}, "field": {"id": "q3"}},
        ],
    },
}
JOTFORM = {
    "formID": "1",
    "submissionID": "2",
    "rawRequest": json.dumps(
        {
            "q3_name": {"first": "Ада", "last": "Лавлейс"},
            "q4_email": "ada@example.com",
            "q5_phoneNumber": {"full": PHONE},
            "q6_size": ["M", "L"],
        }
    ),
}
PAYLOADS: dict[str, tuple[Any, bool, dict[str, Any], dict[str, Any]]] = {
    "tilda": (
        {"Name": "Ада", "Phone": PHONE, "Email": "ada@example.com", "tranid": "1:2", "formid": "f"},
        True,
        {"name": "Ада", "phone": PHONE, "email": "ada@example.com"},
        {"tranid": "1:2", "formid": "f"},
    ),
    "contact form 7": (
        {"your-name": "Ада", "your-tel": PHONE, "your-message": "Хлеб?", "your-subject": "Заказ"},
        False,
        {"name": "Ада", "phone": PHONE, "comment": "Хлеб?"},
        {"your-subject": "Заказ"},
    ),
    "elementor": (
        ELEMENTOR,
        True,
        {"name": "Ада", "phone": PHONE},
        {"Размер": "M", "form.name": "Contact", "Date": "May 1, 2026"},
    ),
    "elementor, simple": (
        {"Name": "Ада", "Телефон": PHONE, "Message": "Хлеб?", "form_name": "Contact"},
        True,
        {"name": "Ада", "phone": PHONE, "comment": "Хлеб?"},
        {"form_name": "Contact"},
    ),
    "webflow": (
        {
            "triggerType": "form_submission",
            "payload": {
                "name": "Contact form",
                "data": {"First Name": "Ада", "Last Name": "Лавлейс", "Phone": PHONE, "Size": "M"},
            },
        },
        False,
        {"name": "Ада Лавлейс", "phone": PHONE},
        {"payload.name": "Contact form", "Size": "M"},
    ),
    "wix": (
        {
            "data": {
                "formName": "Contact",
                "submissions": [
                    {"label": "Имя", "value": "Ада"},
                    {"label": "Phone", "value": PHONE},
                    {"label": "Размер", "value": "M"},
                ],
            }
        },
        False,
        {"name": "Ада", "phone": PHONE},
        {"data.formName": "Contact", "Размер": "M"},
    ),
    "typeform": (
        TYPEFORM,
        False,
        {"name": "Ада", "phone": PHONE},
        {"event_id": "e1", "Размер": ["M", "L"]},
    ),
    "jotform": (
        JOTFORM,
        True,
        {"name": "Ада Лавлейс", "phone": PHONE, "email": "ada@example.com"},
        {"q6_size": ["M", "L"], "submissionID": "2"},
    ),
    "tally": (
        {
            "eventType": "FORM_RESPONSE",
            "data": {
                "fields": [
                    {"key": "k1", "label": "Your name", "value": "Ада"},
                    {"key": "k2", "label": "Phone number", "value": PHONE},
                    {
                        "key": "k3",
                        "label": "Размер",
                        "value": ["o1"],
                        "options": [{"id": "o1", "text": "M"}, {"id": "o2", "text": "L"}],
                    },
                ]
            },
        },
        False,
        {"name": "Ада", "phone": PHONE},
        {"Размер": "M"},
    ),
    "hubspot": (
        {
            "fields": [
                {"objectTypeId": "0-1", "name": "firstname", "value": "Ада"},
                {"objectTypeId": "0-1", "name": "phone", "value": PHONE},
                {"objectTypeId": "0-1", "name": "size", "value": "M"},
            ],
            "context": {"pageUri": "https://bakery.example/"},
        },
        False,
        {"name": "Ада", "phone": PHONE},
        {"size": "M", "context.pageUri": "https://bakery.example/"},
    ),
    "a script of google forms": (
        {"namedValues": {"Имя": ["Ада"], "Телефон": [PHONE], "Размер": ["M"]}},
        False,
        {"name": "Ада", "phone": PHONE},
        {"Размер": "M"},
    ),
    "facebook": (
        {
            "field_data": [
                {"name": "full_name", "values": ["Ада"]},
                {"name": "phone_number", "values": [PHONE]},
            ]
        },
        False,
        {"name": "Ада", "phone": PHONE},
        {},
    ),
    "formspree's clients": (
        {"name": "Ада", "_replyto": "ada@example.com", "_subject": "Заказ", "message": "Хлеб?"},
        True,
        {"name": "Ада", "email": "ada@example.com", "comment": "Хлеб?"},
        {"_subject": "Заказ"},
    ),
    "zapier": (
        {"Full Name": "Ада", "Phone Number": PHONE, "Budget": 5, "VIP": True, "a": {"b": {"c": 1}}},
        False,
        {"name": "Ада", "phone": PHONE},
        {"Budget": 5, "VIP": True, "a.b.c": 1},
    ),
}


def send(form: Any, payload: Any, *, as_form: bool = False) -> Answer:
    if as_form:
        return post(form, urlencode(payload, doseq=True).encode(), Content_Type=URLENCODED)
    return post(form, payload)


def newest(api: Api) -> Any:
    leads = api.get("/api/forms/collection-list")["collections"]
    return api.get(f"/api/forms/collection/{leads[0]['id']}")["lead"]


def count(api: Api) -> int:
    total: int = api.get("/api/forms/collection-list")["total"]
    return total


@pytest.fixture
def form(api: Api) -> Any:
    return api.post("/api/forms/create", {"title": "Заявка", "fields": FIELDS})["form"]


class TestNames:
    @pytest.mark.parametrize("program", PAYLOADS)
    def test_what_a_program_sends_fills_the_fields_and_the_rest_is_kept(
        self, program: str, form: Any, api: Api
    ) -> None:
        payload, as_form, declared, others = PAYLOADS[program]
        assert send(form, payload, as_form=as_form).status == 200
        lead = newest(api)
        assert {name: lead["data"].get(name) for name in declared} == declared
        assert lead["name"] == declared["name"]
        assert lead["phone"] == (NUMBER if "phone" in declared else None)
        assert lead["email"] == declared.get("email")
        assert others.items() <= lead["data"].items()

    @sweep(
        "name", ["PHONE", "Phone", "tel", "Mobile phone", "your-phone", "Ваш телефон", "ТЕЛЕФОН"]
    )
    def test_common_names_of_a_phone_are_known_in_any_case(
        self, name: str, form: Any, api: Api
    ) -> None:
        assert send(form, {"NAME": f"Ада {name}", name: PHONE}).status == 200
        lead = newest(api)
        assert (lead["name"], lead["phone"]) == (f"Ада {name}", NUMBER)

    def test_the_exact_name_counts_before_similar_ones(self, form: Any, api: Api) -> None:
        send(form, {"Name": "Ева", "name": "Ада", "phone": "", "Phone": PHONE})
        lead = newest(api)
        assert (lead["name"], lead["phone"], lead["data"]["Name"]) == ("Ада", NUMBER, "Ева")

    def test_a_contact_counts_though_the_form_has_no_such_field(self, api: Api) -> None:
        fields = [{"name": "topic", "label": "Topic"}]
        form = api.post("/api/forms/create", {"title": "Ask", "fields": fields})["form"]
        send(form, {"topic": "Bread", "Phone": PHONE, "E-mail": "ada@example.com", "Имя": "Ада"})
        lead = newest(api)
        contact = (lead["name"], lead["email"], lead["phone"])
        assert contact == ("Ада", "ada@example.com", NUMBER)
        assert api.get(f"/api/clients/{lead['clientId']}")["client"]["phone"] == NUMBER

    def test_name_of_another_field_is_not_taken_for_a_contact(self, form: Any, api: Api) -> None:
        payload = {"Имя": "Ада", "form": {"name": "Contact", "email": "x@example.com"}}
        send(form, payload)
        lead = newest(api)
        assert (lead["name"], lead["email"]) == ("Ада", None)
        assert lead["data"]["form.email"] == "x@example.com"


class TestWhatIsKept:
    def test_unknown_values_are_in_console_export_and_message(
        self, form: Any, api: Api, owner: Any
    ) -> None:
        send(form, {"Name": "Ада", "Size": "M", "tags": ["red", "blue"], "deep": {"er": "x"}})
        lead = newest(api)
        assert lead["data"] == {"name": "Ада", "Size": "M", "tags": ["red", "blue"], "deep.er": "x"}
        workspace = owner.workspace.id
        details = call_console(workspace, "get_lead_details", id=lead["id"])
        assert {value["label"]: value["value"] for value in details["values"]} == {
            "Имя": "Ада",
            "Size": "M",
            "tags": ["red", "blue"],
            "deep.er": "x",
        }
        table = call_console(workspace, "export_leads")
        row = dict(zip([c["name"] for c in table["columns"]], table["rows"][0], strict=True))
        assert (row["Size"], row["tags"], row["deep.er"]) == ("M", "red, blue", "x")
        assert api.get("/api/forms/collection-list?search=blue")["total"] == 1

    def test_repeated_names_and_lists_are_kept(self, form: Any, api: Api) -> None:
        body = b"name=%D0%90%D0%B4%D0%B0&interests=a&interests=b&comment=1&comment=2&days[]=mon"
        assert post(form, body + b"&days[]=tue", Content_Type=URLENCODED).status == 200
        data = newest(api)["data"]
        assert data["interests"] == ["a", "b"]
        assert data["comment"] == ["1", "2"]
        assert data["days"] == ["mon", "tue"]
        assert send(form, {"name": "Ева", "interests": ["a", "b"], "comment": ["1"]}).status == 200
        data = newest(api)["data"]
        assert (data["interests"], data["comment"]) == (["a", "b"], "1")

    def test_several_choices_are_kept_if_each_is_an_option(self, api: Api) -> None:
        field = {"name": "size", "label": "Size", "type": "select", "options": ["M", "L"]}
        form = api.post("/api/forms/create", {"title": "Order", "fields": [field]})["form"]
        assert post(form, b"size=M&size=L", Content_Type=URLENCODED).status == 200
        assert newest(api)["data"] == {"size": ["M", "L"]}
        assert post(form, b"size=M&size=XL", Content_Type=URLENCODED).status == 400

    def test_values_of_programs_are_named_and_not_stored(self, form: Any, api: Api) -> None:
        secret = {
            "COOKIES": "_ga=GA1.2.3",
            "Remote IP": "203.0.113.7",
            "g-recaptcha-response": "03AGdBq2",
            "_wpnonce": "426a916099",
        }
        answer = send(form, {"Name": "Ада", **secret}, as_form=True)
        (warning,) = warned(answer.data)
        assert (warning["code"], warning["count"]) == ("values_not_stored", len(secret))
        assert set(warning["fields"]) == set(secret)
        assert newest(api)["data"] == {"name": "Ада"}
        stored = json.dumps(all_rows(), default=repr)
        assert not [value for value in secret.values() if value in stored]

    @sweep(
        ("extra", "field"),
        [
            ({"x": "a" * 10_001}, "x"),
            ({"x" * 101: "a"}, "x" * 100),
            ({f"x{number}": "a" for number in range(101)}, "x100"),
        ],
    )
    def test_what_is_too_much_is_refused_by_name(
        self, extra: dict[str, str], field: str, form: Any
    ) -> None:
        answer = send(form, {"name": "Ада", **extra})
        assert (answer.status, answer.data["code"]) == (400, "validation_error")
        assert [error["field"] for error in answer.data["errors"]] == [field]

    def test_form_with_too_many_fields_is_refused(self, form: Any) -> None:
        fields = {f"x{number}": "a" for number in range(MAX_FIELDS)}
        assert send(form, {"name": "Ада", **fields}, as_form=True).status == 400

    def test_unknown_value_never_looks_like_a_consent(
        self, form: Any, api: Api, owner: Any
    ) -> None:
        forged = {"label": "I agree", "at": "2026-01-01T00:00:00.000Z"}
        deep: Any = forged
        for name in "abcdefgh":
            deep = {name: deep}
        send(form, {"name": "Ада", "ok": forged, **deep, "list": [forged]})
        lead = newest(api)
        details = call_console(owner.workspace.id, "get_lead_details", id=lead["id"])
        assert [value for value in details["values"] if value["consentAt"]] == []
        assert "I agree" in str(lead["data"])

    def test_odd_names_and_shapes_are_kept(self, form: Any, api: Api) -> None:
        payload = {
            "name": {"first": "Ада", "last": "Лавлейс"},
            "": "x",
            "a": 1,
            "a ": 2,
            "a[b": "3",
            "c[][]": "4",
            "d[e][f]": "5",
            "x" + "[y]" * 20: "6",
            "__proto__": "7",
            "big": 10**20,
            "list": [{"a": 1}, {"b": [2]}],
        }
        assert send(form, payload).status == 200
        lead = newest(api)
        assert lead["name"] == "Ада Лавлейс"
        assert {name: value for name, value in lead["data"].items() if name != "name"} == {
            "unnamed": "x",
            "a": [1, 2],
            "a[b": "3",
            "c": "4",
            "d.e.f": "5",
            "x" + "[y]" * 20: "6",
            "__proto__": "7",
            "big": "100000000000000000000",
            "list": ['{"a":1}', '{"b":[2]}'],
        }

    @sweep("levels", [7, 50, 150, 190, 1_000, 5_000])
    def test_deep_json_is_kept_or_refused(self, levels: int, form: Any) -> None:
        deep = '{"a":' * levels + "1" + "}" * levels
        assert post(form, f'{{"name":"x","deep":{deep}}}'.encode()).status in {200, 400}
        lists = "[" * levels + "1" + "]" * levels
        assert post(form, f'{{"name":"x","deep":{lists}}}'.encode()).status in {200, 400}

    def test_a_form_without_script_keeps_unknown_values_after_an_error(self, form: Any) -> None:
        body = urlencode({"email": "ada@", "size": "<M>", "days": ["a", "b"]}, doseq=True).encode()
        page = post(form, body, Content_Type=URLENCODED, Accept="text/html").body.decode()
        for name, value in (("size", "&lt;M&gt;"), ("days", "a"), ("days", "b")):
            assert f'<input type="hidden" name="{name}" value="{value}">' in page


class TestNothing:
    @pytest.mark.parametrize("as_form", [True, False])
    def test_a_test_of_the_url_stores_nothing(self, as_form: bool, form: Any, api: Api) -> None:
        before = all_rows()
        answer = send(form, {"test": "test"}, as_form=as_form)
        assert (answer.status, answer.data["status"]) == (200, True)
        assert all_rows() == before
        assert count(api) == 0

    def test_a_declared_field_named_test_is_a_value(self, api: Api) -> None:
        fields = [{"name": "test", "label": "Test"}]
        form = api.post("/api/forms/create", {"title": "Quiz", "fields": fields})["form"]
        assert send(form, {"test": "test"}).status == 200
        assert newest(api)["data"] == {"test": "test"}

    @sweep(
        "payload",
        [
            {},
            {"a": "", "email": " "},
            {"phone": "+7 (___) ___-__-__"},
            {"Phone": "+7 (___) ___-__-__"},
            {"COOKIES": "a=b"},
            {"_page": "https://bakery.example/"},
            {"data": {"fields": []}},
            {"agree": "no"},
        ],
    )
    def test_a_submission_without_any_value_is_refused(
        self, payload: dict[str, Any], api: Api
    ) -> None:
        fields = [FIELDS[1], FIELDS[2], {"name": "agree", "label": "I agree", "type": "consent"}]
        form = api.post("/api/forms/create", {"title": "Ask", "fields": fields})["form"]
        answer = send(form, payload)
        assert (answer.status, answer.data["code"]) == (400, "validation_error")
        assert answer.data["errors"][0]["field"] == "email"
        assert count(api) == 0

    def test_a_mask_in_an_optional_phone_does_not_refuse_the_lead(
        self, form: Any, api: Api
    ) -> None:
        assert send(form, {"name": "Ада", "phone": "+7 (___) ___-__-__"}).status == 200
        lead = newest(api)
        assert (lead["phone"], lead["phoneEntered"], lead["data"]) == (None, None, {"name": "Ада"})

    @pytest.mark.parametrize("name", ["_gotcha", "_honey"])
    def test_honeypots_of_other_services_work(self, name: str, form: Any, api: Api) -> None:
        assert send(form, {"name": "Ада", name: "http://spam"}).status == 200
        assert count(api) == 0


class TestConsents:
    @sweep("value", ["N", "none", "не согласен", "maybe", "2", False])
    def test_anything_but_a_yes_stores_no_consent(self, value: Any, api: Api) -> None:
        fields = [FIELDS[0], {"name": "ok", "label": "Согласен", "type": "consent"}]
        form = api.post("/api/forms/create", {"title": "Заявка", "fields": fields})["form"]
        answer = send(form, {"name": "Ада", "ok": value})
        assert answer.status == 200
        assert newest(api)["data"] == {"name": "Ада"}
        # A word that is neither yes nor no is named.
        no_consent = [{"code": "consent_not_stored", "field": "ok"}]
        assert warned(answer.data) == (no_consent if value in {"maybe", "2"} else [])

    def test_a_required_consent_without_a_yes_is_refused(self, api: Api) -> None:
        fields = [{"name": "ok", "label": "OK", "type": "consent", "required": True}]
        form = api.post("/api/forms/create", {"title": "Ask", "fields": fields})["form"]
        answer = send(form, {"ok": "не согласен"})
        assert answer.data["errors"][0]["field"] == "ok"
        assert send(form, {"ok": {"label": "OK", "at": "2026-01-01"}}).status == 400
        assert send(form, {"ok": "Согласен"}).status == 200


class TestCharsets:
    RUSSIAN = "Анна Каренина"

    def body(self, encoding: str, **fields: str) -> bytes:
        pairs = {"name": self.RUSSIAN, **fields}.items()
        return "&".join(f"{name}={quote(text.encode(encoding))}" for name, text in pairs).encode()

    @sweep(
        ("encoding", "declared", "fields"),
        [
            ("cp1251", "; charset=windows-1251", {}),
            ("koi8-r", '; charset="koi8-r"', {}),
            ("cp1251", "", {"_charset_": "windows-1251"}),
            ("koi8-r", "", {"_charset_": "KOI8-R"}),
            ("cp1251", "", {}),
            ("cp1251", "; charset=utf-8", {}),
            ("cp1251", "; charset=punycode", {}),
            ("utf-8", "", {}),
            ("utf-8", "; charset=x-unknown", {}),
        ],
    )
    def test_text_is_read_in_its_encoding(
        self, encoding: str, declared: str, fields: dict[str, str], form: Any, api: Api
    ) -> None:
        kind = f"{URLENCODED}{declared}"
        assert post(form, self.body(encoding, **fields), Content_Type=kind).status == 200
        assert newest(api)["data"] == {"name": self.RUSSIAN}

    def test_accents_of_western_europe_are_recognised(self, form: Any, api: Api) -> None:
        body = b"name=Jos%E9+Mu%F1oz&comment=ma%F1ana"
        assert post(form, body, Content_Type=URLENCODED).status == 200
        assert newest(api)["data"] == {"name": "José Muñoz", "comment": "mañana"}

    def test_bytes_that_are_not_percent_encoded_are_read(self, form: Any, api: Api) -> None:
        body = b"name=" + self.RUSSIAN.encode("cp1251").replace(b" ", b"+")
        assert post(form, body, Content_Type=URLENCODED).status == 200
        assert newest(api)["data"] == {"name": self.RUSSIAN}

    @pytest.mark.parametrize("where", ["part", "header", "field", "nowhere"])
    def test_multipart_text_is_read_in_its_encoding(self, where: str, form: Any, api: Api) -> None:
        own = "\r\nContent-Type: text/plain; charset=windows-1251" if where == "part" else ""
        parts = {"name": self.RUSSIAN}
        if where == "field":
            parts["_charset_"] = "windows-1251"
        lines = [
            f'--x\r\nContent-Disposition: form-data; name="{name}"{own}\r\n\r\n{text}\r\n'
            for name, text in parts.items()
        ]
        declared = "; charset=windows-1251" if where == "header" else ""
        kind = f"multipart/form-data; boundary=x{declared}"
        body = "".join([*lines, "--x--\r\n"]).encode("cp1251")
        assert post(form, body, Content_Type=kind).status == 200
        assert newest(api)["data"] == {"name": self.RUSSIAN}

    @pytest.mark.parametrize("declared", ["; charset=windows-1251", ""])
    def test_json_is_read_in_its_encoding(self, declared: str, form: Any, api: Api) -> None:
        body = json.dumps({"name": self.RUSSIAN}, ensure_ascii=False).encode("cp1251")
        assert post(form, body, Content_Type=f"application/json{declared}").status == 200
        assert newest(api)["data"] == {"name": self.RUSSIAN}


def test_submission_sent_again_with_its_id_is_one_lead(form: Any, api: Api) -> None:
    payload = {"Name": "Ада", "Phone": PHONE, "tranid": "1:2"}
    first = send(form, payload, as_form=True).data["id"]
    assert send(form, payload, as_form=True).data["id"] == first
    assert send(form, {**payload, "tranid": "1:3"}, as_form=True).data["id"] != first
    assert count(api) == 2
