"""The first steps of an owner, from the overview of an empty workspace."""

import re

from tests.conftest import Owner
from tests.factories.console import person
from tests.transports.console.forms.helpers import text


def test_each_first_step_leads_to_a_control_of_its_page(owner: Owner) -> None:
    boss, home = person(owner), f"/console/w/{owner.workspace.slug}"
    boss.post(f"{home}/services", {"name": "Cut", "durationMin": "60"})
    steps = re.findall(rf'<a class="row" href="({home}/[^"]+)"', text(boss.get(home)))
    assert len(steps) == 6
    for step in steps:
        path, _, fragment = step.partition("#")
        page = text(boss.get(path))
        assert not fragment or re.search(rf'<(input|pre)\b[^>]* id="{fragment}"', page), step
