"""Workspace Automation API.

The deployed package (transports > domains > application > engine | gateways > lib > core).
"""

VERSION = "0.3.0"
STORED_FORMAT = 2
"""Number of the form of stored rows. A deployment refuses a stage whose rows have another number.

Until release 1.0, a change that cannot read existing rows increases it.
"""
SERVICE = "Workspace Automation API"
PRODUCT = SERVICE.replace(" ", "-")
USER_AGENT = f"{PRODUCT}/{VERSION}"
"""The User-Agent of requests that this service sends."""
