"""The section of the soak."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from infra.proof.parts import Figures

PROMISE = """\
One process runs for a long time while the database and external servers fail. Its memory, file
handles, threads and temporary files do not grow. No money remains reserved, every due job is done,
and no acknowledged write is lost or happens twice."""
FOUND = """\
Found and fixed: DynamoDB refuses to write a single row during a transaction on this row. Few
callers handled this error. Marking an idempotency key, counting a limit or removing a finished
job could therefore fail with an internal error. These writes are now retried. If the row remains
busy, the response is 503."""
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
            _format_checks(figures),
            FOUND,
        ]
    )


def _load(figures: Figures) -> str:
    work: dict[str, int] = figures["work"]
    total = sum(work.values())
    return (
        f"In {_minutes(figures)}, {figures['clients']} clients did {total:,} pieces of work"
        f" ({total / figures['seconds']:.1f} a second) with {figures['requests']:,} requests:"
        f" {_counts(work)}. In a contest, four clients book one seat at the same time. Clients"
        f" closed the connection {_number(figures['left'], 'time')} before the end of a response,"
        " and then repeated the call. During the run, the accounts received money, and the jobs"
        " ran.\n\n"
        f"The service used {figures['cores']:.2f} of a core. DynamoDB Local, the model and the"
        " receiver of webhooks are separate processes. The service ran with `MALLOC_ARENA_MAX=1`,"
        " because glibc otherwise keeps freed memory for each thread of the development server."
        f" The seed is {figures['seed']}. It repeats the requests of each client, but not the order"
        " of requests of different clients."
    )


def _faults(figures: Figures) -> str:
    share = f"{100 * figures['share']:g} %"
    return (
        f"{share} of the requests to the database, the model and the webhooks failed"
        f"{_outage(figures)}. Failures of {figures['databaseRequests']:,} requests to the database:"
        f" {_counts(figures['databaseFaults'])} (lost: carried out without a response). Failures of"
        f" {figures['modelRequests']:,} requests to the model, and of the webhooks:"
        f" {_counts(figures['otherFaults'])}. Errors that clients received:"
        f" {_counts(figures['refusals'])}. A crash in the log fails the run."
    )


def _flat(figures: Figures) -> str:
    rows = [
        f"| {_UNITS[name]} | {first:,.0f} | {last:,.0f} | {figures['room'][name]:,} |"
        for name, (first, last) in figures["flat"].items()
    ]
    head = [
        "Medians of samples every 3 seconds, after the first fifth of the time:",
        "",
        "| measure | first quarter | last quarter | growth that fails the run |",
        "|---|---:|---:|---:|",
    ]
    return "\n".join([*head, *rows])


def _format_checks(figures: Figures) -> str:
    checks = Counter[str](figures["checked"])  # Zeros are left out.
    runs = (
        f"{run['aheadMinutes'] // 60} hours"
        if run["aheadMinutes"] % 60 == 0
        else f"{run['aheadMinutes']} minutes"
        for run in figures["jobs"]
    )
    jobs: dict[str, int] = figures["jobsDone"]
    return (
        f"Then the jobs ran in the same process with its clock {' and '.join(runs)} ahead, until no"
        f" job was due. {sum(jobs.values()):,} jobs were done. Of these jobs,"
        f" {jobs.get('settle-hold', 0)} closed a hold that a request had left open. Checks of the"
        " database:\n\n"
        f"- {checks['writes']:,} acknowledged writes are stored, once, in their last state"
        f" ({_number(checks['undecided'], 'write')} never received a response).\n"
        f"- {checks['bookings']:,} bookings do not overlap, and each of"
        f" {_number(checks['contests'], 'contest')} has at most one winner.\n"
        f"- The counters of {checks['counted']:,} records are equal to the records.\n"
        f"- The credits are equal to the balances plus {checks['charges']:,} charges, to the"
        f" kopeck. None of {checks['chats']:,} messages is charged twice."
        f" {checks['ended chats']:,} answers that a visitor read to the end are charged once, by"
        " their tokens.\n"
        f"- {checks['events']:,} events of these leads and bookings were sent to the webhook."
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
