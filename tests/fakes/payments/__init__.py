"""Payment providers on loopback, which check requests by the providers' published schemas."""

from tests.fakes.payments.stripe import FakeStripe
from tests.fakes.payments.yookassa import FakeYooKassa

__all__ = ["FakeStripe", "FakeYooKassa"]
