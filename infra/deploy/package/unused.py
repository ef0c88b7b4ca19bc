"""Removes parts of libraries that the project does not use.

They are AWS services, languages, documentation, Pillow's text rendering, tests, what compiles, and
pydantic 1.

botocore parses JSON data when it creates a client, and searches the folders of all services. Its
complete data takes a third of the time to create the DynamoDB client, and 12 MB of the zip.
"""

import gzip
import json
import re
from typing import Any

from chalicelib.domains.knowledge.rules import word_stems
from chalicelib.transports.web.languages import LANGUAGES
from infra.deploy import policies

BOTOCORE_DATA = "botocore/data/"
SERVICE_DATA = re.compile(rf"{BOTOCORE_DATA}([^/]+)/")
ENDPOINTS = f"{BOTOCORE_DATA}endpoints.json"
"""Endpoints of all services, in every region."""
SERVICES = {
    "bedrock-runtime",
    "cloudfront",
    "dynamodb",
    "s3",
    "secretsmanager",
    "sesv2",
    "sqs",
    "sts",
}
"""The services in use, of 400 that botocore describes. No client of another service can be
created."""
TABLES_SERVICE = f"{BOTOCORE_DATA}dynamodb/2012-08-10/service-2.json.gz"
OPERATIONS = frozenset({"TransactGetItems", "TransactWriteItems"}).union(
    *(actions for access in policies.FUNCTIONS.values() for actions in access.tables.values())
)
"""DynamoDB's operations that a function may call: transactions, and what the policies allow.

They are 8 of 57. The others have most of the shapes that botocore parses for the client.
"""
TABLES_RULES = re.compile(rf"{BOTOCORE_DATA}dynamodb/.*/endpoint-rule-set-")
"""The rules by which botocore finds DynamoDB's endpoint again for each request.

That takes a twelfth of the instructions of a warm call. Without rules, botocore takes the endpoint
of the region from ``ENDPOINTS`` once. Only the rules know endpoints of single accounts, which need
an account id in the credentials. Lambda's credentials have none.
"""
WITHOUT_DOCS = {
    "botocore/docs/__init__.py": b"""DEPRECATED_SERVICE_NAMES = frozenset()
""",
    "botocore/docs/docstring.py": b'''class LazyLoadedDocstring(str):
    """An empty help text. The zip contains no documentation of AWS."""

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)


ClientMethodDocstring = PaginatorDocstring = WaiterDocstring = LazyLoadedDocstring
''',
}
"""Modules that botocore imports with every client, only for the help of its methods.

They import thirteen modules that write documentation, among them an HTML parser. Boto3 imports some
of these for its resources.
"""
X_WR_TIMEZONE = {
    "x_wr_timezone.py": b"""def to_standard(calendar):
    raise NotImplementedError
""",
}
"""A module that recurring_ical_events imports, and that imports click: 0.2 MB of the zip.

It is called by ``recurring_ical_events.of`` only. We build the query ourselves, because a zone that
a calendar names is none of our machine's (``schedule.rules.busy_spans``).
"""
MANUAL = "documentation"
MANUAL_IS_READ = "clientContextParams"
"""botocore requires the documentation of these parameters at the first call to S3."""
LOCALE_DATA = "babel/locale-data"
LANGUAGE_FILES = {"root.dat", *(f"{language}.dat" for language in LANGUAGES)}
"""Babel's data of the languages, and the data that all languages share."""
TEXT_RENDERING = re.compile(
    r"PIL/_imaging(ft|tk)\.|pillow\.libs/lib(freetype|harfbuzz|brotli\w+|png16)-"
)
"""Pillow's fonts, and what only they link: 1.5 MB of the zip. Images are read and written, no text
is drawn into them. Pillow reads PNG by itself."""
SHORT_NUMBERS = re.compile(r"phonenumbers/shortdata/region_")
"""Plans of short numbers such as 112: 0.2 MB of the zip. Numbers of clients have none."""
FOR_DEVELOPERS = re.compile(r".*(\.pyi|\.dist-info/(RECORD|sboms/.*))")
"""Types for type checkers, hashes for uninstallation, and lists of a wheel's parts: 0.3 MB."""
TESTS = ("icalendar/tests/", "recurring_ical_events/test/")
"""Tests that a library's wheel contains: 0.8 MB of the zip."""
CLICK = "click/"
"""What only x_wr_timezone imports, which is replaced."""
FOR_BUILDING = ("cffi/", "pycparser/", "babel/messages/")
"""What compiles bindings and catalogues of texts: 0.6 MB of the zip. At run time, the bindings need
``_cffi_backend`` only."""
OLD_ZONES = "dateutil/zoneinfo/dateutil-zoneinfo.tar.gz"
"""A copy of the zone database, which dateutil reads for names of zones only: 0.15 MB of the zip.
Zones come from tzdata."""
STEMMER = re.compile(r"snowballstemmer/(\w+)_stemmer\.py")
STEMMED = tuple(language for _, language in word_stems.LANGUAGES)
FEW_STEMMERS = {
    "snowballstemmer/__init__.py": f"""from importlib import import_module


def stemmer(language):
    module = import_module(f"snowballstemmer.{{language}}_stemmer")
    return getattr(module, f"{{language.title()}}Stemmer")()


def algorithms():
    return {list(STEMMED)}
""".encode(),
}
"""A module that imports the stemmers of all languages: 0.3 MB of the zip. Two are used."""
FORMER_PYDANTIC = "pydantic/v1/"
"""Pydantic 1, which pydantic 2 imports for models of version 1 only: 0.4 MB of the zip."""


