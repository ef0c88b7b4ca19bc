"""The clients of the environment that runs the tests.

There are three, because the packages of crewai-tools, of fastmcp 4 and of the others exclude each
other.
"""

from importlib import metadata
from typing import Any

installed = {distribution.name for distribution in metadata.distributions()}
FRAMEWORKS: list[Any]
SDKS: list[Any]
if "crewai-tools" in installed:
    from tests.clients.crewai import CrewaiTools

    FRAMEWORKS, SDKS = [CrewaiTools], []
elif "fastmcp" in installed:
    from tests.clients.fastmcp import FastMcp

    FRAMEWORKS, SDKS = [FastMcp], []
else:
    from tests.clients import frameworks

    FRAMEWORKS, SDKS = list(frameworks.FRAMEWORKS), list(frameworks.SDKS)
