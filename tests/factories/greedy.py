"""A parser that takes all the memory that it can get, for a process of its own."""


def read_text(_parser: str, body: bytes, *_: object) -> str:
    """Take one gigabyte more than any parser may."""
    return (body * 10**9).decode()
