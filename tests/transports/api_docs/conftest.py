"""What the tests of the reference share."""

from tests.conftest import Answer, Api


def get(path: str, method: str = "GET", **headers: str) -> Answer:
    with_hyphens = {name.replace("_", "-"): value for name, value in headers.items()}
    return Api(None).call(method, path, headers=with_hyphens)
