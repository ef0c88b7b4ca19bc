"""Each example of the API reference runs as printed and returns the shown response."""

import base64
import contextlib
import hashlib
import io
import json
import re
import subprocess
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from playwright._impl._driver import compute_driver_executable
from pydantic_core import from_json

from chalicelib.core import manifest
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from chalicelib.core.settings import settings
from chalicelib.transports.api_docs import openapi, prose, samples
from chalicelib.transports.chat import chat_route
from infra.local.reference import DOCUMENT, markdown
from tests.conftest import Api
from tests.contract.conftest import (
    DOCUMENTED,
    EACH,
    WHOLE,
    ExampleRunner,
    every_example,
    shell,
    succeeded,
)
from tests.support.effort import slow_but_for
from tests.support.patience import PATIENCE
from tests.support.sweep import sweep

pytestmark = pytest.mark.usefixtures("telegram")

STALE = "The reference is stale: run make update, and look at what has changed."
SHOWN = from_json(openapi.ANSWERS.read_bytes())
QUICK = {area.operations[0].name for area in DOCUMENTED.areas}
"""Operations whose examples always run in every language. Other examples run only with curl."""
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDES = ["start", *(guide.name for guide in prose.GUIDES), "chat", "public"]


def run(runner: ExampleRunner, program: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a Python program, and return its output."""
    monkeypatch.setenv("API_KEY", runner.world.token)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(runner.fill(program), "example", "exec"), {"__name__": "__main__"})  # noqa: S102  ours
    return printed.getvalue()


@every_example
def test_the_curl_command_runs_as_printed(name: str, runner: ExampleRunner) -> None:
    command = samples.curl(EACH[name])
    assert succeeded(EACH[name], shell(runner, command))


@pytest.mark.parametrize("name", slow_but_for(QUICK, EACH))
def test_the_python_program_runs_as_printed(
    name: str, runner: ExampleRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = run(runner, samples.python(EACH[name]), monkeypatch)
    kinds = ("'status': True", "BEGIN:VCALENDAR", "'type': 'done'")
    assert any(kind in printed for kind in kinds), printed


def run_javascript(runner: ExampleRunner, program: str) -> str:
    """Run a JavaScript module, and return its output."""
    node, _ = compute_driver_executable()  # Playwright brings Node.js, so none must be installed.
    process = subprocess.run(
        [node, "--input-type=module", "--eval", runner.fill(program)],
        env={"API_KEY": runner.world.token},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("name", slow_but_for(QUICK, EACH))
def test_the_javascript_module_runs_as_printed(name: str, runner: ExampleRunner) -> None:
    printed = run_javascript(runner, samples.javascript(EACH[name]))
    kinds = ("status: true", "BEGIN:VCALENDAR", "type: 'done'")
    assert any(kind in printed for kind in kinds), printed


@pytest.mark.parametrize(
    "name", slow_but_for(QUICK, [n for n, entry in EACH.items() if entry.tool])
)
def test_the_tool_call_succeeds(name: str, runner: ExampleRunner) -> None:
    message = samples.tool_call(EACH[name])
    assert message is not None
    answer = runner.world.api.call("POST", "/api/mcp", runner.fill(message).encode())
    result = json.loads(answer.body)["result"]
    assert result["isError"] is False, result
    assert succeeded(EACH[name], result["content"][0]["text"])


class TestAnswers:
    def test_the_shown_answer_has_the_shape_of_what_is_answered_now(
        self, new_runner: Callable[[], ExampleRunner], update_snapshots: bool
    ) -> None:
        recorded = {name: recording(new_runner(), name) for name in EACH}
        if update_snapshots:
            # A response that still fits is not replaced, so that a difference shows what changed.
            known = from_json(openapi.ANSWERS.read_bytes())
            kept_answers = {
                name: known[name] if name in known and fits(known[name], real) else real
                for name, real in sorted(recorded.items())
            }
            text = json.dumps(kept_answers, ensure_ascii=False, indent=1)
            openapi.ANSWERS.write_text(text + "\n")
            return
        shown_answers = from_json(openapi.ANSWERS.read_bytes())
        differing = sorted(shown_answers.keys() ^ recorded.keys())
        assert differing == [], STALE
        changed = [name for name in EACH if not fits(shown_answers[name], recorded[name])]
        assert changed == [], STALE

    @sweep("name", EACH)
    def test_the_shown_answer_matches_the_schema(self, name: str) -> None:
        shown_answer = SHOWN[name]
        entry = WHOLE["paths"][EACH[name].path][EACH[name].method.lower()]
        content = entry["responses"]["200"]["content"][EACH[name].answer_type]
        assert content["example"] == shown_answer
        complete_schema = {**content["schema"], "components": WHOLE["components"]}
        Draft202012Validator(complete_schema).validate(shown_answer)


def recording(runner: ExampleRunner, name: str) -> Any:
    """Return the response to an example in the format of the reference."""
    text = shell(runner, samples.curl(EACH[name]))
    for own_url in (runner.base_url, settings().public_url):
        text = text.replace(own_url, manifest.SERVER)
    for pattern, instead in OWN.items():
        text = re.sub(pattern, instead, text)
    tokens = dict.fromkeys(match[0] for match in RANDOM.finditer(text))
    made_up = {token: _made_up(token, f"{name} {n}") for n, token in enumerate(tokens)}
    text = RANDOM.sub(lambda match: made_up[match[0]], text)
    return cut(json.loads(text)) if EACH[name].answer_type == "application/json" else text


OWN = {
    "(?i)[0-9A-Z]{26}@example[.]com": "eve@example.com",
    "Papers [0-9A-Z]{26}": "Papers",
    '(?<="sku":")[0-9A-Z]{26}': "LOAF-1",
}
"""Values that are unique in each world, and more readable replacements."""
RANDOM = re.compile(r'(?<![\w-])(?=[\w-]*[0-9A-Z])[\w-]{20,}(?![\w-]|":)', re.ASCII)
"""Ids and tokens, which differ in each run. Names of fields do not match, however long they are."""
CROCKFORD = str.maketrans("ILOU", "WXYZ")
"""Replacements for letters that ids do not use."""
ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


def _made_up(token: str, seed: str) -> str:
    """Return a token that looks real and is the same in each recording."""
    digest = b"".join(hashlib.sha256(f"{seed} {n}".encode()).digest() for n in range(8))
    if ULID.fullmatch(token):
        return "01KJ" + base64.b32hexencode(digest).decode()[:22].translate(CROCKFORD)
    if re.fullmatch(r"[0-9a-f-]+", token):
        return digest.hex()[: len(token)]
    return base64.urlsafe_b64encode(digest).decode()[: len(token)]


def cut(value: Any) -> Any:
    """Return a value with at most two items in each list."""
    if isinstance(value, dict):
        return {name: cut(value) for name, value in value.items()}
    return [cut(element) for element in value[:2]] if isinstance(value, list) else value


def fits(shown_value: Any, real: Any) -> bool:
    """Whether a value has the same shape as another: its fields, types, and types of list items."""
    if isinstance(shown_value, dict) and isinstance(real, dict):
        return shown_value.keys() == real.keys() and all(
            fits(shown_value[k], real[k]) for k in shown_value
        )
    if isinstance(shown_value, list) and isinstance(real, list):
        return bool(shown_value) == bool(real) and all(
            any(fits(s, r) for r in real) for s in shown_value
        )
    return type(shown_value) is type(real)


class TestGuides:
    @pytest.mark.parametrize("name", GUIDES)
    def test_the_examples_of_guides_run(
        self, name: str, runner: ExampleRunner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for language, code in FENCE.findall(prose.guide(name, DOCUMENTED)):
            if language == "python":
                assert run(runner, code, monkeypatch)
            elif language == "js":
                assert run_javascript(runner, code)
            elif language == "json":
                json.loads(code)
            elif code.startswith("curl"):
                assert shell(runner, code)
            else:
                assert language == "sh"
                assert manifest.SERVER in code or code.startswith("export API_KEY=")

    def test_the_failure_shown_is_the_real_one(self, runner: ExampleRunner) -> None:
        blocks = [code for _, code in FENCE.findall(prose.guide("errors", DOCUMENTED))]
        number = next(n for n, code in enumerate(blocks) if code.startswith("curl"))
        answered = json.loads(shell(runner, blocks[number]))["data"]
        shown_failure = json.loads(blocks[number + 1])["data"]
        assert shown_failure | {"requestId": ""} == answered | {"requestId": ""}

    def test_every_link_has_a_target(self) -> None:
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


class TestCompleteness:
    def test_the_reference_has_every_operation_for_keys_and_visitors_and_the_chat(self) -> None:
        declared = {o.name for o in REGISTRY.select(Audience.KEY, Audience.PUBLIC) if o.path}
        assert set(EACH) == declared | {"chat_stream"}
        assert EACH["chat_stream"].path == chat_route.PATH

    @sweep("name", EACH)
    def test_an_area_shows_every_part_of_its_operations(self, name: str) -> None:
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

    def test_every_error_code_is_explained(self) -> None:
        known = {code.code for code in DOCUMENTED.codes}
        used = {code for entry in EACH.values() for f in entry.failures for code in f.codes}
        assert used <= known
        html = page("errors")
        assert all(f"<code>{code}</code>" in html for code in known)


def test_the_committed_reference_matches_the_registry() -> None:
    assert DOCUMENT.read_text() == markdown(), STALE
