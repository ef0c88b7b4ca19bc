"""The part of the proof on error paths. ``infra.proof.error_paths`` runs it by its name."""

import json
import os
from pathlib import Path
from time import monotonic

from tests.proof.error_paths import Attack

BEGUN = monotonic()


def test_every_error_path_ends(attack: Attack) -> None:
    end = BEGUN + 60 * float(os.environ["PROOF_MINUTES"])
    figures = attack.run(int(os.environ["PROOF_SEED"]), end)
    Path(os.environ["PROOF_FIGURES"]).write_text(json.dumps(figures, indent=1))
