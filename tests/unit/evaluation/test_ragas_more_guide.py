"""The guide's table of metrics says what the metrics say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from rag_kit.evaluation.scorers import METRICS

ROOT = Path(__file__).resolve().parents[3]


def test_the_table_of_metrics_is_current() -> None:
    """A metric that is added or changed is in the guide, in both languages."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_metric_table.py"), "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_has_one_row() -> None:
    """The tables hold each name once."""
    for language in ("en", "zh"):
        page = (ROOT / "docs" / "guide" / language / "evaluation-metrics.md").read_text(encoding="utf-8")
        tables = "".join(re.findall(r"<!-- begin table.*?<!-- end table", page, re.DOTALL))
        assert sorted(re.findall(r"^\| `([\w@]+)` ", tables, re.MULTILINE)) == sorted(METRICS)
