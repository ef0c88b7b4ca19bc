"""What importing the application costs, beside the libraries it stands on."""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
IMPORTS = 10
FLOOR = "import chalice.app, pynamodb.models, pydantic; pydantic.BaseModel, pydantic.Field"


def section() -> str:
    """Measure, and return the page's section."""
    ratio = _import_seconds("import app") / _import_seconds(FLOOR)
    return f"""\
## Cold start

Importing `app` takes {ratio:.2f} times the CPU that importing Chalice, PynamoDB and pydantic takes
(median of {IMPORTS} new processes, bytecode present).
"""


def _import_seconds(statement: str) -> float:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    timed = f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
    runs = [
        float(subprocess.check_output([sys.executable, "-c", timed], cwd=ROOT, env=env))
        for _ in range(IMPORTS + 1)
    ]
    return median(runs[1:])
