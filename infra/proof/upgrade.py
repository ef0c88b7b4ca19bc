"""Run the last release and this one on one database, in both orders.

Each release makes a workspace with one record of every type. The other release then runs every
operation that it has on it, and each response is compared with the response on its own workspace.
In histories, the release that makes each call is drawn, as while a deployment replaces one by the
other; what both releases then read is compared with a history of one release.
"""

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

from infra.proof.parts import Figures, Part
from infra.proof.releases import START, Both, NotInCloneError, Release, State, last_release
from infra.proof.releases import side_by_side as releases_side_by_side

Json = Any
SEED = 20_260
LAST, THIS = 0, 1
"""Positions of the releases in ``Both.releases``."""
STEPS = ("chat", "jobs", "console")
"""Steps of a session other than operations."""
JOBS_LATER = timedelta(days=1)
"""Time at which the jobs run, when e-mails, reminders and removals are due."""
UNCOUNTED: dict[str, str] = {}
"""Operations of this release that cannot show what the last one did, with the reason."""
UNREADABLE = {
    "jobs": "the previous release postpones jobs of payments, whose kinds it does not know",
}
"""Operations of the last release that lack something that this one requests, with the reason."""
RECIPES = {
    **dict.fromkeys(
        (
            *("get_agent_dialog", "get_dialog_details", "list_agent_dialogs", "list_dialogs"),
            *("agent_stats", "get_statement", "list_ledger"),
        ),
        "the words of a bot's tools differ, so a request has a few tokens more or less",
    ),
    "list_audit_log": "the content of a small site is deleted in the call, which needs no job",
    "list_payments": "no booking of a workspace that the previous release made was paid",
    "set_second_factor": "recovery codes are random",
}
"""Operations whose responses differ because the two workspaces do."""
JOBS_OF_LAST = {
    "list_audit_log": "as above: the previous release records the job of each deleted site",
}
"""Operations that show in a history which release ran the jobs."""
_RANDOM = re.compile(r"[0-9A-Za-z_+/=-]{20,}|…\w{4}")
"""Ids and secrets, which are random, and the ends of masked keys."""
_MEASURED = {"avgFirstTokenMs"}
"""Values that no two runs share."""


class World(NamedTuple):
    """The ids and the stored state of a workspace that a release made."""

    ids: Json
    state: State


def run(minutes: float) -> Figures:
    """Run all operations of both releases on each other's records.

    Raises:
        AssertionError: a release fails, or responds differently, without a known reason.
    """
    end = time.monotonic() + minutes * 60
    try:
        name, commit = last_release()
    except NotInCloneError as error:
        return {"not_run": f"the commit {error} is not in this clone"}
    with releases_side_by_side(commit) as both:
        empty = both.stores.state()
        of_last, of_this = (_world(both, maker, empty) for maker in (both.last, both.this))
        figures = {
            "last_release": name,
            "database": both.database,
            "rows": [len(of_last.state.rows), len(of_this.state.rows)],
            "upgrade": _sweep(both, both.this, of_this, other=of_last),
            "rollback": _sweep(both, both.last, of_last, other=of_this),
            "keys_upgrade": _keys(both, both.last, second=both.this, world=of_last),
            "keys_rollback": _keys(both, both.this, second=both.last, world=of_last),
            "histories": _histories(both, of_last, end),
        }
    _require_no_surprise(figures)
    return figures


def _world(both: Both, maker: Release, empty: State) -> World:
    both.stores.restore(empty)
    return World(maker.do("make"), both.stores.state())


def _sweep(both: Both, reader: Release, own_world: World, *, other: World) -> Figures:
    """Run each operation on the workspace of the reader, and on the other release's workspace."""
    figures: Figures = {"calls": 0, "lacking": [], "refused": [], "failed": {}, "otherwise": {}}
    expected = _answers(both, reader, own_world)
    for name, answer in _answers(both, reader, other).items():
        if answer is None:
            figures["lacking"].append(name)
            continue
        figures["calls"] += 1
        if "answer" not in expected[name]:
            figures["refused"].append(name)
        elif "answer" not in answer:
            figures["failed"][name] = answer.get("refusal") or answer["crash"]
        elif difference := _difference(answer, other, expected[name], own_world):
            figures["otherwise"][name] = difference
    return figures


