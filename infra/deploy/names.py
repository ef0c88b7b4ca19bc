"""What a stage's things on AWS are called, where more than one module has to know."""

from infra.deploy.policies import API

APP = "workspace-api"
"""``app_name`` of .chalice/config.json, and what the REST API is called."""


def function_name(stage: str, function: str) -> str:
    """Return the name that Chalice gives a function: the stage's own, or with the function's."""
    return f"{APP}-{stage}" + ("" if function == API else f"-{function}")
