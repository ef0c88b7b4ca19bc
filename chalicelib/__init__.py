"""Workspace Automation API.

The deployed package (transports > domains > application > engine | gateways > lib > core).
"""

VERSION = "0.1.0"
SERVICE = "Workspace Automation API"
USER_AGENT = f"{SERVICE.replace(' ', '-')}/{VERSION}"
"""The User-Agent of requests that this service sends."""
