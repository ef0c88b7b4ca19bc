"""Fake payment providers."""

from tests.fakes.payments.fixtures import local_merchant, stripe, yookassa

__all__ = ["local_merchant", "stripe", "yookassa"]
