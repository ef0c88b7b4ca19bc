"""What libraries bring into the zip that nothing here speaks of: services, languages, manuals.

botocore reads its data as JSON when a client is made, and walks all its services' folders: whole,
that is a third of what making the client of DynamoDB takes, and twelve of the zip's megabytes.
"""

import gzip
import json
import re
from typing import Any

from chalicelib.transports.web.languages import LANGUAGES

BOTOCORE_DATA = "botocore/data/"
SERVICE_DATA = re.compile(rf"{BOTOCORE_DATA}([^/]+)/")
ENDPOINTS = f"{BOTOCORE_DATA}endpoints.json"
"""Where all services are, in every region."""
SERVICES = {"bedrock-runtime", "dynamodb", "s3", "sts"}
"""Of the 400 services that botocore describes; clients of others cannot be made."""
MANUAL = "documentation"
MANUAL_IS_READ = "clientContextParams"
"""botocore looks up the texts of these, and fails without: with the first call to S3."""
LOCALE_DATA = "babel/locale-data"
SPOKEN = {"root.dat", *(f"{language}.dat" for language in LANGUAGES)}
"""What Babel reads for a language: its own data, and what all have in common."""


def is_used(name: str) -> bool:
    """Whether the zip needs a file of this name: of libraries' data, only what we speak."""
    if (service := SERVICE_DATA.match(name)) is not None:
        return service[1] in SERVICES
    folder, _, file = name.rpartition("/")
    return folder != LOCALE_DATA or file in SPOKEN


def trimmed(name: str, content: bytes) -> bytes:
    """Return what the zip needs of a file: of botocore's data, no manuals and no other services."""
    if not name.startswith(BOTOCORE_DATA) or not name.endswith((".json", ".json.gz")):
        return content
    packed = name.endswith(".gz")
    data = json.loads(gzip.decompress(content) if packed else content)
    if name == ENDPOINTS:
        for partition in data["partitions"]:
            found = partition["services"].items()
            partition["services"] = {key: value for key, value in found if key in SERVICES}
    brief = json.dumps(_without_manuals(data), separators=(",", ":")).encode()
    # Without the time, so that the same sources make the same zip.
    return gzip.compress(brief, mtime=0) if packed else brief


def _without_manuals(node: Any) -> Any:  # noqa: ANN401  any JSON value
    """Return JSON without texts for readers; a member that is called so is an object, and stays."""
    if isinstance(node, list):
        return [_without_manuals(each) for each in node]
    if isinstance(node, dict):
        return {
            key: value if key == MANUAL_IS_READ else _without_manuals(value)
            for key, value in node.items()
            if not (key == MANUAL and isinstance(value, str))
        }
    return node
