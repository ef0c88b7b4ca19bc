"""The section of the soak."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from infra.proof.parts import Figures

PROMISE = """\
One process serves for a long time while parts fail around it. Its memory, file handles, threads and
temporary files stay flat. No money stays held, every due job is done, and no acknowledged write is
lost or happens twice."""
FOUND = """\
Found and fixed: DynamoDB refuses the write of a single row while a transaction holds the row. Only
few callers expected that, so marking an idempotency key, counting a limit or removing a finished
job could end in an internal error. These writes are now retried, and a row that stays busy is a
503."""
_UNITS = {
    "memory": "resident memory, MB",
    "blocks": "memory blocks of living Python objects",
    "files": "open file descriptors",
    "threads": "threads",
    "temporary": "files in the temporary folder",
}


def section(figures: Figures) -> str:
    """Return the section as Markdown."""
    return "\n\n".join(
        [
            PROMISE,
            _load(figures),
            _faults(figures),
            _flat(figures),
            _kept(figures),
            FOUND,
        ]
    )


def _load(figures: Figures) -> str:
    work: dict[str, int] = figures["work"]
    total = sum(work.values())
    return (
        f"In {_minutes(figures)}, {figures['clients']} clients did {total:,} pieces of work"
        f" ({total / figures['seconds']:.1f} a second) with {figures['requests']:,} requests:"
        f" {_counts(work)}. In a contest, four clients book one seat at once. Clients hung up"
        f" {_number(figures['left'], 'time')} before the end of an answer, and then repeated the"
        " call. Meanwhile the accounts were topped up, and the jobs ran.\n\n"
        f"The service took {figures['cores']:.2f} of a core. DynamoDB Local, the model and the"
        " receiver of webhooks are other processes. The service ran with `MALLOC_ARENA_MAX=1`:"
        " otherwise, glibc keeps freed memory apart for each thread of the development server."
        f" The seed is {figures['seed']}; it repeats what each client does, but not how they"
        " interleave."
    )


def _faults(figures: Figures) -> str:
    share = f"{100 * figures['share']:g} %"
    return (
        f"{share} of the requests to others failed{_outage(figures)}. Of"
        f" {figures['databaseRequests']:,} to the database: {_counts(figures['databaseFaults'])}"
        " (lost: carried out without an answer). Of"
        f" {figures['modelRequests']:,} to the model, and of the webhooks:"
        f" {_counts(figures['otherFaults'])}. All that clients were refused:"
        f" {_counts(figures['refusals'])}. A crash in the log would fail the run."
    )


def _flat(figures: Figures) -> str:
    rows = [
        f"| {_UNITS[name]} | {first:,.0f} | {last:,.0f} | {figures['room'][name]:,} |"
        for name, (first, last) in figures["flat"].items()
    ]
    head = [
        "Medians of the samples, taken every 3 seconds, after the first fifth of the time:",
        "",
        "| measure | first quarter | last quarter | growth that fails the run |",
        "|---|---:|---:|---:|",
    ]
    return "\n".join([*head, *rows])


def _kept(figures: Figures) -> str:
    checked = Counter[str](figures["checked"])  # Zeros are left out.
    runs = (
        f"{run['aheadMinutes'] // 60} hours"
        if run["aheadMinutes"] % 60 == 0
        else f"{run['aheadMinutes']} minutes"
        for run in figures["jobs"]
    )
    done: dict[str, int] = figures["jobsDone"]
    return (
        f"Then the jobs ran in the same process with its clock {' and '.join(runs)} ahead, until"
        f" none was due. {sum(done.values()):,} jobs were done in all. Of these,"
        f" {done.get('settle-hold', 0)} closed a hold that a request had left open. Checked in the"
        " database:\n\n"
        f"- {checked['writes']:,} acknowledged writes are there, once, in their last state"
        f" ({_number(checked['undecided'], 'write')} never got an answer).\n"
        f"- {checked['bookings']:,} bookings do not overlap, and each of"
        f" {_number(checked['contests'], 'contest')} has at most one winner.\n"
        f"- The counters of {checked['counted']:,} records are equal to the records.\n"
        f"- Top-ups equal the balances and {checked['charges']:,} charges to the kopeck. Of"
        f" {checked['chats']:,} messages none is charged twice, and {checked['ended chats']:,}"
        " answers that a visitor read to the end are charged once, by their tokens.\n"
        f"- {checked['events']:,} events of these leads and bookings were sent to the webhook."
    )


def _outage(figures: Figures) -> str:
    seconds = figures.get("outageSeconds")
    return f", and once all requests to the database for {seconds:g} seconds" if seconds else ""


def _minutes(figures: Figures) -> str:
    return f"{figures['seconds'] / 60:.1f} minutes"


def _counts(counts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items() if number) or "none"


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
