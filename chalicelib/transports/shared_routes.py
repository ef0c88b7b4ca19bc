"""Many paths that arrive through few routes of API Gateway.

Each part of a path is one resource of API Gateway, and a REST API may have 300 resources. Pages of
the console therefore share one route for each number of parts, and the path is matched here.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple


class Match(NamedTuple):
    """The path that a request belongs to, and the values of the path's parameters."""

    path: str
    values: dict[str, str]


class SharedRoutes:
    """Paths below a prefix, by their number of parts.

    Paths whose first part is ``apart`` are left out. API Gateway prefers this name to a parameter.

    Example:
        >>> shared = SharedRoutes("/w/{workspace}")
        >>> shared.add("/w/{workspace}/forms/{form}")
        '/w/{workspace}/{part1}/{part2}'
        >>> shared.match({"workspace": "a", "part1": "forms", "part2": "b"})
        Match(path='/w/{workspace}/forms/{form}', values={'workspace': 'a', 'form': 'b'})
    """

    def __init__(self, prefix: str, apart: str = "") -> None:
        self._prefix, self._apart = f"{prefix}/", apart
        self._paths: defaultdict[int, list[list[str]]] = defaultdict(list)

    def add(self, path: str) -> str | None:
        """Return the shared route of a path, or None for a path that does not belong here."""
        if not path.startswith(self._prefix):
            return None
        parts = path.removeprefix(self._prefix).split("/")
        if parts[0] == self._apart:
            return None
        if parts not in self._paths[len(parts)]:
            self._paths[len(parts)].append(parts)
        return self._prefix + "/".join(f"{{part{number + 1}}}" for number in range(len(parts)))

    def is_shared(self, route: str) -> bool:
        return route.startswith(f"{self._prefix}{{part1}}")

    def match(self, values: Mapping[str, str]) -> Match | None:
        # A part with a name of its own wins over a parameter, as at API Gateway.
        if not values:  # as in most requests
            return None
        parts = [values[name] for name in sorted(values) if name.startswith("part")]
        names = min(
            (
                candidate
                for candidate in self._paths.get(len(parts), ())
                if all(map(_is_name_of, candidate, parts))
            ),
            key=lambda candidate: list(map(_is_parameter, candidate)),
            default=None,
        )
        if names is None:
            return None
        pairs = zip(names, parts, strict=True)
        own_values = {name.strip("{}"): part for name, part in pairs if _is_parameter(name)}
        others = {name: values[name] for name in values if not name.startswith("part")}
        return Match(self._prefix + "/".join(names), others | own_values)


def _is_name_of(name: str, part: str) -> bool:
    return name == part or _is_parameter(name)


def _is_parameter(name: str) -> bool:
    return name.startswith("{")
