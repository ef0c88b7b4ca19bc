"""Random decisions of the soak, from one seed."""

import random

SEED = 20_261_125


def dice(*names: object) -> random.Random:
    """Return the source of random decisions of one part, such as a client or the database.

    Threads interleave differently in each run, so a seed repeats the decisions, but not their order
    among the parts.
    """
    return random.Random(" ".join(map(str, (SEED, *names))))  # noqa: S311  no secret
