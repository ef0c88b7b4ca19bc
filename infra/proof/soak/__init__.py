"""A mixed load with faults on one process, which must not grow or lose anything."""

from infra.proof.parts import Figures, Part

__all__ = ["PART"]


def _run(minutes: float) -> Figures:
    from infra.proof.soak import soaking  # noqa: PLC0415  only the part's own process needs it

    return soaking.run(minutes)


def _section(figures: Figures) -> str:
    from infra.proof.soak import report  # noqa: PLC0415  as above

    return report.section(figures)


PART = Part(
    name="soak",
    title="Soak: nothing leaks and nothing is lost",
    minutes=50,
    minutes_in_ci=1,
    run=_run,
    section=_section,
)
