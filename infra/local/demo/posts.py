"""The demo's posts for the blog of the platform: Markdown files with TOML before the text."""

import tomllib
from pathlib import Path
from typing import NamedTuple


class Post(NamedTuple):
    """A post. ``image`` is its cover, a file in ``images``, or empty."""

    slug: str
    title: str
    description: str
    tags: list[str]
    category: str
    author: str
    content: str
    image: str = ""
    status: str = "published"


def _read(path: Path) -> Post:
    """Read a post. The name of its file is its number and its slug."""
    _, head, content = path.read_text().split("+++\n", 2)
    return Post(slug=path.stem.partition("-")[2], content=content, **tomllib.loads(head))


POSTS = [_read(path) for path in sorted(Path(__file__).with_name("posts").glob("*.md"))]
