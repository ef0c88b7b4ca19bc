"""Find the categories that a table names, and create those that do not exist."""

from collections.abc import Callable
from typing import Any

from chalicelib.core.text import fold
from chalicelib.domains.catalog.rules.category_path import path_names
from chalicelib.domains.imports.rules.tables.table_errors import CellError

Call = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Runs an operation in the workspace and returns ``data`` of its envelope."""


def category_paths(call: Call, kind: str = "product") -> list[tuple[tuple[str, ...], str]]:
    """Return the ids of a workspace's categories, each with the names from the top."""
    rows = call("list_categories", {"kind": kind})["categories"]
    by_id = {row["id"]: row for row in rows}
    paths = []
    for row in rows:
        way = [row]
        while (above := by_id.get(way[0]["parentId"])) is not None:
            way.insert(0, above)
        paths.append((tuple(category["name"] for category in way), row["id"]))
    return paths


class Categories:
    """The workspace's categories by name and path, created if ``creates``.

    With ``dry_run``, a category that would be created has no id. ``remedy`` is what to do about a
    category that may not be created.
    """

    def __init__(
        self, call: Call, kind: str, *, creates: bool, dry_run: bool, remedy: str = "create it"
    ) -> None:
        self._call, self._kind = call, kind
        self._creates, self._dry_run, self._remedy = creates, dry_run, remedy
        self._paths: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        self._exact: dict[tuple[str, ...], str] = {}
        self.created = 0
        paths = category_paths(call, kind)
        self._ids = frozenset(category_id for _, category_id in paths)
        for names, category_id in paths:
            self._add(list(names), category_id)

    def find(self, text: str) -> str | None:
        """Return the id of a category; None if a run that is not dry would create it.

        Raises:
            CellError: the category does not exist and may not be created, or the name is ambiguous.
        """
        way = list(path_names(text))
        name = _normalised(" / ".join(way))
        ids = self._paths.get(name) or self._names.get(name) or []
        if len(ids) > 1:
            msg = f'category: several are named "{text}"; write the path, such as "Above / {text}"'
            raise CellError.of("several_categories", msg, text=text)
        if not ids and not self._creates:
            raise self._missing(text)
        if ids:
            return ids[0] or None
        return self._find_or_create(
            way, lambda names: self._paths.get(_normalised(" / ".join(names)), [None])[0]
        )

    def find_exported(self, category_id: str, *, path: str) -> str | None:
        """Return the id of an exported category: its own id, or else the category with its path.

        Raises:
            CellError: the category does not exist and may not be created.
        """
        if category_id in self._ids:
            return category_id
        way = list(path_names(path))
        if (exact_id := self._exact.get(tuple(way))) is not None:
            return exact_id
        if not way or not self._creates:
            raise self._missing(path)
        return self._find_or_create(way, lambda names: self._exact.get(tuple(names)))

    def _missing(self, text: str) -> CellError:
        msg = f'category: there is no "{text}"; {self._remedy}'
        return CellError.of("no_category", msg, text=text)

    def _find_or_create(
        self, way: list[str], find: Callable[[list[str]], str | None]
    ) -> str | None:
        """Create a category, and its parents that ``find`` does not find."""
        parent: str | None = None
        for depth in range(1, len(way) + 1):
            category_id = find(way[:depth])
            if category_id is not None:
                parent = category_id or None
                continue
            fields = {"name": way[depth - 1], "kind": self._kind}
            if parent is not None:
                fields["parentId"] = parent
            parent = "" if self._dry_run else self._create(fields)
            self.created += 1
            self._add(way[:depth], parent)
            parent = parent or None
        return parent

    def _create(self, fields: dict[str, str]) -> str:
        category: str = self._call("create_category", fields)["category"]["id"]
        return category

    def _add(self, way: list[str], category_id: str) -> None:
        self._exact.setdefault(tuple(way), category_id)
        self._paths.setdefault(_normalised(" / ".join(way)), []).append(category_id)
        self._names.setdefault(_normalised(way[-1]), []).append(category_id)


def _normalised(path: str) -> str:
    """Normalise a name or path for comparison, without the spaces around slashes."""
    return "/".join(" ".join(part.split()) for part in fold(path).split("/"))
