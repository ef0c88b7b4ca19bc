"""Client of the Workspace Automation API. README.md shows how it is used."""

from .client import AuthenticatedClient, Client
from .connection import ApiError, connect, data
from .routes import VERSION

__all__ = ["VERSION", "ApiError", "AuthenticatedClient", "Client", "connect", "data"]
