"""Links and paths in the documents, and the decision records that are cited, lead somewhere."""

import re
import subprocess
from pathlib import Path

from tests.support.sweep import sweep

ROOT = Path(__file__).parents[2]
TRACKED = [
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
]
DOCUMENTS = [path for path in TRACKED if path.suffix == ".md" and path.is_file()]
TESTS = {path.name for path in TRACKED if path.name.startswith("test_")}
RECORDS = {int(path.name[:4]): path for path in DOCUMENTS if re.match(r"\d{4}-", path.name)}
LINK = re.compile(r"\]\(([^)\s]+)\)")
CITED = re.compile(r"\bADRs? (\d+)((?:(?:, | and )\d+)*)")
PATH = re.compile(
    r"`((?:chalicelib|core|docs|domains|engine|gateways|infra|lib|tests|transports)/[\w./-]+)"
    r"[^`\n]*`"
)
GENERATED = {"chalicelib/manifest.py"}
TEST_FILE = re.compile(r"`(test_\w+\.py)`")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def anchors(document: Path) -> set[str]:
    """Return the anchors that a document's headings have."""
    text = document.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in headings}
    return anchors | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


@sweep("document", DOCUMENTS)
def test_links_of_a_document_lead_somewhere(document: Path) -> None:
    for link in LINK.findall(CODE.sub("", document.read_text())):
        if link.startswith(("http:", "https:", "mailto:", "{")):
            continue
        if link.startswith("/") and document.parent.name == "guides":  # a path of the service
            continue
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), link


def test_the_readme_leads_to_each_document() -> None:
    links = {*LINK.findall((ROOT / "README.md").read_text())}
    pages = {f"docs/{path.name}" for path in DOCUMENTS if path.parent == ROOT / "docs"}
    assert pages - {link.partition("#")[0] for link in links} == set()


@sweep("document", DOCUMENTS)
def test_paths_in_a_document_exist(document: Path) -> None:
    text = document.read_text()
    for path in {*PATH.findall(text)} - GENERATED:
        places = [ROOT / path, ROOT / "chalicelib" / path]
        places += [place.with_name(f"{place.name}.py") for place in places]
        assert any(place.exists() for place in places), path
    for name in TEST_FILE.findall(text):
        assert name in TESTS, name


def test_every_decision_record_that_is_cited_exists() -> None:
    for path in TRACKED:
        if path.suffix not in {".py", ".md", ".js", ".yaml", ".toml"} or not path.is_file():
            continue
        for first, more in CITED.findall(path.read_text()):
            assert not first.startswith("0"), f"{path}: cite a record as ADR {int(first)}"
            for number in (first, *re.findall(r"\d+", more)):
                assert int(number) in RECORDS, f"{path}: ADR {number}"


def test_the_index_lists_every_decision_record_that_holds() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text()
    listed_files = {
        int(n): name for n, name in re.findall(r"^\| (\d+) \| \[.*\]\((.*)\)", index, re.MULTILINE)
    }
    assert listed_files == {
        number: path.name
        for number, path in RECORDS.items()
        if "\nStatus: superseded by" not in path.read_text()
    }


def test_the_index_names_the_numbers_that_no_decision_record_has() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text()
    (unused,) = re.findall(r"([\d, and]+) were never used", index)
    missing_numbers = {int(number) for number in re.findall(r"\d+", unused)}
    assert missing_numbers.isdisjoint(RECORDS)


@sweep("document", DOCUMENTS)
def test_the_steps_of_a_list_are_numbered_in_order(document: Path) -> None:
    last, step = "", 0
    for line in CODE.sub("", document.read_text()).splitlines():
        step = 0 if line.startswith("#") else step
        begins = last == "" or last[0] in " -" or last[0].isdigit()
        if begins and (numbered := re.match(r"(\d+)\. ", line)):
            assert int(numbered[1]) in {1, step + 1}, line
            step = int(numbered[1])
        last = line
