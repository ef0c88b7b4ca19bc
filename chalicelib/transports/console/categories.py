"""Names of categories, as the forms of products and services show them."""

from chalicelib.transports.console.console_request import ConsoleRequest


def category_names(request: ConsoleRequest, kind: str = "service") -> dict[str, str]:
    """Return the names of the categories of a kind by id, each after its parents' names."""
    categories = {
        category["id"]: category
        for category in request.call("list_categories", kind=kind)["categories"]
    }

    def name_of(category_id: str) -> str:
        category = categories[category_id]
        parent = category["parentId"]
        prefix = f"{name_of(parent)} / " if parent in categories else ""
        return f"{prefix}{category['name']}"

    return {category_id: name_of(category_id) for category_id in categories}
