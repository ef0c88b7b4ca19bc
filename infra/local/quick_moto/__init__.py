"""Makes moto's DynamoDB several times as fast.

``make_quick`` is for the stand-in of DynamoDB Local and for the tests. ``skip_http`` and
``skip_ec2`` are only for the tests, which run in one process with moto. Responses do not change:
all leave out only work that has no effect on them.
"""

from infra.local.quick_moto import expressions, lock, rows
from infra.local.quick_moto.rows import attributes_of, place_of
from infra.local.quick_moto.without_ec2 import skip_ec2
from infra.local.quick_moto.without_http import REGION, skip_http

__all__ = ["REGION", "attributes_of", "make_quick", "place_of", "skip_ec2", "skip_http"]


def make_quick() -> None:
    """Change moto in this process, permanently."""
    lock.serve_one_request_at_a_time()
    expressions.make_quick()
    rows.make_quick()