REPLACED = WITHOUT_DOCS | X_WR_TIMEZONE | FEW_STEMMERS


def is_used(name: str) -> bool:
    """Whether the zip needs a file of this name, which only a file of a library may not."""
    left_out = (TEXT_RENDERING, TABLES_RULES, SHORT_NUMBERS, FOR_DEVELOPERS)
    if name.startswith((*TESTS, *FOR_BUILDING, CLICK, OLD_ZONES, FORMER_PYDANTIC)):
        return False
    if any(pattern.match(name) for pattern in left_out):
        return False
    if (service := SERVICE_DATA.match(name)) is not None:
        return service[1] in SERVICES
    if (stemmer := STEMMER.match(name)) is not None:
        return stemmer[1] in STEMMED
    folder, _, file = name.rpartition("/")
    return folder != LOCALE_DATA or file in LANGUAGE_FILES


def trimmed(name: str, content: bytes) -> bytes:
    """Return a file without botocore's documentation, unused endpoints and operations."""
    if name in REPLACED:
        return REPLACED[name]
    if not name.startswith(BOTOCORE_DATA) or not name.endswith((".json", ".json.gz")):
        return content
    packed = name.endswith(".gz")
    data = json.loads(gzip.decompress(content) if packed else content)
    if name == ENDPOINTS:
        for partition in data["partitions"]:
            services = partition["services"].items()
            partition["services"] = {key: value for key, value in services if key in SERVICES}
    if name == TABLES_SERVICE:
        _drop_operations(data)
    brief = json.dumps(_drop_manuals(data), separators=(",", ":")).encode()
    # A fixed time makes the zip reproducible.
    return gzip.compress(brief, mtime=0) if packed else brief


def _drop_operations(data: dict[str, Any]) -> None:
    """Remove from a service's description all but ``OPERATIONS`` and the shapes that they use."""
    operations, shapes = data["operations"], data["shapes"]
    data["operations"] = {name: operations[name] for name in operations if name in OPERATIONS}
    used: dict[str, Any] = {}
    nodes: list[Any] = [data["operations"]]
    while nodes:
        node = nodes.pop()
        nodes += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        shape = node.get("shape") if isinstance(node, dict) else None
        if isinstance(shape, str) and shape not in used:
            used[shape] = shapes[shape]
            nodes.append(shapes[shape])
    data["shapes"] = {name: shapes[name] for name in shapes if name in used}


def _drop_manuals(node: Any) -> Any:  # noqa: ANN401  any JSON value
    """Remove documentation from JSON, but keep objects named ``documentation``, which are data."""
    if isinstance(node, list):
        return [_drop_manuals(child) for child in node]
    if isinstance(node, dict):
        return {
            key: value if key == MANUAL_IS_READ else _drop_manuals(value)
            for key, value in node.items()
            if not (key == MANUAL and isinstance(value, str))
        }
    return node
