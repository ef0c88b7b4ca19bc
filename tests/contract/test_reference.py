"""Every example of the reference runs as it is printed, and is answered as it says."""

import base64
import contextlib
import hashlib
import io
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic_core import from_json

import app as application
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from chalicelib.core.settings import settings
from chalicelib.transports.api_docs import openapi, prose, reference, samples
from chalicelib.transports.api_docs.model import OperationDoc, Reference
from chalicelib.transports.chat import chat_route
from infra.local import devserver
from infra.local.reference import DOCUMENT, markdown
from tests.conftest import Api, Time
from tests.contract.conftest import World
from tests.factories.examples import submit
from tests.support.effort import slow_but_for
from tests.support.patience import PATIENCE
from tests.support.restoring import Snapshots
from tests.transports.conftest import LocalServer, serving

STALE = "The reference is stale: run make reference, and look at what has changed."
WHOLE = openapi.document()
DOCUMENTED = Reference(WHOLE)
"""At the stand-in for the base URL; the one that is called, the tests fill in."""
EACH = {operation.name: operation for operation in DOCUMENTED.operations}
QUICK = {area.operations[0].name for area in DOCUMENTED.areas}
"""Operations whose example is always run in each language; the others in curl."""
every_example = pytest.mark.parametrize("name", EACH)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDES = ["start", *(guide.name for guide in prose.GUIDES), "chat", "public"]


@pytest.fixture(scope="module")
def server(_server: Callable[[], None]) -> Iterator[LocalServer]:
    """The whole service, on loopback."""
    with serving(application.app, *devserver.ROUTES) as served:
        yield served


