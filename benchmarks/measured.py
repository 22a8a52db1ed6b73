"""Write result files: each says which commit it measured, and whether files had changes that are in no commit."""

from __future__ import annotations

import argparse
import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def _git(*words: str) -> str | None:
    with suppress(OSError, subprocess.CalledProcessError):  # no git, or no checkout
        done = subprocess.run(["git", *words], cwd=RESULTS.parent, capture_output=True, text=True, check=True)
        return done.stdout.strip()
    return None


def state() -> dict[str, Any]:
    """Return the commit of the checkout, and whether the rest of it was clean; nothing without git."""
    commit = _git("rev-parse", "HEAD")
    # the result files before this one are changes that measure nothing
    changes = _git("status", "--porcelain", "--", ":/", ":(exclude,top)benchmarks/results")
    return {} if commit is None else {"commit": commit, "clean": changes == ""}


AT_START = state()  # a run may take hours, in which people go on


def arguments(text: str | None) -> argparse.ArgumentParser:
    """Return a parser of a script's arguments, which shows its docstring as it is written."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def save(path: Path, result: dict[str, Any] | list[Any]) -> None:
    """Write a result with the commit; a list stands below ``rows``."""
    content = result if isinstance(result, dict) else {"rows": result}
    text = json.dumps({**AT_START, **content}, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")
