"""Read the demo's blog posts, which are Markdown files with a TOML header."""

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from infra.local.demo.texts import Language, localize


class Post(NamedTuple):
    """A post, with a file in ``images`` as its cover, if any."""

    slug: str
    title: str
    description: str
    tags: list[str]
    category: str
    author: str
    content: str
    image: str = ""
    status: str = "published"


@cache
def load(language: Language) -> list[Post]:
    """Return the posts in a language, in the order of the numbers in their files' names.

    The name of a file is a number, the slug, and the language unless both languages share the post.
    """
    files = sorted(Path(__file__).with_name("posts").glob("*.md"))
    return [_read(path, language) for path in files if path.suffixes[0] in {f".{language}", ".md"}]


def _read(path: Path, language: Language) -> Post:
    _, head, content = path.read_text().split("+++\n", 2)
    slug = path.name.partition("-")[2].partition(".")[0]
    return Post(slug=slug, content=content, **localize(tomllib.loads(head), language))
