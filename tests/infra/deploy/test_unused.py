"""Clients behave with the zip's trimmed library data as they do with the full data."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import botocore
import pytest
import snowballstemmer
from botocore.loaders import Loader
from botocore.session import Session

from chalicelib.domains.knowledge.rules import word_stems
from infra.deploy.package import unused
from infra.deploy.package.build import ROOT

LIBRARIES = Path(botocore.__file__).parents[1]
REGIONS = ("eu-central-1", "cn-north-1", "us-gov-west-1", "mars-south-1")


def loaded(content: bytes) -> Any:
    return json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)


@pytest.fixture(scope="module")
def trimmed_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of botocore's data as the zip contains it."""
    folder = tmp_path_factory.mktemp("zip")
    for path in (LIBRARIES / "botocore" / "data").rglob("*.json*"):
        name = path.relative_to(LIBRARIES).as_posix()
        if unused.is_used(name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(unused.trimmed(name, path.read_bytes()))
    return folder / "botocore" / "data"


def session(data: Path) -> Session:
    new_session = Session()
    new_session.register_component(
        "data_loader", Loader([str(data)], include_default_search_paths=False)
    )
    new_session.set_credentials("test", "test")
    return new_session


class TestWhatIsLeftOut:
    def test_unused_services_and_languages_are_left_out(self) -> None:
        for name, used in {
            "botocore/data/dynamodb/2012-08-10/service-2.json.gz": True,
            "botocore/data/dynamodb/2012-08-10/endpoint-rule-set-1.json.gz": False,
            "botocore/data/ec2/2016-11-15/service-2.json.gz": False,
            "botocore/data/s3/2006-03-01/endpoint-rule-set-1.json.gz": True,
            "botocore/data/endpoints.json": True,
            "botocore/session.py": True,
            "babel/locale-data/ru.dat": True,
            "babel/locale-data/root.dat": True,
            "babel/locale-data/de.dat": False,
            "babel/global.dat": True,
            "icalendar/tests/conftest.py": False,
            "recurring_ical_events/test/conftest.py": False,
            "recurring_ical_events/query.py": True,
            "click/core.py": False,
            "cffi/api.py": False,
            "pycparser/c_parser.py": False,
            "babel/messages/pofile.py": False,
            "babel/dates.py": True,
            "_cffi_backend.cpython-313-x86_64-linux-gnu.so": True,
            "click-8.5.1.dist-info/METADATA": True,
            "dateutil/zoneinfo/dateutil-zoneinfo.tar.gz": False,
            "dateutil/zoneinfo/__init__.py": True,
            "phonenumbers/shortdata/__init__.py": True,
            "phonenumbers/shortdata/region_RU.py": False,
            "phonenumbers/data/region_RU.py": True,
            "python_calamine/_python_calamine.pyi": False,
            "botocore-1.44.5.dist-info/RECORD": False,
            "botocore-1.44.5.dist-info/METADATA": True,
            "icalendar/cal/event.py": True,
            "snowballstemmer/russian_stemmer.py": True,
            "snowballstemmer/serbian_stemmer.py": False,
            "snowballstemmer/basestemmer.py": True,
            "chalicelib/transports/web/static/base.css": True,
        }.items():
            assert unused.is_used(name) is used, name

    def test_services_with_clients_in_the_code_are_kept(self) -> None:
        """PynamoDB creates the client of DynamoDB."""
        used_services = {"dynamodb"}
        for path in (ROOT / "chalicelib").rglob("*.py"):
            used_services |= set(re.findall(r"""client\(\s*"([a-z0-9-]+)\"""", path.read_text()))
        assert {"s3", "bedrock-runtime"} <= used_services <= unused.SERVICES

    def test_no_file_but_botocores_data_is_changed(self) -> None:
        content = b'{"documentation": "stays"}'
        for name in ("botocore/session.py", "babel/global.dat", "chalicelib/openapi.json"):
            assert unused.trimmed(name, content) is content


class TestTrimmed:
    def test_the_stemmers_that_are_left_return_the_same_stems(self, tmp_path: Path) -> None:
        for path in (LIBRARIES / "snowballstemmer").glob("*.py"):
            name = path.relative_to(LIBRARIES).as_posix()
            if unused.is_used(name):
                (tmp_path / name).parent.mkdir(exist_ok=True)
                (tmp_path / name).write_bytes(unused.trimmed(name, path.read_bytes()))
        words = {"english": ["breads", "organisations"], "russian": ["хлебами", "организации"]}
        assert {*words} == {language for _, language in word_stems.LANGUAGES}
        script = (
            "import json, sys; sys.path.insert(0, sys.argv[1]); import snowballstemmer as s;"
            "assert s.__file__.startswith(sys.argv[1]);"
            "words = json.loads(sys.argv[2]);"
            "print(json.dumps([s.stemmer(k).stemWords(v) for k, v in words.items()]))"
        )
        command = [sys.executable, "-c", script, str(tmp_path), json.dumps(words)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        expected = [
            snowballstemmer.stemmer(language).stemWords(some) for language, some in words.items()
        ]
        assert json.loads(printed) == expected

    def test_trimmed_description_lacks_only_its_texts(self, trimmed_data: Path) -> None:
        for service in unused.SERVICES:
            for path in (trimmed_data / service).rglob("service-2.json.gz"):
                original = LIBRARIES / "botocore" / "data" / path.relative_to(trimmed_data)
                expected = drop_documentation(loaded(original.read_bytes()))
                packaged = loaded(path.read_bytes())
                for part in ("operations", "shapes") if service == "dynamodb" else ():
                    expected[part] = {name: expected[part][name] for name in packaged[part]}
                assert expected == packaged
                assert path.stat().st_size < original.stat().st_size / 2

    def test_every_operation_that_functions_may_call_has_all_its_shapes(
        self, trimmed_data: Path
    ) -> None:
        model = session(trimmed_data).get_service_model("dynamodb")
        assert {"ConditionCheckItem", *model.operation_names} == unused.OPERATIONS
        for name in model.operation_names:
            operation = model.operation_model(name)
            shapes = [operation.input_shape, operation.output_shape, *operation.error_shapes]
            seen: set[str] = set()
            while shapes:
                shape = shapes.pop()
                if shape.name in seen:
                    continue
                seen.add(shape.name)
                shapes += getattr(shape, "members", {}).values()
                shapes += [
                    getattr(shape, part)
                    for part in ("member", "key", "value")
                    if hasattr(shape, part)
                ]
            assert len(seen) > 2

    def test_client_has_every_method_of_dynamodb_that_the_code_names(
        self, trimmed_data: Path
    ) -> None:
        """PynamoDB calls operations by name; the code must not call others by their methods."""
        methods = set(methods_of(session(LIBRARIES / "botocore" / "data"), "dynamodb"))
        packaged = set(methods_of(session(trimmed_data), "dynamodb"))
        called: set[str] = set()
        for path in (ROOT / "chalicelib").rglob("*.py"):
            called |= set(re.findall(r"client\.(\w+)\(", path.read_text()))
        assert packaged < methods
        assert not called & (methods - packaged)

    @pytest.mark.parametrize("service", sorted(unused.SERVICES))
    def test_clients_have_the_same_endpoint_in_every_region(
        self, trimmed_data: Path, service: str
    ) -> None:
        original, brief = session(LIBRARIES / "botocore" / "data"), session(trimmed_data)
        for region in REGIONS:
            assert place(brief, service, region) == place(original, service, region)

    @pytest.mark.parametrize("service", sorted(unused.SERVICES))
    def test_clients_send_the_same_requests(self, trimmed_data: Path, service: str) -> None:
        original, brief = session(LIBRARIES / "botocore" / "data"), session(trimmed_data)
        assert sent_request(brief, service) == sent_request(original, service)

    def test_the_same_data_makes_the_same_bytes(self) -> None:
        name = "botocore/data/sts/2011-06-15/service-2.json.gz"
        content = (LIBRARIES / name).read_bytes()
        assert unused.trimmed(name, content) == unused.trimmed(name, content)


def drop_documentation(node: Any) -> Any:
    """Members named "documentation" would be objects, not texts."""
    match node:
        case dict():
            texts = {k for k, v in node.items() if k == "documentation" and isinstance(v, str)}
            fields = {k: v for k, v in node.items() if k not in texts}
            return {
                k: v if k == unused.MANUAL_IS_READ else drop_documentation(v)
                for k, v in fields.items()
            }
        case list():
            return [drop_documentation(child) for child in node]
    return node


def place(client_session: Session, service: str, region: str) -> tuple[str, ...]:
    """Return the endpoint of a client's requests, and the identity that signs them."""
    client = client_session.create_client(service, region)
    signer = client._request_signer
    return (
        client.meta.endpoint_url,
        client.meta.partition,
        signer.signing_name,
        signer.region_name,
        *(dir(client) if service != "dynamodb" else ()),
    )


def methods_of(new_session: Session, service: str) -> list[str]:
    """Return the methods of a client that call operations."""
    return list(new_session.create_client(service, "eu-central-1").meta.method_to_api_mapping)


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "bedrock-runtime": ("converse_stream", {"modelId": "m", "messages": []}),
    "cloudfront": ("get_distribution_tenant", {"Identifier": "dev-one"}),
    "dynamodb": ("get_item", {"TableName": "t", "Key": {"pk": {"S": "a"}}}),
    "s3": ("put_object", {"Bucket": "ours", "Key": "k", "Body": b"x", "ExpectedBucketOwner": "1"}),
    "secretsmanager": ("get_secret_value", {"SecretId": "arn:aws:secretsmanager:a:1:secret:k"}),
    "sesv2": ("send_email", {"Content": {"Raw": {"Data": b"x"}}}),
    "sqs": ("send_message", {"QueueUrl": "https://sqs.a.amazonaws.com/1/q", "MessageBody": "x"}),
    "sts": ("get_caller_identity", {}),
}


class _Sent(Exception):  # noqa: N818  no error
    """Ends a call before the request is answered, and contains the request."""


def sent_request(client_session: Session, service: str) -> tuple[Any, ...]:
    """Return the request that a client sends for a call, without its time stamps."""
    client = client_session.create_client(service, "eu-central-1")

    def stop(request: Any, **_: Any) -> None:
        body = request.body
        content = body if isinstance(body, bytes | str | None) else body.read()
        raise _Sent(request.method, request.url, content)

    client.meta.events.register_first("before-send", stop)
    name, arguments = CALLS[service]
    with pytest.raises(_Sent) as request:
        getattr(client, name)(**arguments)
    return request.value.args


CREATES_CLIENTS = """
import sys
from botocore.session import Session
client = Session().create_client("dynamodb", "eu-central-1")
assert "html.parser" not in sys.modules, "botocore's documentation was imported"
assert client.get_paginator("query")
import boto3
for service in sys.argv[1:]:
    boto3.client(service, "eu-central-1")
print(len(sys.argv[1:]), str(client.get_item.__doc__) == "")
"""


def test_clients_are_created_without_the_documentation(tmp_path: Path) -> None:
    for path in (LIBRARIES / "botocore").rglob("*"):
        name = path.relative_to(LIBRARIES).as_posix()
        if path.is_file() and path.suffix != ".pyc" and unused.is_used(name):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(unused.trimmed(name, path.read_bytes()))
    command = [sys.executable, "-c", CREATES_CLIENTS, *sorted(unused.SERVICES)]
    env = {"PYTHONPATH": str(tmp_path), "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    assert subprocess.check_output(command, env=env, text=True) == "8 True\n"
