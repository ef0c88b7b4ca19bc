"""Whose AWS account it is, and where: what every command begins with."""

import os
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import NoRegionError

RETRIES = Config(retries={"mode": "standard", "max_attempts": 6})
"""API Gateway lets an account make some of these calls once in a few seconds."""


@dataclass(frozen=True, slots=True)
class Account:
    """An AWS account that credentials lead to, one of its regions, and who is signed in."""

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
    """Return the account that the credentials in use lead to.

    ``AWS_REGION`` counts as in the other SDKs; Python's reads ``AWS_DEFAULT_REGION`` only.

    Raises:
        BotoCoreError, ClientError: there are none, or AWS does not take them; ``aws_errors`` says
            what that means.
    """
    session = boto3.Session(region_name=region or os.environ.get("AWS_REGION"))
    if session.region_name is None:
        raise NoRegionError
    identity = session.client("sts", config=RETRIES).get_caller_identity()
    return Account(identity["Account"], session.region_name, identity["Arn"])
