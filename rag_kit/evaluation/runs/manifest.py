"""What a run was made with, as plain JSON: versions, settings, fingerprints, the commit. No key is in it."""

from __future__ import annotations

import platform
import re
import subprocess
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rag_kit._redact import redact
from rag_kit.documents import to_plain
from rag_kit.evaluation.metric import Metric

_PACKAGES = (
    "rag-kit", "ragas", "ir-measures", "langchain-core", "langgraph", "langchain-openai", "openai", "numpy",
    "sacrebleu", "rouge-score", "rapidfuzz", "datacompy",
)  # fmt: skip
_SECRET = re.compile(r"(?i)(api[_-]?key|secret|token|password|passwd|authorization|credential)$")
_GIT_SECONDS = 5.0


def now() -> str:
    """The time, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide results; those that are not installed are left out."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit(folder: Path | None = None) -> dict[str, Any] | None:
    """The commit of the working folder and whether tracked files differ from it; ``None`` outside of git."""
    head = _git("rev-parse", "HEAD", folder=folder)
    if not head:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no", folder=folder)
    return {"commit": head, "changed": None if changed is None else bool(changed)}


def describe_metric(metric: Metric, key: str) -> dict[str, Any]:
    """What a metric is, for tables and comparisons."""
    return {
        "name": metric.name, "source": metric.source, "stage": metric.stage, "low": metric.low, "high": metric.high,
        "higher_is_better": metric.higher_is_better, "asks_judge": metric.needs_judge or metric.needs_embeddings,
        "settings": clean(metric.settings()), "key": key,
    }  # fmt: skip


def clean(value: Any) -> Any:
    """Plain JSON in which texts that look like keys, and values whose name says so, are masked.

    Example:
        >>> clean({"model": "gpt", "api_key": "abc", "note": "Bearer abcdef123456"})
        {'model': 'gpt', 'api_key': '***', 'note': 'Bearer ***'}
    """
    return _clean(to_plain(value))


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, Mapping):
        return {
            key: "***" if isinstance(item, str) and item and _SECRET.search(key) else _clean(item)
            for key, item in value.items()
        }
    return value


def _git(*arguments: str, folder: Path | None) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
