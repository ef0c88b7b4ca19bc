"""Progress messages on stderr, with the duration of each step."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import click


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)


@dataclass
class Progress:
    """Prints the start of each step, notes, and the duration of the step."""

    report: Callable[[str], None] = _to_stderr
    before_step: Callable[[], None] = field(default=lambda: None)
    """Called before every step. It raises an error if no further step may start."""

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Print the start and the end of a step, or only its error if the step fails."""
        self.before_step()
        self.report(f"{what} …")
        began = time.monotonic()
        yield
        self.report(f"{what}: done in {time.monotonic() - began:.1f} s")

    def note(self, line: str) -> None:
        """Print a detail of the current step."""
        self.report(f"  {line}")
