"""The files of a noun, each from a template."""

from pathlib import Path
from string import Template

from infra.local.new_noun.noun import Noun

TEMPLATES = Path(__file__).with_name("templates")
PAGES = "chalicelib/transports/web/templates/console"
FILES = {
    "store.py": "chalicelib/domains/${domain}/store/${nouns}.py",
    "operations.py": "chalicelib/domains/${domain}/operations/${nouns}.py",
    "console.py": "chalicelib/transports/console/${folder}/${nouns}.py",
    "list.html": f"{PAGES}/${{nouns}}.html",
    "form.html": f"{PAGES}/${{noun}}.html",
    "delete.html": f"{PAGES}/${{noun}}_delete.html",
    "demo.py": "infra/local/demo/${nouns}.py",
    "demo.toml": "infra/local/demo/${nouns}.toml",
    "test_domain.py": "tests/domains/${domain}/test_${nouns}.py",
    "test_console.py": "tests/transports/console/test_${noun}_pages.py",
}
"""The paths of the files, by template."""


def console_folder(root: Path, noun: Noun) -> str:
    """Return the folder of the noun's pages: that of its domain, or else ``content``."""
    has_folder = (root / "chalicelib" / "transports" / "console" / noun.domain).is_dir()
    return noun.domain if has_folder else "content"


def fill(template: str, names: dict[str, str]) -> str:
    """Return the content of a template with names in its placeholders."""
    return Template((TEMPLATES / f"{template}.txt").read_text()).substitute(names)


def new_files(root: Path, noun: Noun) -> dict[str, str]:
    """Return the contents of the noun's files, by path within the project."""
    names = noun.names() | {"folder": console_folder(root, noun)}
    return {
        Template(path).substitute(names): fill(template, names) for template, path in FILES.items()
    }