@dataclass(frozen=True)
class Reader:
    """Somebody who tries the examples: with a key, and ids of their own."""

    base_url: str
    world: World
    placeholders: dict[str, str]

    def fill(self, text: str) -> str:
        """Put the base URL and ids where an example says to."""
        text = text.replace(reference.SERVER, self.base_url)
        return re.sub(r"\b[A-Z]+(?:_[A-Z]+)+\b", self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        return self.placeholders.get(found[0], found[0])


@pytest.fixture
def new_reader(
    time: Time,
    restore: Callable[..., World],
    snapshots: Snapshots,
    empty: Callable[[], None],
    server: LocalServer,
) -> Callable[[], Reader]:
    """Make a workspace with one of everything, at the same moment for everybody."""
    url = f"http://127.0.0.1:{server.port}"

    def make() -> Reader:
        world = restore("reference")
        return Reader(url, world, {**world.things.placeholders, **_more(world)})

    def made_or_put_back() -> Reader:
        empty()
        return replace(snapshots.once("reader", make), base_url=url)

    return made_or_put_back


def _more(world: World) -> dict[str, str]:
    """Make what examples ask for beyond one of everything; return the placeholders of it."""
    api, things = world.api, world.things
    submit(things.form, name="Ada", email="ada@example.com", phone="8 495 123-45-67")
    post = {"title": "Why rye takes two days", "content": "Because.", "status": "published"}
    api.post("/api/admin/blog/create", post)
    about = "<h1>About us</h1><p>Rye since 1998.</p>"
    api.post("/api/pages/save-html", {"id": things.page, "html": about})
    file = {"name": "prices.txt", "content": "UnllLCA5MA==", "folderId": things.folder}
    api.post("/api/files/upload", file)
    booking = {
        "serviceId": things.service,
        "startAt": "2027-03-02T17:00:00+03:00",
        "client": {"name": "Grace", "email": "grace@example.com"},
    }
    booked = api.post("/api/public/bookings", booking)
    return {
        "CANCEL_TOKEN": booked["cancelToken"],
        "CALENDAR_FILE": booked["icsUrl"].rpartition("/")[2],
    }


@pytest.fixture
def reader(new_reader: Callable[[], Reader]) -> Reader:
    """A workspace with one of everything."""
    return new_reader()


def shell(reader: Reader, command: str) -> str:
    """Run a command as somebody does who has the key in the environment."""
    environment = {"API_KEY": reader.world.token, "PATH": "/usr/bin:/bin", "no_proxy": "127.0.0.1"}
    done = subprocess.run(
        ["bash", "-euc", reader.fill(command)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(reader: Reader, program: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a Python program, and return what it prints."""
    monkeypatch.setenv("API_KEY", reader.world.token)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(reader.fill(program), "example", "exec"), {"__name__": "__main__"})  # noqa: S102  ours
    return printed.getvalue()


def succeeded(operation: OperationDoc, text: str) -> bool:
    """Whether a call was answered as it should be."""
    if operation.answer_type == "application/json":
        return json.loads(text)["data"]["status"] is True
    return "BEGIN:VCALENDAR" in text or '"type":"done"' in text


@every_example
def test_the_curl_line_runs_as_it_is_printed(name: str, reader: Reader) -> None:
    command = samples.curl(DOCUMENTED.base_url, EACH[name])
    assert succeeded(EACH[name], shell(reader, command))


@pytest.mark.parametrize("name", slow_but_for(QUICK, EACH))
def test_the_python_program_runs_as_it_is_printed(
    name: str, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = run(reader, samples.python(DOCUMENTED.base_url, EACH[name]), monkeypatch)
    kinds = ("'status': True", "BEGIN:VCALENDAR", "'type': 'done'")
    assert any(kind in printed for kind in kinds), printed


@pytest.mark.parametrize("name", slow_but_for(QUICK, [n for n, each in EACH.items() if each.tool]))
def test_the_tool_call_is_answered(name: str, reader: Reader) -> None:
    message = samples.tool_call(EACH[name])
    assert message is not None
    answer = reader.world.api.call("POST", "/api/mcp", reader.fill(message).encode())
    result = json.loads(answer.body)["result"]
    assert result["isError"] is False, result
    assert succeeded(EACH[name], result["content"][0]["text"])


class TestAnswers:
    def test_what_is_shown_has_the_shape_of_what_is_answered_now(
        self, new_reader: Callable[[], Reader], request: pytest.FixtureRequest
    ) -> None:
        recorded = {name: recording(new_reader(), name) for name in EACH}
        if request.config.getoption("--update-snapshots"):
            text = json.dumps(recorded, ensure_ascii=False, indent=1)
            openapi.ANSWERS.write_text(text + "\n")
            return
        shown = from_json(openapi.ANSWERS.read_bytes())
        assert shown.keys() == recorded.keys(), STALE
        changed = [name for name in EACH if not fits(shown[name], recorded[name])]
        assert changed == [], STALE

    @every_example
    def test_what_is_shown_fits_the_schema(self, name: str) -> None:
        shown = from_json(openapi.ANSWERS.read_bytes())[name]
        entry = WHOLE["paths"][EACH[name].path][EACH[name].method.lower()]
        content = entry["responses"]["200"]["content"][EACH[name].answer_type]
        assert content["example"] == shown
        whole = {**content["schema"], "components": WHOLE["components"]}
        Draft202012Validator(whole).validate(shown)


def recording(reader: Reader, name: str) -> Any:
    """Return what an example is answered with, as the reference shows it."""
    text = shell(reader, samples.curl(DOCUMENTED.base_url, EACH[name]))
    for own in (reader.base_url, settings().public_url):
        text = text.replace(own, reference.SERVER)
    for pattern, instead in OWN.items():
        text = re.sub(pattern, instead, text)
    tokens = dict.fromkeys(found[0] for found in RANDOM.finditer(text))
    made_up = {token: _made_up(token, f"{name} {n}") for n, token in enumerate(tokens)}
    text = RANDOM.sub(lambda found: made_up[found[0]], text)
    return cut(json.loads(text)) if EACH[name].answer_type == "application/json" else text


OWN = {
    "(?i)[0-9A-Z]{26}@example[.]com": "eve@example.com",
    "Papers [0-9A-Z]{26}": "Papers",
    '(?<="sku":")[0-9A-Z]{26}': "LOAF-1",
}
"""What is made unique in each world, and reads badly."""
RANDOM = re.compile(r'(?<![\w-])(?=[\w-]*[0-9A-Z])[\w-]{20,}(?![\w-]|":)', re.ASCII)
"""Ids and tokens, which are others each time. The name of a field is none, however long it is."""
CROCKFORD = str.maketrans("ILOU", "WXYZ")
"""Letters that ids do not have."""
ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


def _made_up(token: str, seed: str) -> str:
    """Return a token that looks like one, and is the same in each recording."""
    digest = b"".join(hashlib.sha256(f"{seed} {n}".encode()).digest() for n in range(8))
    if ULID.fullmatch(token):
        return "01KJ" + base64.b32hexencode(digest).decode()[:22].translate(CROCKFORD)
    if re.fullmatch(r"[0-9a-f-]+", token):
        return digest.hex()[: len(token)]
    return base64.urlsafe_b64encode(digest).decode()[: len(token)]


def cut(value: Any) -> Any:
    """Return a value with at most two items of each list."""
    if isinstance(value, dict):
        return {name: cut(each) for name, each in value.items()}
    return [cut(each) for each in value[:2]] if isinstance(value, list) else value


def fits(shown: Any, real: Any) -> bool:
    """Whether a value has the shape of another one: fields, kinds, and what lists hold."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return shown.keys() == real.keys() and all(fits(shown[k], real[k]) for k in shown)
    if isinstance(shown, list) and isinstance(real, list):
        return bool(shown) == bool(real) and all(any(fits(s, r) for r in real) for s in shown)
    return type(shown) is type(real)


class TestGuides:
    @pytest.mark.parametrize("name", GUIDES)
    def test_their_examples_run_too(
        self, name: str, reader: Reader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for language, code in FENCE.findall(prose.guide(name, DOCUMENTED)):
            if language == "python":
                assert run(reader, code, monkeypatch)
            elif language == "json":
                json.loads(code)
            elif code.startswith("curl"):
                assert shell(reader, code)
            else:
                assert language == "sh"
                assert reference.SERVER in code or code.startswith("export API_KEY=")

    def test_the_failure_shown_is_the_one_that_is_answered(self, reader: Reader) -> None:
        blocks = [code for _, code in FENCE.findall(prose.guide("errors", DOCUMENTED))]
        number = next(n for n, code in enumerate(blocks) if code.startswith("curl"))
        answered = json.loads(shell(reader, blocks[number]))["data"]
        shown = json.loads(blocks[number + 1])["data"]
        assert shown | {"requestId": ""} == answered | {"requestId": ""}

    def test_every_link_leads_to_something(self) -> None:
        anchors = set(re.findall(r'id="([^"]+)"', page("")))
        for name in ["", *(guide.name for guide in prose.GUIDES), *EACH_AREA]:
            for path, anchor in re.findall(r'href="(/api/docs[^"#]*)?(?:#([^"]*))?"', page(name)):
                target = page(path.removeprefix("/api/docs").strip("/") if path else name)
                anchors = set(re.findall(r'id="([^"]+)"', target))
                assert not anchor or anchor in anchors, (name, path, anchor)


EACH_AREA = [area.name for area in DOCUMENTED.areas]


@cache
def page(name: str) -> str:
    """Return a page of the reference."""
    answer = Api(None).call("GET", f"/api/docs/{name}".rstrip("/"))
    assert answer.status == 200, name
    return answer.body.decode()


class TestIsWhole:
    def test_every_operation_for_keys_and_visitors_is_there_and_the_chat(self) -> None:
        declared = {o.name for o in REGISTRY.of(Audience.KEY, Audience.PUBLIC) if o.path}
        assert set(EACH) == declared | {"chat_stream"}
        assert EACH["chat_stream"].path == chat_route.PATH

    @every_example
    def test_an_area_shows_all_there_is_to_say(self, name: str) -> None:
        operation = EACH[name]
        html = page(operation.area)
        assert f'<h2 id="{name}">' in html
        for part in (operation.path, operation.tool, operation.scope):
            assert part is None or f"<code>{part}</code>" in html
        for field in operation.inputs:
            assert f'<dt id="{name}.{field.name}">' in html
        for field in operation.outputs:
            assert f'<dt id="{name}.data.{field.name}">' in html
        block = html[html.index(f'<h2 id="{name}">') :]
        block = block[: block.index("</section>")]
        assert operation.failures
        for failure in operation.failures:
            assert f"<strong>{failure.status}</strong>" in block
            assert all(f"<code>{code}</code>" in block for code in failure.codes)

    def test_every_code_is_explained(self) -> None:
        known = {code.code for code in DOCUMENTED.codes}
        used = {code for each in EACH.values() for f in each.failures for code in f.codes}
        assert used <= known
        html = page("errors")
        assert all(f"<code>{code}</code>" in html for code in known)


def test_the_committed_reference_is_what_the_registry_says() -> None:
    assert DOCUMENT.read_text() == markdown(), STALE