def _answers(both: Both, release: Release, world: World) -> dict[str, Json]:
    """Return the response of each operation on a world as it was made.

    None stands for an operation on a record that the world cannot have.
    """
    both.stores.restore(world.state)
    operations = release.do("describe")
    answers = {}
    for name in (*operations, *STEPS):
        arguments = release.do("arguments", operation=name, world=world.ids)
        answers[name] = (
            None if arguments["lacks"] else _send(release, name, arguments["sent"], world)
        )
        if name not in operations or not operations[name]["reads"]:
            both.stores.restore(world.state)
    return answers


def _send(release: Release, name: str, arguments: Json, world: World, **options: Json) -> Json:
    options.setdefault("now", START + JOBS_LATER if name == "jobs" else START)
    return release.do("call", operation=name, sent=arguments, world=world.ids, **options)


def _difference(answer: Json, world: World, expected: Json, own_world: World) -> str:
    """Return what two responses do not share, ids and secrets aside, or ""."""
    one, other = Counter(_values(answer, world)), Counter(_values(expected, own_world))
    lost, gained = sorted((other - one).elements()), sorted((one - other).elements())
    return "" if one == other else f"-{lost[:4]} +{gained[:4]}"


def _values(answer: Json, world: World) -> Iterator[str]:
    """Yield the values of a response with their places, and names instead of ids."""
    text = json.dumps(answer, ensure_ascii=False)
    ids = {**world.ids["held"], **world.ids["things"]}
    for name, value in sorted(ids.items(), key=lambda row: -len(row[1])):
        text = text.replace(value, f"<{name}>")
    for row in _flat(json.loads(text), ""):
        place, _, field_text = row.partition("=")
        if place.rpartition(".")[2] not in _MEASURED:
            yield f"{place}={_RANDOM.sub('*', field_text)}"


