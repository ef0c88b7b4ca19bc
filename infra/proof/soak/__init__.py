"""A mixed load with faults on one process, which must not grow or lose anything."""

from infra.proof.parts import Figures, Part

__all__ = ["PART"]


def _run(minutes: float) -> Figures:
    from infra.proof.soak import soaking  # noqa: PLC0415  only the part's own process needs it

    return soaking.run(minutes)


PART = Part(
    name="soak",
    minutes=50,
    minutes_in_ci=1,
    run=_run,
)
