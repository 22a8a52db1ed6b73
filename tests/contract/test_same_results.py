"""The same question has the same result in every process, whatever order its sets are in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "support" / "same_results.py"


def test_results_do_not_depend_on_the_hash_seed() -> None:
    """Search, answers, notes and verdicts on citations are equal under two seeds of hashes."""
    runs = [
        subprocess.run(
            [sys.executable, str(SCRIPT)],
            env={**os.environ, "PYTHONHASHSEED": seed, "RAG_KIT_EMBEDDING_MODEL": "none"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert len(runs[0].splitlines()) > 50 and runs[0] == runs[1]