def _flat(value: Json, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{place}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from _flat(inner, place)
    else:
        yield f"{place[1:]}={value}"


def _keys(both: Both, first: Release, *, second: Release, world: World) -> Figures:
    """Repeat calls on another release with the idempotency key of the first call."""
    descriptions = [release.do("describe") for release in (first, second)]
    figures: Figures = {"calls": 0, "recognized": 0, "repeated": []}
    for name, operation in descriptions[0].items():
        if not operation["takes_key"] or name not in descriptions[1]:
            continue
        both.stores.restore(world.state)
        arguments = first.do("arguments", operation=name, world=world.ids)["sent"]
        answer, second_answer = (
            _send(release, name, arguments, world, key="k") for release in (first, second)
        )
        if "answer" not in answer:
            continue
        figures["calls"] += 1
        figures["recognized"] += answer == second_answer
        if answer != second_answer:
            figures["repeated"].append(name)
    return figures


class Step(NamedTuple):
    """A call of a history.

    Both releases make the calls that only read. Some calls exist in this release only.
    """

    name: str
    reads: bool
    only_this: bool


def _histories(both: Both, world: World, end: float) -> Figures:
    """Let seeds draw the release of each call, and compare the responses with one release's."""
    steps = _steps(both, world)
    figures: Figures = {"seeds": [], "calls": 0, "otherwise": {}}
    pure = [_history(both, world, steps, [maker] * len(steps)) for maker in (LAST, THIS)]
    seed, took = SEED, 0.0
    while not figures["seeds"] or time.monotonic() + took < end:
        begun = time.monotonic()
        makers = random.Random(seed).choices((LAST, THIS), k=len(steps))  # noqa: S311  no secret
        drawn = _history(both, world, steps, makers)
        for (maker, name), answer in drawn.items():
            difference = _difference(answer, world, pure[maker][maker, name], world)
            if difference:
                figures["otherwise"].setdefault(name, []).append([seed, maker, difference])
        figures["calls"] += len(drawn)
        figures["seeds"].append(seed)
        seed, took = seed + 1, time.monotonic() - begun
    return figures


def _steps(both: Both, world: World) -> list[Step]:
    """Return what can be done on a world. What the last release cannot write comes first.

    So the last release writes over it. Destructions and reads come last.
    """
    descriptions = [release.do("describe") for release in both.releases]
    steps = []
    for name, description in sorted(descriptions[THIS].items()):
        if both.this.do("arguments", operation=name, world=world.ids)["lacks"]:
            continue
        shared = descriptions[LAST].get(name, {}).get("audience") == description["audience"]
        steps.append((description["reads"], description["destroys"], shared, name))
    steps.sort()
    calls = [Step(name, reads, not shared) for reads, _, shared, name in steps]
    first_read = sum(not step.reads for step in calls)
    calls[first_read:first_read] = [
        Step(step, step == "console", only_this=False) for step in STEPS
    ]
    return calls


def _history(
    both: Both, world: World, steps: list[Step], makers: list[int]
) -> dict[tuple[int, str], Json]:
    """Make the calls of a history, and run all due jobs before the history is read."""
    both.stores.restore(world.state)
    answers = {}
    for number, (step, drawn) in enumerate(zip(steps, makers, strict=True)):
        late = step.reads or step.name == "jobs"
        now = START + timedelta(seconds=number) + (JOBS_LATER if late else timedelta())
        arguments = both.this.do("arguments", now=now, operation=step.name, world=world.ids)
        able = (THIS,) if step.only_this else (LAST, THIS) if step.reads else (drawn,)
        for maker in able:
            answers[maker, step.name] = (
                {"refusal": "a record is gone"}
                if arguments["lacks"]
                else _send(both.releases[maker], step.name, arguments["sent"], world, now=now)
            )
    return answers


def _require_no_surprise(figures: Figures) -> None:
    """Fail if an operation fails, or responds differently, without a known reason."""
    declared = {
        "upgrade": UNCOUNTED | RECIPES,
        "rollback": UNREADABLE | RECIPES,
        "histories": JOBS_OF_LAST,
    }
    surprises = {
        f"{when}: {name}": why
        for when, expected in declared.items()
        for kind in ("failed", "otherwise")
        for name, why in figures[when].get(kind, {}).items()
        if kind == "failed" or name not in expected
    }
    for when in ("keys_upgrade", "keys_rollback"):
        if repeated := figures[when]["repeated"]:
            surprises[when] = repeated
    if surprises:
        msg = json.dumps(surprises, indent=1, ensure_ascii=False)
        raise AssertionError(msg)


def section(figures: Figures) -> str:
    """Return the figures as Markdown."""
    if reason := figures.get("not_run"):
        return f"Not run: {reason}. A full clone has it.\n"
    up, down, histories = figures["upgrade"], figures["rollback"], figures["histories"]
    seeds = histories["seeds"]
    return f"""\
A stage is upgraded while it serves, and rolled back if a deployment fails. This release and the
previous one (`{figures["last_release"][:12]}`) must therefore read the rows of each other. Each
release created a workspace with one record of every type in {figures["database"]}
({figures["rows"][LAST]} and {figures["rows"][THIS]} rows). Each release then ran all its operations
on both workspaces, and each value of the responses was compared.

| order | calls | failed | different responses | need records that only this release creates |
|---|---|---|---|---|
| previous, then this (upgrade) | {_counts(up)} |
| this, then previous (rollback) | {_counts(down)} |

Histories: {len(seeds)} (seeds {seeds[0]} to {seeds[-1]}), {histories["calls"]:,} calls. A seed
chooses the release for each call, as during a deployment. Each response is compared with a history
of one release. {len(histories["otherwise"])} operations had different responses.

Calls were repeated on the other release with the same idempotency key: {_keys_text(figures)}.

{_reasons("Data of the previous release that this release does not show", UNCOUNTED)}
{_reasons("Work that the previous release cannot do", UNREADABLE)}
{_reasons("Differences between the two workspaces", RECIPES)}
{_reasons("Histories differ by the release that runs the jobs", JOBS_OF_LAST)}
The previous release does not show the data that only this release has: booking pages, invitations,
counts of spending and languages of accounts. The histories write these data first. After the
previous release has written the same records, these data are unchanged.
"""


def _counts(sweep: Figures) -> str:
    others = (len(sweep[group]) for group in ("failed", "otherwise", "lacking"))
    return " | ".join(map(str, (sweep["calls"], *others)))


def _keys_text(figures: Figures) -> str:
    up, down = figures["keys_upgrade"], figures["keys_rollback"]
    return (
        f"{up['recognized']} of {up['calls']} calls were recognized after an upgrade, "
        f"{down['recognized']} of {down['calls']} after a rollback"
    )


def _reasons(title: str, declared: dict[str, str]) -> str:
    lines = (f"- `{name}`: {reason}" for name, reason in declared.items())
    return "\n".join((f"{title}:\n", *lines, "")) if declared else ""


PART = Part(
    name="upgrade",
    title="Upgrades and rollbacks",
    minutes=8,
    minutes_in_ci=0,
    run=run,
    section=section,
)
