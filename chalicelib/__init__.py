"""Workspace Automation API.

The deployed package (transports > domains > application > engine | gateways > lib > core).
"""

VERSION = "0.2.0"
SERVICE = "Workspace Automation API"
PRODUCT = SERVICE.replace(" ", "-")
USER_AGENT = f"{PRODUCT}/{VERSION}"
"""The User-Agent of requests that this service sends."""
