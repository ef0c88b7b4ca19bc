"""What is being done, line by line on stderr, with how long it took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import click


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)


@dataclass
class Progress:
    """Says what begins, what happens meanwhile, and how long each step took."""

    say: Callable[[str], None] = _to_stderr
    before_step: Callable[[], None] = field(default=lambda: None)
    """Called before every step: raises if there must not be another one."""

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Say that a step begins, and that it is done; of one that fails, the error says so."""
        self.before_step()
        self.say(f"{what} …")
        began = time.monotonic()
        yield
        self.say(f"{what}: done in {time.monotonic() - began:.1f} s")

    def note(self, line: str) -> None:
        """Say something of the step that is being done."""
        self.say(f"  {line}")
