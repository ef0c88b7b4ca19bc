"""Strings that try to run as script, and Markdown with a string in every place."""

from pathlib import Path

CORPUS = Path(__file__).parents[1] / "e2e" / "corpus" / "xss.txt"
"""The Big List of Naughty Strings, Script Injection (MIT; the licence is in the same folder)."""
PAYLOADS = [line for line in CORPUS.read_text("utf-8").split("\n") if line.strip()]


def payload_markdown(payload: str) -> str:
    """Return Markdown with a payload in every place that allows text."""
    line = payload.replace("\n", " ")
    return "\n\n".join(
        [
            payload,
            f"[link]({line})",
            f"[link](<{line}> '{line}')",
            f"![{line}]({line})",
            f"<{line}>",
            f"`{line}`",
            f"```{line}\n{line}\n```",
            f"# {line}",
            f"> {line}",
            f"| {line} |\n|---|\n| {line} |",
            f"[ref]: {line} '{line}'\n\n[ref] ![ref]",
        ]
    )
