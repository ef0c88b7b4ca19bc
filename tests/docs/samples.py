"""The samples of the documents: which of them run in the demo, and why others cannot."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {"reference.md"}
"""Its examples are one a call, and ``tests/contract/test_reference.py`` runs them."""
PAGES = (
    ROOT / "README.md",
    *sorted(page for page in DOCS.glob("*.md") if page.name not in GENERATED),
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "sdk").glob("*/README.md")),
)
LANGUAGES = {"", "bash", "sh", "console", "python", "js", "ts", "json", "yaml"}
"""Languages of samples that can run or be sent. A diagram and HTML of a page do neither."""
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)

NOT_RUN: Mapping[str, Mapping[str, str]] = {
    "README.md": {"make dev": "the demo itself: tests/infra/local/make_dev"},
    "docs/notifications.md": {"make dev": "the demo itself: tests/infra/local/make_dev"},
    "docs/troubleshooting.md": {
        "rm -r .local": "deletes the reader's own demo, and starts another"
    },
    "docs/bots.md": {
        '{\n  "type": "action"': "an event that the service sends: tests/contract/test_openapi.py",
        "POST /api/agents/public/actions": "needs the card of a dialogue, as README.md shows it",
    },
    "docs/team.md": {
        "python -m infra admin add-member": "ids of the reader's own workspace and staff"
    },
    "docs/configuration.md": {'"stages": {': "a part of .chalice/config.json"},
    "docs/webhooks.md": {
        "import os\nfrom http.server": "a server without end: tests/docs/test_webhook_receiver.py",
        '{\n  "type": "lead.status_changed"': "an event that the service sends",
    },
    "docs/test-workspaces.md": {'{"type": "webhook.challenge"': "a request of the service"},
    "docs/deploying.md": {
        ".venv/bin/python -m infra doctor": "needs an account of AWS",
        ".venv/bin/python -m infra deploy --stage dev --no-edge": "needs an account of AWS",
        ".venv/bin/python -m infra admin --stage dev create-account": "needs a deployed stage",
        ".venv/bin/python -m infra admin --stage dev admit-workspace": "needs a deployed stage",
        "aws secretsmanager": "needs a deployed stage",
        ".venv/bin/python -m infra deploy --stage dev --edge": "needs an account of AWS",
    },
    "docs/recovery.md": {
        "for function": "needs a deployed stage: tests/docs/test_aws_commands.py",
        "for table": "needs a deployed stage: tests/docs/test_aws_commands.py",
        "aws s3api": "needs a deployed stage: tests/docs/test_aws_commands.py",
        ".venv/bin/python -m infra admin --stage": "needs a deployed stage",
    },
    "docs/runbook.md": {
        "python -m infra deployer-policy": "needs an account of AWS",
        "python -m infra configure": "needs a deployed stage",
        '{\n     "Version"': "a policy of AWS",
        "jobs:": "a workflow of GitHub",
    },
    "docs/upgrading.md": {
        ".venv/bin/python -m infra": "needs a deployed stage",
        "git checkout": "changes the reader's own checkout",
        "aws dynamodb": "needs a deployed stage: tests/docs/test_aws_commands.py",
    },
    "examples/README.md": {"": "tests/clients/test_dentist.py runs the whole page"},
    "sdk/python/README.md": {"": "needs what make sdk makes: tests/clients/test_sdks.py"},
    "sdk/typescript/README.md": {"": "needs what make sdk makes: tests/clients/test_sdks.py"},
}
"""By page and the beginning of a sample, why it does not run in the demo."""


class Sample(NamedTuple):
    page: str
    language: str
    code: str

    @property
    def reason(self) -> str | None:
        """Why the sample does not run in the demo, or None."""
        return next((why for _, why in self.matches()), None)

    def matches(self) -> Iterator[tuple[str, str]]:
        for beginning, why in NOT_RUN.get(self.page, {}).items():
            if self.code.lstrip().startswith(beginning):
                yield beginning, why


def samples() -> list[Sample]:
    """Return the samples of all pages in their order."""
    return [
        Sample(str(page.relative_to(ROOT)), language, code)
        for page in PAGES
        for language, code in _BLOCK.findall(page.read_text())
        if language in LANGUAGES
    ]


class Command(NamedTuple):
    """A command of a shell with the output that the page shows, if it does."""

    text: str
    shown: str


def commands(sample: Sample) -> list[Command]:
    """Return the commands of a sample. Those of a console begin with ``$``."""
    if sample.language != "console":
        return [Command(sample.code, "")]
    parts = re.split(r"^\$ ", sample.code, flags=re.MULTILINE)[1:]
    found = []
    for part in parts:
        lines = part.splitlines()
        end = next(n for n, line in enumerate(lines, 1) if not line.endswith("\\"))
        found.append(Command("\n".join(lines[:end]), "\n".join(lines[end:])))
    return found
