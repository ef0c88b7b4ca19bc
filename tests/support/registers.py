"""Compares a register with what is declared. The failure names the register and the cure."""

from collections.abc import Iterable


def check_register(
    register: Iterable[object], *, declared: Iterable[object], place: str, line: str = "a line"
) -> None:
    """Fail if a register lacks something that is declared, or has something that is not.

    Args:
        place: The register, with its file.
        line: What one entry of it says, for whoever must add one.
    """
    has, must_have = {*map(str, register)}, {*map(str, declared)}
    missing, left_over = sorted(must_have - has), sorted(has - must_have)
    assert not missing, f"{place} lacks {', '.join(missing)}. Add to it for each: {line}."
    assert not left_over, (
        f"{place} has {', '.join(left_over)}, which nothing declares. Remove it there."
    )
