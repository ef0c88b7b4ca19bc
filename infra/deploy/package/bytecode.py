"""Compile the modules of an unpacked zip, so that equal code is an equal zip.

``compileall`` does not: it stores which constants are shared, and for equal sets this depends on
addresses of memory. This runs as a script with the packaging Python and imports nothing but the
standard library.
"""

import marshal
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path

WITHOUT_REFERENCES = 2
"""The last format of marshal that stores no shared constants."""
UNCHECKED = (1).to_bytes(4, "little")
"""Python never compares a module with its source, because a deployment may change file times
(PEP 552)."""


def compile_all(folder: Path, shown_as: str) -> None:
    """Write a compiled module beside each source. Tracebacks show ``shown_as`` as the folder."""
    for source in sorted(folder.rglob("*.py")):
        text = source.read_bytes()
        name = f"{shown_as}/{source.relative_to(folder)}"
        try:
            compiled = compile(text, name, "exec", dont_inherit=True)
        except SyntaxError:
            continue  # as compileall does
        # Loaded from this format, only strings are shared, and these equally in every run.
        # The data are of this process.
        code = marshal.loads(marshal.dumps(compiled, WITHOUT_REFERENCES))  # noqa: S302  # nosec B302
        target = Path(cache_from_source(str(source)))
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(MAGIC_NUMBER + UNCHECKED + source_hash(text) + marshal.dumps(code))


if __name__ == "__main__":
    compile_all(Path(sys.argv[1]), sys.argv[2])
