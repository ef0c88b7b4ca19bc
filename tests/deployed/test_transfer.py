"""A workspace moves from the deployed stage to ``make dev``, and back."""

from pathlib import Path

import requests

from tests.deployed.conftest import EMAIL, PASSWORD, Owner, Stage, say
from tests.support import with_server
from tests.support.patience import PATIENCE


def names(products: list[dict[str, str]]) -> list[str]:
    return sorted(product["name"] for product in products)


def test_a_workspace_moves_to_make_dev_and_back(stage: Stage, owner: Owner, tmp_path: Path) -> None:
    for name in ("Rye bread", "Ёлочный пирог"):
        owner.api.post("/api/products/create", {"name": name, "price": 24_000})
    old_products = owner.api.get("/api/products/list")["products"]
    there, back = str(tmp_path / "there.zip"), str(tmp_path / "back.zip")
    stage.admin("export", "--workspace", owner.workspace, "--out", there)
    with with_server.served() as local:
        here = {name: local[name] for name in ("DATA_DIR", "PORT")}
        stage.infra("admin", "create-account", "--email", EMAIL, "--password", PASSWORD, **here)
        new_workspace = stage.infra("admin", "import", there, "--owner", EMAIL, **here)[
            "workspaceId"
        ]
        words = ("--workspace", new_workspace, "--name", "test", "--scopes", "*:read")
        token = stage.infra("admin", "create-key", *words, **here)["token"]
        answer = requests.get(
            f"{local['BASE_URL']}/api/products/list",
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE,
        )
        stage.infra("admin", "export", "--workspace", new_workspace, "--out", back, **here)
    assert names(answer.json()["data"]["products"]) == names(old_products)
    returned = stage.admin("import", back, "--owner", EMAIL, "--ids", "new")["workspaceId"]
    words = ("--workspace", returned, "--name", "test", "--scopes", "*:read")
    copy = stage.api(stage.admin("create-key", *words)["token"])
    assert names(copy.get("/api/products/list")["products"]) == names(old_products)
    say(f"  {owner.workspace} moved to make dev, and back as {returned}")
