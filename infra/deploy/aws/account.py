"""The AWS account and region of a command."""

import os
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import NoRegionError

RETRIES = Config(retries={"mode": "standard", "max_attempts": 6})
"""API Gateway limits some calls of an account to one every few seconds."""


@dataclass(frozen=True, slots=True)
class Account:
    """The AWS account of the credentials, a region, and the signed-in user."""

    id: str
    region: str
    user: str
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False, compare=False)

    def client(self, service: str, region: str | None = None) -> Any:  # noqa: ANN401  boto3's own
        """Return a client of a service, in the region unless another is named."""
        key = service, region or self.region
        if key not in self._clients:
            self._clients[key] = boto3.client(service, region_name=key[1], config=RETRIES)
        return self._clients[key]


def sign_in(region: str | None = None) -> Account:
    """Return the account of the credentials in use.

    ``AWS_REGION`` is read as in the other SDKs; Python's SDK reads only ``AWS_DEFAULT_REGION``.

    Raises:
        BotoCoreError, ClientError: the credentials are missing, or AWS refuses them; ``aws.errors``
            explains these errors.
    """
    session = boto3.Session(region_name=region or os.environ.get("AWS_REGION"))
    if session.region_name is None:
        raise NoRegionError
    identity = session.client("sts", config=RETRIES).get_caller_identity()
    return Account(identity["Account"], session.region_name, identity["Arn"])
