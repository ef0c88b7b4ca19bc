"""Where the stand-in for AWS lists calls. Tests import this module, not the whole stand-in."""

CALLS = "/moto-calls"
"""Lists the IAM actions of the calls that Chalice has made, by its own user agent."""
